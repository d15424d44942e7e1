//! Hubs and their NATS over TLS and under its rules: who is not known is not let in, and a refusal tells no secret (D-91).

use crate::actors::{Hub, chorus, run};
use crate::authority::{Authority, Signed};
use crate::crash::{envelope, join, join_with_key};
use crate::faults::{Inbox, eventually, frame};
use crate::servers::{Servers, await_so, free};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chorus_client::http::ApiCall;
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A NATS server with settings of its own.
struct Bus {
    at: SocketAddr,
    config: PathBuf,
    child: Option<Child>,
}

impl Bus {
    fn start(folder: &Path, name: &str, settings: &str) -> Self {
        let at = free();
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
        bus.up();
        bus
    }

    fn up(&mut self) {
        let mut server = Command::new("nats-server");
        server
            .arg("-c")
            .arg(&self.config)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(server.spawn().unwrap());
        await_so("NATS starts", || TcpStream::connect(self.at).is_ok());
    }

    fn down(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.down();
        }
    }
}

fn encrypted(signed: &Signed, more: &str) -> String {
    format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\"{more} }}",
        signed.cert.display(),
        signed.key.display()
    )
}

/// What a hub has to be allowed, as docs/operations.md has it.
const ALLOWED: &str = "[\"chorus.>\", \"_INBOX.>\", \"$JS.API.>\"]";

fn user(name: &str, word: &str) -> String {
    let may = format!("permissions: {{ publish: {ALLOWED}, subscribe: {ALLOWED} }}");
    format!("authorization {{ users: [ {{ user: \"{name}\", password: \"{word}\", {may} }} ] }}")
}

/// How a hub is started on these servers: its folder, and everything but the bus.
struct Stage {
    servers: Servers,
    key: String,
}

impl Stage {
    fn open() -> Option<Self> {
        let servers = Servers::start()?;
        let key = servers.folder.path().join("shared.key");
        std::fs::write(&key, "5".repeat(64)).unwrap();
        Some(Self {
            servers,
            key: key.display().to_string(),
        })
    }

    fn options<'a>(&'a self, database: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [
            &[
                "--database",
                database,
                "--seal-key-file",
                &self.key,
                "--log",
                "debug",
            ],
            more,
        ]
        .concat()
    }

    fn database(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.servers.postgres_at)
    }

    fn hub(&self, name: &str, more: &[&str]) -> Hub {
        let folder = self.servers.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = chorus(&folder);
        let database = self.database();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"])
            .args(self.options(&database, more));
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = crate::actors::Ongoing::start_with(command, log);
        let line = process.line();
        let url = line
            .strip_prefix("chorus listening on ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        Hub { url, process }
    }

    #[track_caller]
    fn is_refused(&self, more: &[&str], clue: &str) {
        let folder = self.servers.folder.path().join("refused");
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = chorus(&folder);
        let database = self.database();
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(self.options(&database, more));
        let ended = run(command, "");
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (1, ""),
            "{more:?}: {ended:?}"
        );
        let said = ended.err.lines().last().unwrap();
        assert!(
            said.starts_with("chorus: the bus: ") && said.contains(clue),
            "{more:?}: {said}"
        );
        assert!(!ended.err.contains("hidden"), "{more:?}: {ended:?}");
    }
}

