//! The SSRF guard: which addresses a webhook may reach (lesson 3, R-38).

use crate::receiver::{NameTable, Receiver, http_answer};
use crate::{long_deadline_policy, post};
use chorus_hub::delivery::outgoing::address_guard::{AddressGuard, OwnHost};
use chorus_hub::delivery::outgoing::{OutgoingClient, OutgoingPolicy, PostError};
use chorus_wire::ErrorCode;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::net::TcpListener;

/// First and last address of each range that a webhook must not reach.
const REFUSED: [(&str, &str); 37] = [
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.254"),
    ("255.255.255.255", "255.255.255.255"),
    ("::", "::1"),
    ("::7f00:1", "::ffff:ffff"),
    ("::ffff:127.0.0.1", "::ffff:127.255.255.255"),
    ("::ffff:10.0.0.0", "::ffff:10.255.255.255"),
    ("::ffff:169.254.169.254", "::ffff:169.254.255.255"),
    ("64:ff9b::", "64:ff9b::ffff:ffff"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
    ("100::", "100::ffff:ffff:ffff:ffff"),
    ("2001::", "2001::ffff:ffff:ffff"),
    ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),
    ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:20::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("4000::", "4000::1"),
];

/// Public addresses next to the ranges above.
const ALLOWED: [&str; 22] = [
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "2001:200::",
    "2001:db9::",
    "2003::",
    "2606:4700::1111",
];

fn public_only_client(resolver: std::sync::Arc<NameTable>) -> OutgoingClient {
    OutgoingClient::new(OutgoingPolicy {
        allow_private: false,
        resolver,
        ..long_deadline_policy()
    })
}

fn literal_url(ip: &str) -> String {
    if ip.contains(':') {
        format!("http://[{ip}]:9/hook")
    } else {
        format!("http://{ip}:9/hook")
    }
}

async fn assert_refused(client: &OutgoingClient, url: &str) {
    let refused = client.check_endpoint(url).expect_err(url);
    assert_eq!(refused.code, ErrorCode::EndpointBlocked, "{url}");
    assert_eq!(post(client, url).await, Err(PostError::Blocked), "{url}");
}

// lesson 3: a literal address never reaches the resolver, so it is checked on its own
#[tokio::test]
async fn every_special_range_is_refused_as_a_literal() {
    let names = NameTable::from_rows(&[&["8.8.8.8"]]);
    let client = public_only_client(names.clone());
    for (first, last) in REFUSED {
        assert_refused(&client, &literal_url(first)).await;
        assert_refused(&client, &literal_url(last)).await;
    }
    assert_eq!(names.lookup_count(), 0);
}

/// registering the name tells nothing about where it leads; the post is refused.
async fn assert_name_refused(addresses: &[&str]) {
    let names = NameTable::from_rows(&[addresses]);
    let client = public_only_client(names.clone());
    let url = "http://hook.test:9/";
    assert!(client.check_endpoint(url).is_ok(), "{addresses:?}");
    assert_eq!(names.lookup_count(), 0, "no look-up at registration");
    assert_eq!(
        post(&client, url).await,
        Err(PostError::Blocked),
        "{addresses:?}"
    );
}

// lesson 3: a name that resolves to a special range
#[tokio::test]
async fn every_special_range_is_refused_behind_a_name() {
    for (first, last) in REFUSED {
        assert_name_refused(&[first]).await;
        assert_name_refused(&[last]).await;
        assert_name_refused(&["8.8.8.8", last]).await;
    }
}

// A post to the machine's own public address would go past its firewall.
#[tokio::test]
async fn of_its_own_machine_the_hub_reaches_only_itself() {
    let own_host = OwnHost {
        public_url: Some("https://hub.test".parse().unwrap()),
        is_own_address: |address| address == Ipv4Addr::new(8, 8, 4, 4),
    };
    let client = |addresses: &[&str]| {
        OutgoingClient::new(OutgoingPolicy {
            allow_private: false,
            own_host: own_host.clone(),
            resolver: NameTable::from_rows(&[addresses]),
            ..long_deadline_policy()
        })
    };
    let own_client = client(&["8.8.4.4"]);
    for url in [
        "http://8.8.4.4:9100/metrics",
        "https://8.8.4.4/",
        "http://[::ffff:8.8.4.4]/",
        "https://hub.test:5432/",
        "http://HUB.test/",
    ] {
        assert_refused(&own_client, url).await;
    }
    let url = "http://other.test/";
    assert_eq!(
        post(&own_client, url).await,
        Err(PostError::Blocked),
        "{url}"
    );
    for url in ["https://hub.test/inbox/x", "https://HUB.test:443/inbox/x"] {
        own_client.check_endpoint(url).expect(url);
    }
    let own_address = IpAddr::from([8, 8, 4, 4]);
    let guard = AddressGuard {
        own_host: own_host.clone(),
        ..AddressGuard::default()
    };
    assert!(guard.is_allowed_for("hub.test", own_address));
    assert!(!guard.is_allowed_for("other.test", own_address));
    assert!(guard.is_allowed_for("other.test", [8, 8, 8, 8].into()));
    let guard = AddressGuard::default();
    assert!((guard.own_host.is_own_address)(Ipv4Addr::LOCALHOST.into()));
    assert!(!(guard.own_host.is_own_address)(
        Ipv4Addr::new(8, 8, 8, 8).into()
    ));
}

