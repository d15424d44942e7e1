//! `chorus serve --tls-acme` when no certificate can be had: the hub runs, says why, and never orders too often (D-117).

use crate::acme::{AcmeHub, DOMAIN};
use crate::acme_server::AcmeServer;
use crate::actors::{chorus, run};
use crate::servers::{await_condition, free_address};
use std::net::TcpListener;

// D-117
#[test]
fn a_hub_starts_without_its_authority_and_keeps_trying() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let directory_at = free_address();
    let directory = format!("http://{directory_at}/dir");
    let options = ["--tls-acme", DOMAIN, "--tls-acme-directory", &directory];
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_log("no certificate yet, so no client can connect");
    let log = hub.read_log();
    assert!(
        log.contains(&directory) && log.contains("check that URL"),
        "{log}"
    );
    // Until there is one, the handshake fails: a made-up certificate would teach people to accept it.
    for command in [
        &["register", "anna", "--culture", "en"] as &[&str],
        &["doctor"],
    ] {
        let mut client = chorus(folder.path());
        client
            .args(command)
            .args(["--hub", &format!("https://{at}")]);
        let output = run(client, "");
        let text = output.out + &output.err;
        assert!(text.contains("the hub has no certificate yet"), "{text}");
    }
    let acme = AcmeServer::start_on(TcpListener::bind(directory_at).unwrap(), at, false);
    hub.await_certificate(&acme.authority);
    assert_eq!(acme.orders(), 1);
}

// D-117
#[test]
fn a_failed_check_says_what_to_mend_and_is_not_repeated_soon() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start(free_address());
    let options = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme-directory",
        &acme.directory,
    ];
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_log("no certificate yet");
    let log = hub.read_log();
    for clue in [
        "cannot connect to port 443 of hub.example",
        "firewall",
        "wait_seconds=60",
    ] {
        assert!(log.contains(clue), "{clue}: {log}");
    }
    assert_eq!(acme.orders(), 1, "the authority is asked again at once");
    hub.stop();
    // A person who has mended the port starts the hub again, and need not wait.
    acme.state.lock().unwrap().hub_at = at;
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_certificate(&acme.authority);
    assert_eq!(acme.orders(), 2);
}

// D-117
#[test]
fn a_hub_in_a_restart_loop_stays_within_the_authority_s_limit() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start(free_address());
    let options = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme-directory",
        &acme.directory,
    ];
    for starts in 1..=4 {
        let hub = AcmeHub::start(folder.path(), at, &options);
        await_condition("this start fails too", || {
            hub.read_log().matches("no certificate yet").count() == starts
        });
        hub.stop();
    }
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_log("recent orders failed: the hub waits");
    assert_eq!(acme.orders(), 4);
}

// D-117
#[test]
fn a_name_that_leads_elsewhere_is_said_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    // Something that closes every connection stands where the name leads.
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let acme = AcmeServer::start(elsewhere.local_addr().unwrap());
    std::thread::spawn(move || elsewhere.incoming().for_each(drop));
    let options = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme-directory",
        &acme.directory,
    ];
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_log("port 443 of hub.example does not lead to this hub");
    hub.await_log("A and AAAA records");
}

// D-117
#[test]
fn a_rate_limit_is_obeyed_even_when_the_hub_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start(at);
    acme.state.lock().unwrap().order_problem = Some(("rateLimited", "7200"));
    let options = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme-directory",
        &acme.directory,
    ];
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_log("takes no further orders for a while");
    hub.await_log("wait_seconds=7200");
    hub.await_log("too many certificates for these names");
    hub.stop();
    acme.state.lock().unwrap().order_problem = None;
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_log("recent orders failed");
    assert_eq!(acme.orders(), 1);
}

// D-117
#[test]
fn an_old_certificate_serves_while_its_renewal_fails() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start(at);
    acme.state.lock().unwrap().lifetime_seconds = 45;
    let options = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme-directory",
        &acme.directory,
    ];
    let hub = AcmeHub::start(folder.path(), at, &options);
    let first = hub.await_certificate(&acme.authority).certificate();
    acme.state.lock().unwrap().hub_at = free_address();
    await_condition("the renewal fails", || {
        hub.read_log().contains("the certificate was not renewed")
    });
    let mut client = acme.authority.connect(at, DOMAIN).unwrap();
    assert_eq!(client.certificate(), first);
    let (status, ready) = client.get("/ready", DOMAIN);
    let certificate = &ready["data"]["certificate"];
    assert_eq!((status, &certificate["state"]), (200, &"failing".into()));
    let problem = certificate["problem"].as_str().unwrap();
    assert!(problem.contains("port 443 of hub.example"), "{problem}");
    assert!(certificate["next_attempt_at"].is_string() && certificate["expires_at"].is_string());
}
