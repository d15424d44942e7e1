//! Where the published hosts are, and how one of them is run: with nothing of our surroundings, within a bounded time.

use crate::actors::Ended;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a busy machine; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(100);

pub struct Kit {
    modules: PathBuf,
}

impl Kit {
    /// None, and a word about it, when nobody fetched the hosts.
    pub fn fetched() -> Option<Self> {
        let Some(folder) =
            std::env::var_os("CHORUS_TEST_HOSTS").filter(|folder| !folder.is_empty())
        else {
            println!("skipped: the hosts are not here; ./test --hosts fetches them");
            return None;
        };
        let modules = Path::new(&folder).join("node_modules");
        assert!(
            modules.is_dir(),
            "CHORUS_TEST_HOSTS has no node_modules: {}",
            modules.display()
        );
        Some(Self { modules })
    }

    /// A program of a package that ships one for each platform.
    fn native(&self, package: &str, program: &str) -> PathBuf {
        let (os, cpu) = (std::env::consts::OS, std::env::consts::ARCH);
        let (os, cpu) = (
            if os == "macos" { "darwin" } else { os },
            if cpu == "x86_64" { "x64" } else { "arm64" },
        );
        self.modules
            .join(format!("{package}-{os}-{cpu}"))
            .join(program)
    }

    pub fn claude(&self) -> Command {
        Command::new(self.native("@anthropic-ai/claude-code", "claude"))
    }

    /// A package's script, with the runtime that came with the kit where there is one.
    pub fn script(&self, path: &str) -> Command {
        let node = self.native("node", "bin/node");
        let mut command = if node.exists() {
            Command::new(node)
        } else {
            Command::new("node")
        };
        command.arg(self.modules.join(path));
        command
    }
}

/// The same for every host: a home of its own, our program on its path, and every way it has of calling home shut.
pub fn alone(command: &mut Command, home: &Path) {
    let binary = Path::new(env!("CARGO_BIN_EXE_chorus")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("NO_COLOR", "1")
        .current_dir(home);
    let shut = [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    ];
    command
        .envs(shut.map(|name| (name, "1")))
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DO_NOT_TRACK", "1");
    // Whatever it tries all the same meets a closed port of this machine.
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(proxy, "http://127.0.0.1:9");
    }
    command
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost");
}

/// Runs it to its end, and ends it when it takes too long.
pub fn run(mut command: Command) -> Ended {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let drain = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = drain(Box::new(child.stdout.take().unwrap()));
    let err = drain(Box::new(child.stderr.take().unwrap()));
    let code = await_end(&mut child, &command);
    Ended {
        code,
        out: out.join().unwrap(),
        err: err.join().unwrap(),
    }
}

fn await_end(child: &mut std::process::Child, command: &Command) -> i32 {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > until {
            let _ = child.kill();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
