//! The options from flags, variables and the file, and what is refused.

use super::*;
use std::time::Duration;

#[test]
fn a_duration_has_a_number_and_a_unit() {
    assert_eq!(
        "90d".parse(),
        Ok(ConfigDuration(Duration::from_secs(90 * 86_400)))
    );
    assert_eq!(
        "500ms".parse(),
        Ok(ConfigDuration(Duration::from_millis(500)))
    );
    for bad in [
        "",
        "90",
        "d",
        "-1d",
        "1.5h",
        "1w",
        "0s",
        "99999999999999999999d",
        "213503982335d",
    ] {
        assert!(bad.parse::<ConfigDuration>().is_err(), "{bad}");
    }
}

//
#[test]
fn an_opening_grant_is_an_amount_or_zero() {
    let granted = |text: &str| {
        toml::from_str::<ServeOptions>(text)
            .map(|o| o.into_settings().unwrap().hub.opening_grant.to_string())
    };
    for (text, grant) in [
        ("", "100.00"),
        ("opening-grant = 2.5", "2.50"),
        ("opening_grant = \"0\"", "0.00"),
        ("opening-grant = 7", "7.00"),
    ] {
        assert_eq!(granted(text).unwrap(), grant, "{text}");
    }
    for bad in [
        "opening-grant = 0.125",
        "opening-grant = -1",
        "opening-grant = nan",
        "opening-grant = \"1e3\"",
    ] {
        assert!(granted(bad).is_err(), "{bad}");
    }
}

// D-92
#[test]
fn proxies_are_trusted_by_address_or_network_and_never_all() {
    let trusted = |text: &str| {
        toml::from_str::<ServeOptions>(text)
            .map(|o| o.into_settings().unwrap().trusted_proxies.len())
    };
    for (text, count) in [
        ("", 0),
        ("trusted-proxies = \"10.0.0.0/8\"", 1),
        ("trusted_proxies = [\"10.0.0.7\", \"2001:db8::/32\"]", 2),
    ] {
        assert_eq!(trusted(text).unwrap(), count, "{text}");
    }
    for bad in [
        "trusted-proxies = 10",
        "trusted-proxies = [\"0.0.0.0/0\"]",
        "trusted-proxies = [\"front\"]",
    ] {
        assert!(trusted(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_given_option_overrides_the_file() {
    let given: ServeOptions = toml::from_str("rate-limit = 5").unwrap();
    let file: ServeOptions =
        toml::from_str("rate_limit = 9\nmax-agents = 3\noperator-keys = [\"a\", \"b\"]").unwrap();
    let settings = given.with_fallback(file).into_settings().unwrap();
    assert_eq!(
        (
            settings.rate_limit,
            settings.hub.max_agents,
            settings.hub.operator_keys.len()
        ),
        (5, Some(3), 2)
    );
}