#[test]
fn public_neighbours_of_the_special_ranges_are_allowed() {
    for ip in ALLOWED {
        assert!(
            AddressGuard::default().is_allowed(ip.parse().unwrap()),
            "{ip}"
        );
    }
}

// lesson 3: an address is checked however it is spelt
#[tokio::test]
async fn odd_spellings_of_loopback_are_refused() {
    let names = NameTable::from_rows(&[&["8.8.8.8"]]);
    let client = public_only_client(names.clone());
    let spellings = [
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://0/",
        "http://１２７.０.０.１/",
        "http://%31%32%37.0.0.1/",
        "http:\\\\127.0.0.1\\hook",
        "http://public.test@127.0.0.1/",
        "http://[::ffff:7f00:1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://localhost/",
        "http://LOCALHOST:80/",
        "http://localhost./",
        "https://a.b.localhost/",
    ];
    for url in spellings {
        assert_refused(&client, url).await;
    }
    assert_eq!(names.lookup_count(), 0);
}

#[tokio::test]
async fn a_malformed_url_is_refused() {
    let client = public_only_client(NameTable::from_rows(&[&["8.8.8.8"]]));
    for url in [
        "",
        "hook",
        "/hook",
        "ftp://8.8.8.8/",
        "file:///etc/hosts",
        "http://",
        "http://[::1",
        "http://1.2.3.999/",
    ] {
        assert_eq!(
            client.check_endpoint(url).expect_err(url).code,
            ErrorCode::Validation,
            "{url}"
        );
        assert!(
            matches!(
                post(&client, url).await,
                Err(PostError::Unreachable(_) | PostError::Blocked)
            ),
            "{url}"
        );
    }
}

// the port of the printed example is a word
#[tokio::test]
async fn a_port_that_is_no_number_is_admitted_and_never_reached() {
    let client = public_only_client(NameTable::from_rows(&[&["8.8.8.8"]]));
    assert!(
        client
            .check_endpoint("https://agent-host:port/jobs")
            .is_ok()
    );
    assert!(matches!(
        post(&client, "https://agent-host:port/jobs").await,
        Err(PostError::Unreachable(_))
    ));
}

//
#[tokio::test]
async fn a_name_that_does_not_resolve_is_admitted_and_checked_at_each_connection() {
    let client = public_only_client(NameTable::from_rows(&[&[], &["10.0.0.1"]]));
    assert!(client.check_endpoint("http://later.test/").is_ok());
    assert!(matches!(
        post(&client, "http://later.test/").await,
        Err(PostError::Unreachable(_))
    ));
    assert_eq!(
        post(&client, "http://later.test/").await,
        Err(PostError::Blocked)
    );
}

// lesson 3: DNS rebinding. 127.0.0.2 stands for the public address.
#[tokio::test]
async fn the_connection_goes_to_the_checked_address_even_if_the_name_changes() {
    let public = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = public.local_addr().unwrap().port();
    let private = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let ok = http_answer("200 OK", "Connection: close\r\n", "{}");
    let answer = move |mut stream: tokio::net::TcpStream| {
        let ok = ok.clone();
        async move {
            tokio::io::AsyncWriteExt::write_all(&mut stream, ok.as_bytes())
                .await
                .ok()
                .and(None)
        }
    };
    let public = Receiver::on_listener(public, answer.clone());
    let private = Receiver::on_listener(private, answer);
    let names = NameTable::from_rows(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let allowed_addresses = vec!["127.0.0.2".parse().unwrap()];
    let client = OutgoingClient::new(OutgoingPolicy {
        allow_private: false,
        resolver: names.clone(),
        allowed_addresses,
        ..long_deadline_policy()
    });
    let url = format!("http://rebind.test:{port}/");

    assert_eq!(post(&client, &url).await.unwrap().status, 200);
    assert_eq!(
        (public.requests().len(), names.lookup_count()),
        (1, 1),
        "one look-up, and the connection went to its address"
    );
    assert_eq!(
        post(&client, &url).await,
        Err(PostError::Blocked),
        "the next connection is checked again"
    );
    assert!(private.requests().is_empty());
}

#[tokio::test]
async fn a_hub_that_allows_private_addresses_reaches_them_by_name_and_by_literal() {
    let receiver = Receiver::answering(http_answer("200 OK", "", "{}")).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        resolver: NameTable::from_rows(&[&["127.0.0.1"]]),
        ..long_deadline_policy()
    });
    let named = format!("http://inside.test:{}/", receiver.address.port());
    for url in [named, receiver.url()] {
        assert!(client.check_endpoint(&url).is_ok());
        assert_eq!(post(&client, &url).await.unwrap().status, 200);
    }
}

proptest! {
    // lesson 3: `[::ffff:127.0.0.1]`
    #[test]
    fn an_ipv4_address_is_refused_exactly_when_its_mapped_form_is(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let guard = AddressGuard::default();
        prop_assert_eq!(guard.is_allowed(IpAddr::V4(address)), guard.is_allowed(IpAddr::V6(address.to_ipv6_mapped())));
    }

    #[test]
    fn nothing_outside_the_public_blocks_is_allowed(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        let public = (0x2000..0x4000).contains(&address.segments()[0]) || address.to_ipv4_mapped().is_some();
        prop_assert!(public || !AddressGuard::default().is_allowed(IpAddr::V6(address)));
    }
}
