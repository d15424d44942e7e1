//! One NATS server per test binary, or the one that `./test` started.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A NATS server that is stopped when this is dropped.
pub struct NatsServer {
    pub url: String,
    // Its standard input is a pipe from this process: when the process ends, however it ends, the guard stops the server.
    _guard: Option<Child>,
}

/// `None`, with a message, where NATS is not installed; under CI that is a failure.
pub fn shared_server_url() -> Option<&'static str> {
    static SERVER: OnceLock<Option<NatsServer>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        if let Ok(url) = std::env::var("CHORUS_TEST_NATS") {
            return Some(NatsServer { url, _guard: None });
        }
        start_server()
    });
    server.as_ref().map(|server| server.url.as_str())
}

/// A server for one story, which may stop it or send it messages that no hub would send.
pub fn start_server() -> Option<NatsServer> {
    let there = Command::new("nats-server")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if there.is_ok_and(|status| status.success()) {
        return Some(launch_server());
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "NATS is not installed, and CI tells every story to several hubs"
    );
    eprintln!("skipped with several hubs: NATS is not installed");
    None
}

/// One NATS cluster of three servers, named `n0`, `n1` and `n2`.
pub fn start_three_servers() -> Option<Vec<NatsServer>> {
    drop(start_server()?);
    let routes = [(); 3].map(|()| free_port());
    let all = routes
        .map(|port| format!("nats://127.0.0.1:{port}"))
        .join(", ");
    let one = |n: usize| {
        let cluster = format!(
            "cluster {{ name: three, listen: \"127.0.0.1:{}\", routes: [{all}] }}",
            routes[n]
        );
        launch_server_with(&format!("server_name: n{n}\n{cluster}"))
    };
    Some((0..3).map(one).collect())
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn launch_server() -> NatsServer {
    launch_server_with("")
}

fn launch_server_with(more: &str) -> NatsServer {
    let port = free_port();
    let dir = tempfile::Builder::new()
        .prefix("chorus-stories-nats-")
        .tempdir()
        .unwrap()
        .keep();
    // Every story leaves a memory stream behind, which uses nothing but its reserved size.
    let config = format!(
        "jetstream {{ store_dir: \"{}\", max_memory_store: 1000GB }}\n{more}\n",
        dir.display()
    );
    std::fs::write(dir.join("nats.conf"), config).unwrap();
    let script = r#"
        nats-server -a 127.0.0.1 -p "$2" -c "$1/nats.conf" &
        pid=$!
        cat >/dev/null
        kill -KILL $pid
        wait $pid
        rm -rf "$1"
    "#;
    let mut guard = Command::new("sh");
    guard
        .args(["-c", script, "guard"])
        .arg(&dir)
        .arg(port.to_string());
    // Its own process group: Ctrl-C ends the stories, and only then the guard.
    let guard = guard
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    await_open(port);
    NatsServer {
        url: format!("nats://127.0.0.1:{port}"),
        _guard: Some(guard),
    }
}

fn await_open(port: u16) {
    for _ in 0..300 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("NATS did not start");
}