/// A message goes from one hub to the other, and a frame is taken for all of them.
async fn hear_one_another(near: &Hub, far: &Hub, number: usize) {
    let (name, other) = (format!("alice{number}"), format!("bob{number}"));
    let (alice, (bob, key)) = (
        join(&near.url, &name).await,
        join_with_key(&far.url, &other).await,
    );
    let mut inbox = Inbox::open(far, &key);
    eventually("a message is delivered", async || {
        let sent = alice
            .send_message(&format!("{other}@chorus"), &envelope(&name, "hello"), 0)
            .await
            .unwrap();
        sent.sent.delivery == "delivered_sse"
    })
    .await;
    inbox.until("hello");
    eventually("a frame is taken", async || {
        frame(&bob, &format!("~{other}"), "hello").await.0 == 200
    })
    .await;
    assert_eq!(
        bob.send_call(ApiCall::get("/ready")).await.unwrap().status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_meet_on_a_bus_that_is_encrypted_and_lets_in_whom_it_knows() {
    let Some(stage) = Stage::open() else { return };
    let folder = stage.servers.folder.path();
    let Some(authority) = Authority::new(folder, "authority") else {
        return;
    };
    let (root, stranger) = (
        authority.root(),
        Authority::new(folder, "stranger").unwrap().root(),
    );
    let signed = authority.signs("bus", "IP:127.0.0.1");
    let rules = format!("{}\n{}", encrypted(&signed, ""), user("hub", "hidden,word"));
    let mut bus = Bus::start(folder, "bus", &rules);
    let at = bus.at;
    let misnamed = Bus::start(
        folder,
        "misnamed",
        &encrypted(&authority.signs("misnamed", "DNS:bus.test"), ""),
    );
    let (named, plain) = (misnamed.at, stage.servers.nats_at);
    let good = format!("tls://hub:hidden%2Cword@{at}");
    for (url, root, clue) in [
        (&good, &stranger, "nobody we trust"),
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
        // Whoever names a root, or one encrypted server, is not led to talk in the clear by another.
        (&format!("nats://hidden:hidden@{plain}"), &root, "no TLS"),
        (&good, &format!("{root}.none"), "--bus-root-cert"),
    ] {
        stage.is_refused(&["--bus", url, "--bus-root-cert", root], clue);
    }
    stage.is_refused(&["--bus", &good], "--bus-root-cert");
    let nobody = free();
    stage.is_refused(
        &[
            "--bus",
            &format!("tls://hidden:hidden@{nobody},nats://{plain}"),
        ],
        "",
    );
    // The first of them is not there; that one of them is encrypted holds for both.
    let several = format!("tls://hub:hidden%2Cword@{nobody},nats://{at}");
    let near = stage.hub("near", &["--bus", &several, "--bus-root-cert", &root]);
    let far = stage.hub("far", &["--bus", &good, "--bus-root-cert", &root]);
    hear_one_another(&near, &far, 1).await;
    bus.down();
    bus.up();
    hear_one_another(&far, &near, 2).await;
    for name in ["near", "far"] {
        let log = std::fs::read_to_string(folder.join(name).join("log")).unwrap();
        assert!(log.contains("the bus") && !log.contains("hidden"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_is_known_to_its_bus_by_a_token_or_by_its_certificate() {
    let Some(stage) = Stage::open() else { return };
    let folder = stage.servers.folder.path();
    let Some(authority) = Authority::new(folder, "authority") else {
        return;
    };
    let root = authority.root();
    let bus = Bus::start(folder, "token", "authorization { token: \"hidden-token\" }");
    stage.is_refused(
        &["--bus", &format!("nats://hidden-other@{}", bus.at)],
        "does not know us",
    );
    let url = format!("nats://hidden-token@{}", bus.at);
    let (near, far) = (
        stage.hub("a", &["--bus", &url]),
        stage.hub("b", &["--bus", &url]),
    );
    hear_one_another(&near, &far, 1).await;
    drop((near, far));
    let signed = authority.signs("bus", "IP:127.0.0.1");
    let bus = Bus::start(
        folder,
        "own",
        &encrypted(&signed, &format!(", ca_file: \"{root}\", verify: true")),
    );
    let own = authority.signs("hub", "DNS:hub");
    let (cert, key) = (
        own.cert.display().to_string(),
        own.key.display().to_string(),
    );
    // The server asks for TLS by itself: it is spoken also where the URL does not.
    let url = format!("nats://{}", bus.at);
    stage.is_refused(&["--bus", &url, "--bus-root-cert", &root], "");
    let known = [
        "--bus",
        &url,
        "--bus-root-cert",
        &root,
        "--bus-cert",
        &cert,
        "--bus-key",
        &key,
    ];
    let (near, far) = (stage.hub("c", &known), stage.hub("d", &known));
    hear_one_another(&near, &far, 2).await;
}

/// Something said by `issuer`, as NATS has it signed.
fn claim(issuer: &KeyPair, about: &KeyPair, name: &str, nats: Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(&json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let said = json!({"jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name, "sub": about.public_key(),
        "nats": nats});
    let text = format!("{head}.{}", part(&said));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_is_known_to_its_bus_by_a_credentials_file() {
    let Some(stage) = Stage::open() else { return };
    let folder = stage.servers.folder.path();
    let (operator, system, account, user) = (
        KeyPair::new_operator(),
        KeyPair::new_account(),
        KeyPair::new_account(),
        KeyPair::new_user(),
    );
    let all = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
        "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1});
    let root = claim(
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
        let jwt = claim(
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
        let jwt = claim(issuer, &user, "hub", nats);
        let seed = user.seed().unwrap();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).display().to_string()
    };
    let bus = Bus::start(folder, "claims", &rules);
    let url = format!("nats://{}", bus.at);
    stage.is_refused(&["--bus", &url], "does not know us");
    stage.is_refused(
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
    stage.is_refused(
        &["--bus", &url, "--bus-credentials", &garbled],
        "--bus-credentials",
    );
    let known = credentials(&account, "known");
    let known = ["--bus", &url, "--bus-credentials", &known];
    let (near, far) = (stage.hub("near", &known), stage.hub("far", &known));
    hear_one_another(&near, &far, 1).await;
}
