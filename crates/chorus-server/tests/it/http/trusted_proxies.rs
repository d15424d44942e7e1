//! Client addresses behind a proxy: forwarded addresses are used only from trusted proxies (D-92).

use crate::support::actors::Answer;
use crate::support::hub::Hub;

const LISTED: &str = "x-forwarded-for";

async fn ask(hub: &Hub, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = hub.anonymous().request("GET", path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request).await.status
}

/// Asks with these headers until refused.
async fn exhaust(hub: &Hub, path: &str, headers: &[(&str, &str)]) {
    for _ in 0..60 {
        if ask(hub, path, headers).await == 429 {
            return;
        }
    }
    panic!("sixty requests went through a limit of twenty");
}

fn trusting(settings: &mut chorus_server::ServerSettings) {
    settings.rate_limit = 20;
    settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
}

story!(
    what_a_stranger_says_of_its_address_changes_nothing,
    with(|set| set.rate_limit = 20),
    |hub| async {
        exhaust(&hub, "/agents", &[]).await;
        for address in [
            "203.0.113.1",
            "203.0.113.2",
            "[2001:db8::1]:80",
            "127.0.0.1",
        ] {
            assert_eq!(
                ask(&hub, "/agents", &[(LISTED, address)]).await,
                429,
                "{address}"
            );
            assert_eq!(
                ask(
                    &hub,
                    "/agents",
                    &[("forwarded", &format!("for=\"{address}\""))]
                )
                .await,
                429,
                "{address}"
            );
        }
    }
);

story!(
    two_strangers_behind_a_trusted_proxy_have_a_bucket_each,
    with(trusting),
    |hub| async {
        exhaust(&hub, "/agents", &[(LISTED, "203.0.113.1")]).await;
        // However the proxy writes it, and whatever the stranger wrote before it.
        for (name, value) in [
            (LISTED, "203.0.113.1:4711"),
            (LISTED, "::ffff:203.0.113.1"),
            (LISTED, "203.0.113.2, 203.0.113.1, 127.0.0.9"),
            ("forwarded", "for=203.0.113.1;proto=https"),
            ("forwarded", "for=203.0.113.2, for=\"203.0.113.1:_x\""),
        ] {
            assert_eq!(
                ask(&hub, "/agents", &[(name, value)]).await,
                429,
                "{name}: {value}"
            );
        }
        for value in ["203.0.113.2", "2001:db8::1"] {
            assert_eq!(
                ask(&hub, "/agents", &[(LISTED, value)]).await,
                200,
                "{value}"
            );
        }
        // Names that hide an address, and what contradicts itself, are the proxy's own: it still has everything.
        for headers in [
            &[("forwarded", "for=_hidden")] as &[_],
            &[(LISTED, "203.0.113.1"), ("forwarded", "for=192.0.2.7")],
        ] {
            assert_eq!(ask(&hub, "/agents", headers).await, 200, "{headers:?}");
        }
    }
);

story!(
    who_guesses_secrets_behind_a_proxy_is_counted_by_its_own_address,
    with(trusting),
    |hub| async {
        let guess = format!("/inbox/sk_{}", "0".repeat(32));
        let post = async |from: &str| {
            Answer::of(hub.anonymous().request("POST", &guess).header(LISTED, from))
                .await
                .status
        };
        let mut refused = false;
        for _ in 0..60 {
            refused = refused || matches!(post("2001:db8::1").await, 429 | 503);
        }
        assert!(refused, "sixty guesses went through a limit of twenty");
        assert_eq!(post("203.0.113.2").await, 404);
    }
);
