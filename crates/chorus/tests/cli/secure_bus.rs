//! NATS over TLS with authentication: unknown hubs are refused, and no error contains a secret (D-91).

use crate::actors::{Hub, chorus, run};
use crate::authority::{Authority, SignedCertificate};
use crate::crash::{envelope, register_client, register_with_key};
use crate::faults::{RawStream, eventually, send_frame};
use crate::servers::{Servers, await_condition, free_address};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chorus_client::http::ApiCall;
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A NATS server with its own settings.
struct NatsServer {
    at: SocketAddr,
    config: PathBuf,
    child: Option<Child>,
}

impl NatsServer {
    fn start(folder: &Path, name: &str, settings: &str) -> Self {
        let at = free_address();
        let config = folder.join(format!("{name}.conf"));
        let store = folder.join(name);
        let text = format!(
            "listen: \"{at}\"\njetstream {{ store_dir: \"{}\" }}\n{settings}\n",
            store.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut bus = Self {
            at,
            config,
            child: None,
        };
        bus.start_process();
        bus
    }

    /// As `deploy/nats.conf` configures it, except for its address.
    fn start_shipped(folder: &Path, password: &str) -> Self {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nats.conf");
        let at = free_address();
        let mut server = Command::new("nats-server");
        server
            .args(["-a", "127.0.0.1", "-p", &at.port().to_string()])
            .args(["-m", &free_address().port().to_string(), "-c"])
            .arg(&config)
            .arg("-sd")
            .arg(folder.join("shipped"))
            .env("NATS_PASSWORD", password)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = Some(server.spawn().unwrap());
        await_condition("NATS starts", || TcpStream::connect(at).is_ok());
        Self { at, config, child }
    }

    fn start_process(&mut self) {
        let mut server = Command::new("nats-server");
        server
            .arg("-c")
            .arg(&self.config)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(server.spawn().unwrap());
        await_condition("NATS starts", || TcpStream::connect(self.at).is_ok());
    }

    fn stop_process(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.stop_process();
        }
    }
}

fn tls_settings(signed: &SignedCertificate, extra: &str) -> String {
    format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\"{extra} }}",
        signed.cert.display(),
        signed.key.display()
    )
}

/// The permissions that a hub needs, as in docs/operations.md.
const ALLOWED: &str = "[\"chorus.>\", \"_INBOX.>\", \"$JS.API.>\"]";

fn user_settings(name: &str, password: &str) -> String {
    let permissions = format!("permissions: {{ publish: {ALLOWED}, subscribe: {ALLOWED} }}");
    format!(
        "authorization {{ users: [ {{ user: \"{name}\", password: \"{password}\", {permissions} }} ] }}"
    )
}

/// Starts hubs with all options except those of the bus.
struct HubStarter {
    servers: Servers,
    key: String,
}

impl HubStarter {
    fn open() -> Option<Self> {
        let servers = Servers::start()?;
        let key = servers.folder.path().join("shared.key");
        std::fs::write(&key, "5".repeat(64)).unwrap();
        Some(Self {
            servers,
            key: key.display().to_string(),
        })
    }

    fn options<'a>(&'a self, database: &'a str, bus_options: &[&'a str]) -> Vec<&'a str> {
        [
            &[
                "--database",
                database,
                "--seal-key-file",
                &self.key,
                "--log",
                "debug",
            ],
            bus_options,
        ]
        .concat()
    }

    fn database(&self) -> String {
        format!(
            "postgres://postgres@{}/postgres",
            self.servers.postgres_address
        )
    }

    fn hub(&self, name: &str, bus_options: &[&str]) -> Hub {
        let folder = self.servers.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = chorus(&folder);
        let database = self.database();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"])
            .args(self.options(&database, bus_options));
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = crate::actors::RunningProcess::start_with_log(command, log);
        let line = process.next_line();
        let url = line
            .strip_prefix("chorus listening on ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        Hub { url, process }
    }

    #[track_caller]
    fn assert_refused(&self, bus_options: &[&str], clue: &str) {
        let folder = self.servers.folder.path().join("refused");
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = chorus(&folder);
        let database = self.database();
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(self.options(&database, bus_options));
        let ended = run(command, "");
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (1, ""),
            "{bus_options:?}: {ended:?}"
        );
        let message = ended.err.lines().last().unwrap();
        assert!(
            message.starts_with("chorus: the bus: ") && message.contains(clue),
            "{bus_options:?}: {message}"
        );
        assert!(!ended.err.contains("hidden"), "{bus_options:?}: {ended:?}");
    }
}

