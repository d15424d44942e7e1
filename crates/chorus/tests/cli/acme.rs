//! `chorus serve --tls-acme`: the binary gets, keeps and renews certificates of an ACME server on the loopback (D-117).

use crate::acme_authority::{TestAuthority, TlsClient};
use crate::acme_check::connect_as_authority;
use crate::acme_server::AcmeServer;
use crate::actors::{RunningProcess, chorus, run};
use crate::servers::{await_condition, free_address};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub const DOMAIN: &str = "hub.example";

/// A hub with a certificate from an authority, and its log.
pub struct AcmeHub {
    pub process: RunningProcess,
    pub at: SocketAddr,
    log: PathBuf,
}

impl AcmeHub {
    pub fn start(folder: &Path, at: SocketAddr, options: &[&str]) -> Self {
        let log = folder.join("hub.log");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let listen = at.to_string();
        let mut command = chorus(folder);
        command
            .args(["serve", "--listen", &listen, "--log", "debug"])
            .args(["--data-dir", "data"])
            .args(options);
        let process = RunningProcess::start_with_log(command, file);
        // The name in the certificate is the only URL that clients accept.
        let line = process.next_line();
        assert_eq!(line, format!("chorus listening on https://{DOMAIN}"));
        Self { process, at, log }
    }

    pub fn read_log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    #[track_caller]
    pub fn await_log(&self, text: &str) {
        await_condition(text, || self.read_log().contains(text));
    }

    /// Waits until a client that trusts the authority can connect.
    #[track_caller]
    pub fn await_certificate(&self, authority: &TestAuthority) -> TlsClient {
        let mut connected = None;
        await_condition("a certificate", || {
            connected = authority.connect(self.at, DOMAIN).ok();
            connected.is_some()
        });
        connected.unwrap()
    }

    pub fn stop(mut self) {
        self.process.send_signal("TERM");
        assert_eq!(self.process.await_exit(), Some(0));
    }
}

/// The log is shown when a test fails.
impl Drop for AcmeHub {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.read_log());
        }
    }
}

pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}

// D-117
#[test]
fn a_hub_gets_a_certificate_that_clients_accept_and_keeps_it_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start_secure(at);
    let root = folder.path().join("root.pem");
    std::fs::write(&root, acme.authority.root_pem()).unwrap();
    let options = [
        "--tls-acme",
        "hub.example,WWW.hub.example",
        "--tls-acme-email",
        "ops@example.com",
        "--tls-acme-directory",
        &acme.directory,
        "--tls-acme-ca",
        root.to_str().unwrap(),
    ];
    let hub = AcmeHub::start(folder.path(), at, &options);
    let mut client = hub.await_certificate(&acme.authority);
    assert_eq!(client.alpn().as_deref(), Some(b"http/1.1" as &[u8]));
    let first = client.certificate();
    let (status, ready) = client.get("/ready", DOMAIN);
    assert_eq!(
        (status, &ready["data"]["certificate"]["state"]),
        (200, &"ok".into())
    );
    assert!(
        ready["data"]["certificate"]["expires_at"].is_string(),
        "{ready}"
    );
    // Links name the hub as the certificate does.
    let (_, discovery) = client.get("/.well-known/mcp.json", DOMAIN);
    assert!(
        discovery.to_string().contains("https://hub.example/"),
        "{discovery}"
    );
    // The other name is in the certificate too, and a name that is not is refused by the client.
    let mut www = acme.authority.connect(at, "www.hub.example").unwrap();
    assert_eq!(www.get("/health", "www.hub.example").0, 200);
    assert!(acme.authority.connect(at, "other.example").is_err());
    let contact = acme.state.lock().unwrap().accounts[0].contact.clone();
    assert_eq!(contact, serde_json::json!(["mailto:ops@example.com"]));
    // After the order no challenge is answered.
    assert!(connect_as_authority(at, DOMAIN).is_err());
    hub.stop();

    let hub = AcmeHub::start(folder.path(), at, &options);
    let client = hub.await_certificate(&acme.authority);
    assert_eq!(
        client.certificate(),
        first,
        "another certificate after a restart"
    );
    assert_eq!(acme.orders(), 1, "a restart orders nothing");
    assert_eq!(acme.state.lock().unwrap().accounts.len(), 1);
    check_secrets(&hub, &folder.path().join("data/acme"));
}

/// Account and certificate are readable by their owner only, and no key is in the log.
fn check_secrets(hub: &AcmeHub, acme_folder: &Path) {
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(acme_folder), 0o700);
    let files = files_below(acme_folder);
    assert_eq!(files.len(), 3, "{files:?}");
    let log = hub.read_log();
    assert!(!log.contains("PRIVATE KEY"));
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
        let text = std::fs::read_to_string(&file).unwrap();
        // Any line or value of a key would do; the long ones are the keys.
        for secret in text.split(['\n', '"']).filter(|part| part.len() > 40) {
            assert!(!log.contains(secret), "{file:?} is in the log");
        }
    }
}

