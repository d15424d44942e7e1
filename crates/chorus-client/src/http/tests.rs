//! The URLs of hubs, and names in their paths.

use super::*;

#[test]
fn a_hub_url_is_plain_http_or_https() {
    assert_eq!(
        parse_base_url("http://127.0.0.1:3000/").unwrap(),
        "http://127.0.0.1:3000"
    );
    assert_eq!(
        parse_base_url("https://hub.example/chorus/").unwrap(),
        "https://hub.example/chorus"
    );
    for bad in [
        "",
        "hub.example",
        "ftp://hub.example",
        "http://a:b@hub.example",
        "http://hub.example/?x=1",
    ] {
        assert!(matches!(parse_base_url(bad), Err(Error::Input(_))), "{bad}");
    }
}

#[test]
fn an_encoded_name_stays_within_its_path_segment() {
    assert_eq!(encode_segment("alice@chorus"), "alice@chorus");
    assert_eq!(encode_segment("a/../b?c#d"), "a%2F..%2Fb%3Fc%23d");
    assert_eq!(encode_segment(".."), "%2E%2E");
    assert_eq!(encode_segment("é"), "%C3%A9");
}
