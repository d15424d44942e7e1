//! nginx in front of the hubs, configured by `deploy/nginx.conf` with only addresses and paths replaced.

use crate::actors::{RunningProcess, TIMEOUT};
use crate::deploy_unit::read_shipped;
use crate::servers::{Servers, await_condition, free_address, is_available};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct NginxFront {
    nginx: RunningProcess,
    pub at: SocketAddr,
    pub secure: SocketAddr,
    folder: PathBuf,
}

fn find_nginx() -> Option<PathBuf> {
    let candidates =
        ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"].map(PathBuf::from);
    let found = candidates.into_iter().find(|path| path.exists());
    if is_available("nginx", found.is_some()) {
        found
    } else {
        None
    }
}

fn make_certificate(folder: &Path) {
    let output = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
        ])
        .args([
            "-subj",
            "/CN=hub.example",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(folder)
        .output();
    assert!(
        output.unwrap().status.success(),
        "openssl creates a certificate"
    );
}

/// The shipped file with local addresses and paths, and with the TLS lines enabled.
fn local_configuration(
    folder: &Path,
    hubs: [SocketAddr; 3],
    at: SocketAddr,
    secure: SocketAddr,
) -> String {
    let folder_name = folder.display();
    let temp_paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder_name}/{kind};"));
    let mut text = read_shipped("nginx.conf");
    for (shipped, local) in [
        ("hub-a:3000", hubs[0].to_string()),
        ("hub-b:3000", hubs[1].to_string()),
        ("hub-c:3000", hubs[2].to_string()),
        ("/var/log/nginx", folder_name.to_string()),
        ("listen 80 ", format!("listen {at} ")),
        ("# listen 443 ", format!("listen {secure} ")),
        ("# ssl_certificate ", "ssl_certificate ".to_owned()),
        ("# ssl_certificate_key ", "ssl_certificate_key ".to_owned()),
        ("/etc/chorus", folder_name.to_string()),
        ("http {", format!("http {{\n{}", temp_paths.join("\n"))),
    ] {
        assert!(text.contains(shipped), "{shipped}");
        text = text.replace(shipped, &local);
    }
    text
}

/// Stopped with SIGTERM: after SIGKILL its workers would keep running.
impl Drop for NginxFront {
    fn drop(&mut self) {
        self.nginx.send_signal("TERM");
        self.nginx.await_exit();
    }
}

impl NginxFront {
    pub fn start(servers: &Servers, hubs: [SocketAddr; 3]) -> Option<Self> {
        let program = find_nginx()?;
        let folder = servers.folder.path().join("nginx");
        std::fs::create_dir(&folder).unwrap();
        make_certificate(&folder);
        let at = free_address();
        let secure = free_address();
        std::fs::write(
            folder.join("nginx.conf"),
            local_configuration(&folder, hubs, at, secure),
        )
        .unwrap();
        let mut command = Command::new(program);
        command
            .arg("-p")
            .arg(&folder)
            .arg("-c")
            .arg(folder.join("nginx.conf"));
        command
            .arg("-g")
            .arg(format!("daemon off; pid {}/pid;", folder.display()));
        let process = RunningProcess::start(command);
        await_condition("nginx starts", || TcpStream::connect(at).is_ok());
        Some(Self {
            nginx: process,
            at,
            secure,
            folder,
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    pub fn read_logs(&self) -> String {
        ["access.log", "error.log"]
            .map(|name| std::fs::read_to_string(self.folder.join(name)).unwrap())
            .concat()
    }
}

/// One raw connection to nginx.
pub struct FrontConnection(pub TcpStream, String);

impl FrontConnection {
    pub fn open(at: SocketAddr, head: &str) -> Self {
        let mut socket = TcpStream::connect(at).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket
            .write_all(format!("{head}\r\n\r\n").as_bytes())
            .unwrap();
        Self(socket, String::new())
    }

    pub fn send_chunk(&mut self, text: &str) {
        self.0
            .write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
            .unwrap();
    }

    /// Reads until this text, after the text of the previous call; panics if the connection ends before.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut buffer = [0; 4096];
        while !self.1.contains(text) {
            let count = self.0.read(&mut buffer).unwrap();
            assert!(count > 0, "the connection ended before {text}: {}", self.1);
            self.1.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let end = self.1.find(text).unwrap() + text.len();
        self.1.drain(..end).collect()
    }
}

pub fn open_inbox(at: SocketAddr, key: &str) -> FrontConnection {
    let mut connection = FrontConnection::open(
        at,
        &format!("GET /agent/inbox HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}"),
    );
    connection.read_until("connected");
    connection
}
