//! Where a webhook may lead (lesson 3, R-38).

use crate::receiver::{Receiver, Table, http};
use crate::{patient, post};
use chorus_hub::delivery::outgoing::guard::AddressGuard;
use chorus_hub::delivery::outgoing::{OutgoingClient, OutgoingPolicy, PostError};
use chorus_wire::Code;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::net::TcpListener;

/// First and last address of each range that is nobody's webhook.
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

/// On either side of the ranges above, and public.
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

fn strict(names: std::sync::Arc<Table>) -> OutgoingClient {
    OutgoingClient::new(OutgoingPolicy {
        allow_private: false,
        resolver: names,
        ..patient()
    })
}

fn literal(ip: &str) -> String {
    if ip.contains(':') {
        format!("http://[{ip}]:9/hook")
    } else {
        format!("http://{ip}:9/hook")
    }
}

async fn is_refused(out: &OutgoingClient, url: &str) {
    let refused = out.check_endpoint(url).await.expect_err(url);
    assert_eq!(refused.code, Code::EndpointBlocked, "{url}");
    assert_eq!(post(out, url).await, Err(PostError::Blocked), "{url}");
}

// lesson 3: a literal never reaches the resolver, so it is judged on its own
#[tokio::test]
async fn every_special_range_is_refused_as_a_literal() {
    let names = Table::of(&[&["8.8.8.8"]]);
    let out = strict(names.clone());
    for (first, last) in REFUSED {
        is_refused(&out, &literal(first)).await;
        is_refused(&out, &literal(last)).await;
    }
    assert_eq!(names.asked(), 0);
}

// lesson 3: the ranges nobody listed, by name
#[tokio::test]
async fn every_special_range_is_refused_behind_a_name() {
    for (first, last) in REFUSED {
        is_refused(&strict(Table::of(&[&[first]])), "http://hook.test:9/").await;
        is_refused(&strict(Table::of(&[&[last]])), "http://hook.test:9/").await;
        is_refused(
            &strict(Table::of(&[&["8.8.8.8", last]])),
            "http://hook.test:9/",
        )
        .await;
    }
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

// lesson 3: whatever an address is spelt like, it is the address
#[tokio::test]
async fn odd_spellings_of_loopback_are_refused() {
    let names = Table::of(&[&["8.8.8.8"]]);
    let out = strict(names.clone());
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
        is_refused(&out, url).await;
    }
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn what_is_not_a_web_address_is_refused_as_malformed() {
    let out = strict(Table::of(&[&["8.8.8.8"]]));
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
            out.check_endpoint(url).await.expect_err(url).code,
            Code::Validation,
            "{url}"
        );
        assert!(
            matches!(
                post(&out, url).await,
                Err(PostError::Unreachable(_) | PostError::Blocked)
            ),
            "{url}"
        );
    }
}

// the port of the printed example is a word
#[tokio::test]
async fn a_port_that_is_no_number_is_admitted_and_never_reached() {
    let out = strict(Table::of(&[&["8.8.8.8"]]));
    assert!(
        out.check_endpoint("https://agent-host:port/jobs")
            .await
            .is_ok()
    );
    assert!(matches!(
        post(&out, "https://agent-host:port/jobs").await,
        Err(PostError::Unreachable(_))
    ));
}

//
#[tokio::test]
async fn a_name_that_does_not_resolve_is_admitted_and_judged_at_each_connection() {
    let out = strict(Table::of(&[&[], &[], &["10.0.0.1"]]));
    assert!(out.check_endpoint("http://later.test/").await.is_ok());
    assert!(matches!(
        post(&out, "http://later.test/").await,
        Err(PostError::Unreachable(_))
    ));
    assert_eq!(
        post(&out, "http://later.test/").await,
        Err(PostError::Blocked)
    );
}

// lesson 3: checked, then resolved again. 127.0.0.2 plays the public address.
#[tokio::test]
async fn a_name_that_changes_its_mind_is_connected_to_where_it_was_checked() {
    let public = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = public.local_addr().unwrap().port();
    let private = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let ok = http("200 OK", "Connection: close\r\n", "{}");
    let speak = move |mut stream: tokio::net::TcpStream| {
        let ok = ok.clone();
        async move {
            tokio::io::AsyncWriteExt::write_all(&mut stream, ok.as_bytes())
                .await
                .ok()
                .and(None)
        }
    };
    let (public, private) = (
        Receiver::on(public, speak.clone()),
        Receiver::on(private, speak),
    );
    let names = Table::of(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let except = vec!["127.0.0.2".parse().unwrap()];
    let out = OutgoingClient::new(OutgoingPolicy {
        allow_private: false,
        resolver: names.clone(),
        allowed_addresses: except,
        ..patient()
    });
    let url = format!("http://rebind.test:{port}/");

    assert_eq!(post(&out, &url).await.unwrap().status, 200);
    assert_eq!(
        (public.heard().len(), names.asked()),
        (1, 1),
        "one look-up, and the connection went where it said"
    );
    assert_eq!(
        post(&out, &url).await,
        Err(PostError::Blocked),
        "the next connection is judged anew"
    );
    assert!(private.heard().is_empty());
}

#[tokio::test]
async fn a_hub_that_allows_private_addresses_reaches_them_by_name_and_by_literal() {
    let receiver = Receiver::saying(http("200 OK", "", "{}")).await;
    let out = OutgoingClient::new(OutgoingPolicy {
        resolver: Table::of(&[&["127.0.0.1"]]),
        ..patient()
    });
    let named = format!("http://inside.test:{}/", receiver.at.port());
    for url in [named, receiver.url()] {
        assert!(out.check_endpoint(&url).await.is_ok());
        assert_eq!(post(&out, &url).await.unwrap().status, 200);
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
