//! A hub and its PostgreSQL over TLS: the line is as secret as the URL asks for, and a refusal tells no password (D-91).

use crate::actors::{Hub, chorus, run};
use crate::authority::Authority;
use crate::crash::{envelope, join};
use crate::faults::eventually;
use crate::network::{Net, Network};
use crate::postgres::other_user;
use crate::servers::Servers;
use std::path::Path;
use tokio_postgres::NoTls;

const WORD: &str = "hidden-word";

async fn sql(servers: &Servers, text: &str) {
    let url = format!("postgres://postgres@{}/postgres", servers.postgres_at);
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(text).await.unwrap();
}

/// From now on the server takes nobody without TLS: the hub by its password, `keyed` by its certificate.
fn encrypt(servers: &mut Servers, authority: &Authority) {
    let signed = authority.signs("database", "IP:127.0.0.1");
    if let Some((uid, gid)) = other_user() {
        std::os::unix::fs::chown(&signed.key, Some(uid), Some(gid)).unwrap();
    }
    let data = servers.folder.path().join("pg");
    let settings = format!(
        "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\nssl_ca_file = '{}'\n",
        signed.cert.display(),
        signed.key.display(),
        authority.root()
    );
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(data.join("postgresql.conf"))
        .unwrap();
    std::io::Write::write_all(&mut file, settings.as_bytes()).unwrap();
    let rules = "hostssl all hub 127.0.0.1/32 scram-sha-256\nhostssl all keyed 127.0.0.1/32 cert\n";
    std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
    servers.postgres_down();
    servers.postgres_up();
}

fn starts(folder: &Path, database: &str) -> Hub {
    Hub::start(folder, &["--database", database])
}