// D-117
#[test]
fn a_certificate_is_renewed_while_connections_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start(at);
    acme.state.lock().unwrap().lifetime_seconds = 15;
    let options = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme-directory",
        &acme.directory,
    ];
    let hub = AcmeHub::start(folder.path(), at, &options);
    let mut early = hub.await_certificate(&acme.authority);
    let first = early.certificate();
    assert_eq!(acme.orders(), 1);
    await_condition("a renewed certificate", || {
        let client = acme
            .authority
            .connect(at, DOMAIN)
            .expect("one is always valid");
        client.certificate() != first
    });
    assert_eq!(acme.orders(), 2, "one order for each certificate");
    assert_eq!(
        early.get("/health", DOMAIN).0,
        200,
        "the connection was dropped"
    );
}

// D-117
#[test]
fn another_set_of_names_or_another_authority_needs_another_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start(at);
    let directory = acme.directory.as_str();
    let options = ["--tls-acme", DOMAIN, "--tls-acme-directory", directory];
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_certificate(&acme.authority);
    hub.stop();
    let more = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme",
        "b.example",
        "--tls-acme-directory",
        directory,
    ];
    let hub = AcmeHub::start(folder.path(), at, &more);
    await_condition("both names", || {
        acme.authority.connect(at, "b.example").is_ok()
    });
    assert_eq!(
        (acme.orders(), acme.state.lock().unwrap().accounts.len()),
        (2, 1)
    );
    hub.stop();
    let other = AcmeServer::start(at);
    let options = [
        "--tls-acme",
        DOMAIN,
        "--tls-acme-directory",
        &other.directory,
    ];
    let hub = AcmeHub::start(folder.path(), at, &options);
    hub.await_certificate(&other.authority);
    assert_eq!((acme.orders(), other.orders()), (2, 1));
}

// D-117
#[test]
fn options_that_cannot_work_stop_the_start_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    let bus = [
        "--database",
        "postgres://127.0.0.1/x",
        "--bus",
        "nats://127.0.0.1:1",
    ];
    for (args, clues) in [
        (
            &["--tls-acme", "192.0.2.7"] as &[&str],
            &["192.0.2.7", "address"] as &[&str],
        ),
        (&["--tls-acme", "*.example.com"], &["wildcard"]),
        (&["--tls-acme", "my_hub.example"], &["my_hub.example"]),
        (
            &[
                "--tls-acme",
                DOMAIN,
                "--tls-acme-directory",
                "http://ca.example/dir",
            ],
            &["http://ca.example/dir", "https"],
        ),
        (
            &["--tls-acme", DOMAIN, "--tls-acme-email", "no-address"],
            &["no-address", "e-mail"],
        ),
        (
            &[
                "--tls-acme",
                DOMAIN,
                "--tls-cert",
                "c.pem",
                "--tls-key",
                "k.pem",
            ],
            &["--tls-acme", "--tls-cert"],
        ),
        (
            &["--tls-acme-email", "ops@example.com"],
            &["--tls-acme DOMAIN"],
        ),
        (
            &["--tls-acme", DOMAIN, "--tls-acme-ca", "none.pem"],
            &["none.pem"],
        ),
        (
            &["--tls-acme", DOMAIN, "--tls-acme-ca", "empty.pem"],
            &["empty.pem", "no certificate"],
        ),
        (
            &["--tls-acme", DOMAIN, bus[0], bus[1], bus[2], bus[3]],
            &["--bus", "proxy"],
        ),
    ] {
        let mut command = chorus(folder.path());
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args);
        let output = run(command, "");
        assert_eq!(
            (output.code, output.out.as_str()),
            (1, ""),
            "{args:?}: {output:?}"
        );
        for clue in clues {
            assert!(output.err.contains(clue), "{args:?}: {}", output.err);
        }
    }
}

// D-117
#[test]
fn the_options_may_stand_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let acme = AcmeServer::start(at);
    let text = format!(
        "tls-acme = [\"{DOMAIN}\"]\ntls-acme-directory = \"{}\"\npublic-url = \"https://other.example\"\n",
        acme.directory
    );
    std::fs::write(folder.path().join("chorus.toml"), text).unwrap();
    let hub = AcmeHub::start(folder.path(), at, &[]);
    let mut client = hub.await_certificate(&acme.authority);
    let (_, discovery) = client.get("/.well-known/mcp.json", DOMAIN);
    assert!(
        discovery.to_string().contains("https://other.example/"),
        "{discovery}"
    );
}
