//! One PostgreSQL server per test binary, or the one that `./test` started, with a new database per story.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tokio_postgres::NoTls;

/// A database that is dropped when a later story asks for one of its own.
pub struct Database {
    pub url: String,
    name: String,
}

static FINISHED: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Drop for Database {
    fn drop(&mut self) {
        FINISHED
            .lock()
            .unwrap()
            .push(std::mem::take(&mut self.name));
    }
}

impl Database {
    /// `None`, with a message, where PostgreSQL is not installed; under CI that is a failure.
    pub async fn fresh() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let server = tokio::task::spawn_blocking(server).await.unwrap()?;
        let (client, connection) = tokio_postgres::connect(&server.database("postgres"), NoTls)
            .await
            .expect("PostgreSQL answers");
        tokio::spawn(connection);
        for name in finished(&client).await {
            // Another process may be dropping it at the same moment.
            let _ = client
                .batch_execute(&format!("drop database if exists {name} with (force)"))
                .await;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("story_{}_{number}", std::process::id());
        client
            .batch_execute(&format!("create database {name}"))
            .await
            .unwrap();
        Some(Self {
            url: server.database(&name),
            name,
        })
    }
}

/// The databases of stories that are over: this process's, and those of processes that have ended.
async fn finished(client: &tokio_postgres::Client) -> Vec<String> {
    let mut names = std::mem::take(&mut *FINISHED.lock().unwrap());
    let rows = client
        .query(
            "select datname from pg_database where datname like 'story%'",
            &[],
        )
        .await
        .unwrap();
    let gone = |name: &String| {
        let process = name.split('_').nth(1).unwrap_or_default();
        !Path::new("/proc").join(process).exists()
    };
    names.extend(rows.iter().map(|row| row.get::<_, String>(0)).filter(gone));
    names
}

struct Server {
    /// Everything before the database's name.
    base: String,
    // Its standard input is a pipe from this process: when the process ends, however it ends, the guard reads the end of
    // the pipe, stops the server and removes its files.
    _guard: Option<Child>,
}

impl Server {
    fn database(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }
}

fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER
        .get_or_init(|| {
            // Where every test is a process of its own, each would otherwise start a server of its own.
            if let Ok(url) = std::env::var("CHORUS_TEST_POSTGRES") {
                let (base, _) = url
                    .rsplit_once('/')
                    .expect("CHORUS_TEST_POSTGRES ends in /database");
                return Some(Server {
                    base: base.into(),
                    _guard: None,
                });
            }
            let Some(bin) = binaries() else {
                assert!(
                    std::env::var_os("CI").is_none(),
                    "PostgreSQL is not installed, and CI runs every story on it"
                );
                return None;
            };
            Some(launch(&bin))
        })
        .as_ref()
        .or_else(|| {
            eprintln!("skipped on PostgreSQL: it is not installed");
            None
        })
}

/// The newest version that Debian's or Fedora's layout has.
pub fn binaries() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .chain([PathBuf::from("/usr/bin")])
        .filter(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
        .collect();
    found.sort();
    found.pop()
}

fn launch(bin: &Path) -> Server {
    let dir = tempfile::Builder::new()
        .prefix("chorus-stories-pg-")
        .tempdir()
        .unwrap()
        .keep();
    let data = dir.join("data");
    if let Some((uid, gid)) = other_user() {
        std::os::unix::fs::chown(&dir, Some(uid), Some(gid)).unwrap();
    }
    let log = std::fs::File::create(dir.join("log")).unwrap();
    let mut initdb = as_postgres(&bin.join("initdb"));
    initdb.args([
        "--auth=trust",
        "--username=postgres",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "-D",
    ]);
    let made = initdb.arg(&data).stdout(Stdio::null()).status().unwrap();
    assert!(made.success(), "initdb failed");
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let script = r#"
        "$1" -D "$2/data" -p "$3" -k "" -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=300 &
        pid=$!
        cat >/dev/null
        kill -QUIT $pid
        wait $pid
        rm -rf "$2"/* ; rmdir "$2" 2>/dev/null
    "#;
    let mut guard = as_postgres(Path::new("sh"));
    guard
        .args(["-c", script, "guard"])
        .arg(bin.join("postgres"))
        .arg(&dir)
        .arg(port.to_string());
    let logs = (log.try_clone().unwrap(), log);
    // Its own process group: Ctrl-C ends the stories, and only then the guard.
    let guard = guard
        .stdin(Stdio::piped())
        .stdout(logs.0)
        .stderr(logs.1)
        .process_group(0)
        .spawn()
        .unwrap();
    await_server(bin, port, &dir);
    Server {
        base: format!("postgres://postgres@127.0.0.1:{port}"),
        _guard: Some(guard),
    }
}

fn await_server(bin: &Path, port: u16, dir: &Path) {
    for _ in 0..300 {
        let ready = Command::new(bin.join("pg_isready"))
            .args([
                "-q",
                "-h",
                "127.0.0.1",
                "-U",
                "postgres",
                "-p",
                &port.to_string(),
            ])
            .status();
        if ready.is_ok_and(|status| status.success()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!(
        "PostgreSQL did not start: {}",
        std::fs::read_to_string(dir.join("log")).unwrap_or_default()
    );
}

/// PostgreSQL refuses to run as root, so root runs it as the user that its package made.
pub fn other_user() -> Option<(u32, u32)> {
    let number = |args: &[&str]| -> Option<u32> {
        let output = Command::new("id").args(args).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    if number(&["-u"]) != Some(0) {
        return None;
    }
    Some((number(&["-u", "postgres"])?, number(&["-g", "postgres"])?))
}

pub fn as_postgres(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if let Some((uid, gid)) = other_user() {
        command.uid(uid).gid(gid);
    }
    command
}