#[track_caller]
fn is_refused(folder: &Path, database: &str, clue: &str) {
    let mut command = chorus(folder);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("CHORUS_DATABASE", database);
    let ended = run(command, "");
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.lines().count()),
        (1, "", 1),
        "{database}: {ended:?}"
    );
    assert!(
        ended.err.contains(clue) && !ended.err.contains("hidden"),
        "{database}: {ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_goes_on_when_its_database_begins_to_insist_on_tls() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let Some(authority) = Authority::new(servers.folder.path(), "authority") else {
        return;
    };
    sql(
        &servers,
        &format!("create role hub superuser login password '{WORD}'"),
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    let hub = starts(
        folder.path(),
        &format!("postgres://hub:{WORD}@{}/postgres", servers.postgres_at),
    );
    let alice = join(&hub.url, "alice").await;
    alice
        .send_message("alice@chorus", &envelope("alice", "in the clear"), 0)
        .await
        .unwrap();
    encrypt(&mut servers, &authority);
    eventually("it sends again", async || {
        alice
            .send_message("alice@chorus", &envelope("alice", "in secret"), 0)
            .await
            .is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_to_postgresql_is_as_secret_as_its_url_asks_for_and_no_refusal_tells_the_password() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let Some(authority) = Authority::new(servers.folder.path(), "authority") else {
        return;
    };
    let stranger = Authority::new(servers.folder.path(), "stranger").unwrap();
    let roles = format!(
        "create role hub superuser login password '{WORD}'; create role keyed superuser login"
    );
    sql(&servers, &roles).await;
    encrypt(&mut servers, &authority);
    let (folder, at) = (tempfile::tempdir().unwrap(), servers.postgres_at);
    let url = |query: &str| format!("postgres://hub:{WORD}@{at}/postgres?{query}");
    // The same server by a name that its certificate does not have.
    let named = |query: &str| {
        format!(
            "postgres://hub:{WORD}@db.test:{}/postgres?hostaddr=127.0.0.1&{query}",
            at.port()
        )
    };
    let (root, other) = (authority.root(), stranger.root());
    for (database, clue) in [
        (url("sslmode=disable"), "no encryption"),
        (url("sslmode=verify-full"), "sslrootcert"),
        (
            url(&format!("sslmode=verify-full&sslrootcert={other}")),
            "nobody we trust",
        ),
        (
            url(&format!("sslmode=verify-ca&sslrootcert={other}")),
            "nobody we trust",
        ),
        (
            url(&format!("sslmode=require&sslrootcert={other}")),
            "nobody we trust",
        ),
        (
            named(&format!("sslmode=verify-full&sslrootcert={root}")),
            "not for the name db.test",
        ),
        (
            url("sslmode=verify-full&sslrootcert=none.pem"),
            "sslrootcert none.pem",
        ),
        (url("sslmode=sometimes"), "sslmode"),
        (
            format!("postgres://hub:{WORD}2@{at}/postgres?sslmode=require"),
            "password authentication failed",
        ),
        (
            format!("postgres://keyed:{WORD}@{at}/postgres?sslmode=require"),
            "certificate",
        ),
    ] {
        is_refused(folder.path(), &database, clue);
    }
    let signed = stranger.signs("keyed", "DNS:keyed");
    let cert = |url: &str, cert: &Path, key: &Path| {
        format!(
            "{url}?sslmode=verify-full&sslrootcert={root}&sslcert={}&sslkey={}",
            cert.display(),
            key.display()
        )
    };
    let keyed = format!("postgres://keyed@{at}/postgres");
    is_refused(folder.path(), &cert(&keyed, &signed.cert, &signed.key), "");
    is_refused(
        folder.path(),
        &cert(&keyed, &signed.key, &signed.key),
        "sslcert",
    );
    let signed = authority.signs("keyed", "DNS:keyed");
    for database in [
        url("sslmode=prefer"),
        // That both ends bind the password to the same certificate shows that ours is hashed as it should be.
        url("sslmode=require&channel_binding=require"),
        named(&format!("sslmode=verify-ca&sslrootcert={root}")),
        url(&format!("sslmode=verify-full&sslrootcert={root}")),
        cert(&keyed, &signed.cert, &signed.key),
    ] {
        let hub = starts(folder.path(), &database);
        join(&hub.url, &format!("agent{}", database.len())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_moves_to_postgresql_over_a_line_that_is_checked() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let Some(authority) = Authority::new(servers.folder.path(), "authority") else {
        return;
    };
    let stranger = Authority::new(servers.folder.path(), "stranger").unwrap();
    sql(
        &servers,
        &format!("create role hub superuser login password '{WORD}'"),
    )
    .await;
    encrypt(&mut servers, &authority);
    let folder = tempfile::tempdir().unwrap();
    drop(Hub::start(folder.path(), &["--data-dir", "old"]));
    let copy = |root: String| {
        let query = format!("sslmode=verify-full&sslrootcert={root}");
        let mut command = chorus(folder.path());
        command.args(["admin", "copy", "--data-dir", "old"]);
        command.env(
            "CHORUS_DATABASE",
            format!(
                "postgres://hub:{WORD}@{}/postgres?{query}",
                servers.postgres_at
            ),
        );
        run(command, "")
    };
    let refused = copy(stranger.root());
    assert!(
        refused.code == 1 && refused.err.contains("nobody we trust"),
        "{refused:?}"
    );
    assert!(!refused.err.contains("hidden"), "{refused:?}");
    copy(authority.root()).ok();
}

#[test]
fn a_database_on_another_machine_is_told_nothing_in_the_clear_unless_the_url_says_so() {
    let Some(network) = Network::make() else {
        return;
    };
    let Some(servers) = Servers::start_on(&network) else {
        return;
    };
    let node = network.node("hub");
    let wires = [Net::Clients, Net::Database].map(|net| network.wire(&node, net));
    let (folder, listen) = (
        tempfile::tempdir().unwrap(),
        format!("{}:0", wires[0].address),
    );
    let serve = |query: &str| {
        let database = format!(
            "postgres://postgres:{WORD}@{}/postgres{query}",
            servers.postgres_at
        );
        node.run(
            &Hub::command(
                folder.path(),
                &["--listen", &listen, "--database", &database],
            ),
            None,
        )
    };
    let ended = run(serve(""), "");
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
    assert!(
        ended.err.contains("another machine") && ended.err.contains("sslmode=disable"),
        "{ended:?}"
    );
    assert!(!ended.err.contains("hidden"), "{ended:?}");
    drop(Hub::begin(serve("?sslmode=disable")));
    drop(Hub::begin(serve("?sslmode=prefer")));
}