/// Checks that a message is delivered from one hub to the other, and that a frame is accepted.
async fn assert_connected(near: &Hub, far: &Hub, number: usize) {
    let name = format!("alice{number}");
    let other = format!("bob{number}");
    let alice = register_client(&near.url, &name).await;
    let (bob, key) = register_with_key(&far.url, &other).await;
    let mut inbox = RawStream::open(far, &key);
    eventually("a message is delivered", async || {
        let sent = alice
            .send_message(&format!("{other}@chorus"), &envelope(&name, "hello"), 0)
            .await
            .unwrap();
        sent.sent.delivery == "delivered_sse"
    })
    .await;
    inbox.read_until("hello");
    eventually("a frame is accepted", async || {
        send_frame(&bob, &format!("~{other}"), "hello").await.0 == 200
    })
    .await;
    assert_eq!(
        bob.send_call(ApiCall::get("/ready")).await.unwrap().status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_connect_over_tls_with_a_password() {
    let Some(starter) = HubStarter::open() else {
        return;
    };
    let folder = starter.servers.folder.path();
    let Some(authority) = Authority::new(folder, "authority") else {
        return;
    };
    let root = authority.root();
    let other_root = Authority::new(folder, "stranger").unwrap().root();
    let signed = authority.sign_certificate("bus", "IP:127.0.0.1");
    let rules = format!(
        "{}\n{}",
        tls_settings(&signed, ""),
        user_settings("hub", "hidden,word")
    );
    let mut bus = NatsServer::start(folder, "bus", &rules);
    let at = bus.at;
    let misnamed = NatsServer::start(
        folder,
        "misnamed",
        &tls_settings(&authority.sign_certificate("misnamed", "DNS:bus.test"), ""),
    );
    let named = misnamed.at;
    let plain = starter.servers.nats_address;
    let good = format!("tls://hub:hidden%2Cword@{at}");
    for (url, root, clue) in [
        (&good, &other_root, "no authority that this hub trusts"),
        (
            &format!("tls://hub:hidden-other@{at}"),
            &root,
            "does not know us",
        ),
        (&format!("tls://{at}"), &root, "does not know us"),
        (
            &format!("tls://hidden-token@{at}"),
            &root,
            "does not know us",
        ),
        (
            &format!("tls://hidden:hidden@{named}"),
            &root,
            "not valid for name",
        ),
        (&format!("tls://hidden:hidden@{plain}"), &root, "no TLS"),
        // With a root certificate, or one tls:// server, no connection falls back to plain text.
        (&format!("nats://hidden:hidden@{plain}"), &root, "no TLS"),
        (&good, &format!("{root}.none"), "--bus-root-cert"),
    ] {
        starter.assert_refused(&["--bus", url, "--bus-root-cert", root], clue);
    }
    starter.assert_refused(&["--bus", &good], "--bus-root-cert");
    let unused = free_address();
    starter.assert_refused(
        &[
            "--bus",
            &format!("tls://hidden:hidden@{unused},nats://{plain}"),
        ],
        "",
    );
    // The first server is unreachable; its tls:// also applies to the second.
    let several = format!("tls://hub:hidden%2Cword@{unused},nats://{at}");
    let near = starter.hub("near", &["--bus", &several, "--bus-root-cert", &root]);
    let far = starter.hub("far", &["--bus", &good, "--bus-root-cert", &root]);
    assert_connected(&near, &far, 1).await;
    bus.stop_process();
    bus.start_process();
    assert_connected(&far, &near, 2).await;
    for name in ["near", "far"] {
        let log = std::fs::read_to_string(folder.join(name).join("log")).unwrap();
        assert!(log.contains("the bus") && !log.contains("hidden"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_authenticate_with_a_token_or_a_certificate() {
    let Some(starter) = HubStarter::open() else {
        return;
    };
    let folder = starter.servers.folder.path();
    let Some(authority) = Authority::new(folder, "authority") else {
        return;
    };
    let root = authority.root();
    let bus = NatsServer::start(folder, "token", "authorization { token: \"hidden-token\" }");
    starter.assert_refused(
        &["--bus", &format!("nats://hidden-other@{}", bus.at)],
        "does not know us",
    );
    let url = format!("nats://hidden-token@{}", bus.at);
    let near = starter.hub("a", &["--bus", &url]);
    let far = starter.hub("b", &["--bus", &url]);
    assert_connected(&near, &far, 1).await;
    drop((near, far));
    let signed = authority.sign_certificate("bus", "IP:127.0.0.1");
    let bus = NatsServer::start(
        folder,
        "own",
        &tls_settings(&signed, &format!(", ca_file: \"{root}\", verify: true")),
    );
    let own = authority.sign_certificate("hub", "DNS:hub");
    let cert = own.cert.display().to_string();
    let key = own.key.display().to_string();
    // The server requires TLS, so it is used although the URL is nats://.
    let url = format!("nats://{}", bus.at);
    starter.assert_refused(&["--bus", &url, "--bus-root-cert", &root], "");
    let credentials_args = [
        "--bus",
        &url,
        "--bus-root-cert",
        &root,
        "--bus-cert",
        &cert,
        "--bus-key",
        &key,
    ];
    let near = starter.hub("c", &credentials_args);
    let far = starter.hub("d", &credentials_args);
    assert_connected(&near, &far, 2).await;
}

/// A JWT in the format of NATS, signed by `issuer`.
fn sign_jwt(issuer: &KeyPair, subject: &KeyPair, name: &str, nats: Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(&json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let claims = json!({"jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name, "sub": subject.public_key(),
        "nats": nats});
    let text = format!("{head}.{}", part(&claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_authenticate_with_a_credentials_file() {
    let Some(starter) = HubStarter::open() else {
        return;
    };
    let folder = starter.servers.folder.path();
    let operator = KeyPair::new_operator();
    let system = KeyPair::new_account();
    let account = KeyPair::new_account();
    let user = KeyPair::new_user();
    let all = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
        "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1});
    let root = sign_jwt(
        &operator,
        &operator,
        "operator",
        json!({"type": "operator", "version": 2}),
    );
    let accounts = [(&system, "system"), (&account, "hubs")].map(|(key, name)| {
        let limits = if name == "hubs" {
            all.clone()
        } else {
            json!({"subs": -1, "data": -1, "payload": -1, "conn": -1})
        };
        let jwt = sign_jwt(
            &operator,
            key,
            name,
            json!({"type": "account", "version": 2, "limits": limits}),
        );
        format!("{}: {jwt}\n", key.public_key())
    });
    let rules = format!(
        "operator: {root}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n{} }}",
        system.public_key(),
        accounts.concat()
    );
    let credentials = |issuer: &KeyPair, name: &str| {
        let nats = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        let jwt = sign_jwt(issuer, &user, "hub", nats);
        let seed = user.seed().unwrap();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).display().to_string()
    };
    let bus = NatsServer::start(folder, "claims", &rules);
    let url = format!("nats://{}", bus.at);
    starter.assert_refused(&["--bus", &url], "does not know us");
    starter.assert_refused(
        &[
            "--bus",
            &url,
            "--bus-credentials",
            &credentials(&KeyPair::new_account(), "other"),
        ],
        "know us",
    );
    std::fs::write(folder.join("garbled"), "hidden").unwrap();
    let garbled = folder.join("garbled").display().to_string();
    starter.assert_refused(
        &["--bus", &url, "--bus-credentials", &garbled],
        "--bus-credentials",
    );
    let credentials_args = credentials(&account, "known");
    let credentials_args = ["--bus", &url, "--bus-credentials", &credentials_args];
    let near = starter.hub("near", &credentials_args);
    let far = starter.hub("far", &credentials_args);
    assert_connected(&near, &far, 1).await;
}

// D-106
#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_configuration_serves_hubs_with_its_password_only() {
    let Some(starter) = HubStarter::open() else {
        return;
    };
    let bus = NatsServer::start_shipped(starter.servers.folder.path(), "k2hidden1e9");
    let refused = "does not know us by this user";
    for user in ["", "chorus:k3hidden@", "admin:k2hidden1e9@"] {
        starter.assert_refused(&["--bus", &format!("nats://{user}{}", bus.at)], refused);
    }
    let url = format!("nats://chorus:k2hidden1e9@{}", bus.at);
    let hubs = ["a", "b"].map(|name| starter.hub(name, &["--bus", &url]));
    assert_connected(&hubs[0], &hubs[1], 0).await;
    let compose = include_str!("../../../../deploy/compose.yml");
    assert!(
        compose.contains("CHORUS_BUS: nats://chorus:${NATS_PASSWORD:?}@nats:4222"),
        "{compose}"
    );
    assert!(
        compose.contains("install -m 400 -o 10001") && !compose.contains("chmod"),
        "the seal key is readable by the hub's user alone: {compose}"
    );
}
