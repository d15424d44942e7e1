//! PostgreSQL over TLS: the connection is as secure as the URL requires, and no error contains the password (D-91).

use crate::actors::{Hub, chorus, run};
use crate::authority::Authority;
use crate::crash::{envelope, register_client};
use crate::faults::eventually;
use crate::network::{Net, Network};
use crate::postgres::other_user;
use crate::servers::Servers;
use std::path::Path;
use tokio_postgres::NoTls;

const PASSWORD: &str = "hidden-word";

async fn run_sql(servers: &Servers, text: &str) {
    let url = format!("postgres://postgres@{}/postgres", servers.postgres_address);
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(text).await.unwrap();
}

/// Restarts PostgreSQL so that it requires TLS: the role `hub` with its password, `keyed` with its certificate.
fn require_tls(servers: &mut Servers, authority: &Authority) {
    let signed = authority.sign_certificate("database", "IP:127.0.0.1");
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
    servers.stop_postgres();
    servers.start_postgres();
}

fn start_hub(folder: &Path, database: &str) -> Hub {
    Hub::start(folder, &["--database", database])
}

#[track_caller]
fn assert_refused(folder: &Path, database: &str, clue: &str) {
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
async fn a_hub_reconnects_when_its_database_starts_to_require_tls() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let Some(authority) = Authority::new(servers.folder.path(), "authority") else {
        return;
    };
    run_sql(
        &servers,
        &format!("create role hub superuser login password '{PASSWORD}'"),
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    let hub = start_hub(
        folder.path(),
        &format!(
            "postgres://hub:{PASSWORD}@{}/postgres",
            servers.postgres_address
        ),
    );
    let alice = register_client(&hub.url, "alice").await;
    alice
        .send_message("alice@chorus", &envelope("alice", "in the clear"), 0)
        .await
        .unwrap();
    require_tls(&mut servers, &authority);
    eventually("sending works again", async || {
        alice
            .send_message("alice@chorus", &envelope("alice", "in secret"), 0)
            .await
            .is_ok()
    })
    .await;
}

/// One role with a password and one that needs a certificate.
async fn create_roles(servers: &Servers) {
    let roles = format!(
        "create role hub superuser login password '{PASSWORD}'; create role keyed superuser login"
    );
    run_sql(servers, &roles).await;
}

/// What a hub says of a certificate that another authority has signed.
const UNTRUSTED: &str = "no authority that this hub trusts";

#[tokio::test(flavor = "multi_thread")]
async fn sslmode_is_respected_and_no_error_contains_the_password() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let Some(authority) = Authority::new(servers.folder.path(), "authority") else {
        return;
    };
    let other_authority = Authority::new(servers.folder.path(), "stranger").unwrap();
    create_roles(&servers).await;
    require_tls(&mut servers, &authority);
    let folder = tempfile::tempdir().unwrap();
    let at = servers.postgres_address;
    let url = |query: &str| format!("postgres://hub:{PASSWORD}@{at}/postgres?{query}");
    // The same server by a name that is not in its certificate.
    let named = format!("postgres://hub:{PASSWORD}@db.test:{}/postgres", at.port());
    let url_with_name = |query: &str| format!("{named}?hostaddr=127.0.0.1&{query}");
    let root = authority.root();
    let other = other_authority.root();
    for mode in ["verify-full", "verify-ca", "require"] {
        let database = url(&format!("sslmode={mode}&sslrootcert={other}"));
        assert_refused(folder.path(), &database, UNTRUSTED);
    }
    for (database, clue) in [
        (url("sslmode=disable"), "no encryption"),
        (url("sslmode=verify-full"), "sslrootcert"),
        (
            url_with_name(&format!("sslmode=verify-full&sslrootcert={root}")),
            "not for the name db.test",
        ),
        (
            url("sslmode=verify-full&sslrootcert=none.pem"),
            "sslrootcert none.pem",
        ),
        (url("sslmode=sometimes"), "sslmode"),
        (
            format!("postgres://hub:{PASSWORD}2@{at}/postgres?sslmode=require"),
            "password authentication failed",
        ),
        (
            format!("postgres://keyed:{PASSWORD}@{at}/postgres?sslmode=require"),
            "certificate",
        ),
    ] {
        assert_refused(folder.path(), &database, clue);
    }
    let signed = other_authority.sign_certificate("keyed", "DNS:keyed");
    let cert = |url: &str, cert: &Path, key: &Path| {
        format!(
            "{url}?sslmode=verify-full&sslrootcert={root}&sslcert={}&sslkey={}",
            cert.display(),
            key.display()
        )
    };
    let keyed = format!("postgres://keyed@{at}/postgres");
    assert_refused(folder.path(), &cert(&keyed, &signed.cert, &signed.key), "");
    assert_refused(
        folder.path(),
        &cert(&keyed, &signed.key, &signed.key),
        "sslcert",
    );
    let signed = authority.sign_certificate("keyed", "DNS:keyed");
    for database in [
        url("sslmode=prefer"),
        // Channel binding succeeds only if our hash of the certificate is correct.
        url("sslmode=require&channel_binding=require"),
        url_with_name(&format!("sslmode=verify-ca&sslrootcert={root}")),
        url(&format!("sslmode=verify-full&sslrootcert={root}")),
        cert(&keyed, &signed.cert, &signed.key),
    ] {
        let hub = start_hub(folder.path(), &database);
        register_client(&hub.url, &format!("agent{}", database.len())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_copy_verifies_the_certificate() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let Some(authority) = Authority::new(servers.folder.path(), "authority") else {
        return;
    };
    let other_authority = Authority::new(servers.folder.path(), "stranger").unwrap();
    run_sql(
        &servers,
        &format!("create role hub superuser login password '{PASSWORD}'"),
    )
    .await;
    require_tls(&mut servers, &authority);
    let folder = tempfile::tempdir().unwrap();
    drop(Hub::start(folder.path(), &["--data-dir", "old"]));
    let copy = |root: String| {
        let query = format!("sslmode=verify-full&sslrootcert={root}");
        let mut command = chorus(folder.path());
        command.args(["admin", "copy", "--data-dir", "old"]);
        command.env(
            "CHORUS_DATABASE",
            format!(
                "postgres://hub:{PASSWORD}@{}/postgres?{query}",
                servers.postgres_address
            ),
        );
        run(command, "")
    };
    let refused = copy(other_authority.root());
    assert!(
        refused.code == 1 && refused.err.contains("no authority that this hub trusts"),
        "{refused:?}"
    );
    assert!(!refused.err.contains("hidden"), "{refused:?}");
    copy(authority.root()).ok();
}

#[test]
fn a_remote_database_without_tls_needs_sslmode_disable_in_the_url() {
    let Some(network) = Network::create() else {
        return;
    };
    let Some(servers) = Servers::start_on(&network) else {
        return;
    };
    let node = network.node("hub");
    let wires = [Net::Clients, Net::Database].map(|net| network.wire(&node, net));
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("{}:0", wires[0].address);
    let serve = |query: &str| {
        let database = format!(
            "postgres://postgres:{PASSWORD}@{}/postgres{query}",
            servers.postgres_address
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
    drop(Hub::start_command(serve("?sslmode=disable")));
    drop(Hub::start_command(serve("?sslmode=prefer")));
}
