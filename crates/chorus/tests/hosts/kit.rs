//! Finds the published hosts and tools, and runs them with an isolated environment and a timeout.

use crate::actors::{Agent, CommandOutput};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Max time of a host: long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(100);

pub struct HostKit {
    modules: PathBuf,
}

impl HostKit {
    /// `None` with a message if the hosts were not fetched.
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

    /// The program of a package that has one for each platform.
    fn native(&self, package: &str, program: &str) -> PathBuf {
        let os = std::env::consts::OS;
        let cpu = std::env::consts::ARCH;
        let os = if os == "macos" { "darwin" } else { os };
        let cpu = if cpu == "x86_64" { "x64" } else { "arm64" };
        self.modules
            .join(format!("{package}-{os}-{cpu}"))
            .join(program)
    }

    pub fn claude(&self) -> Command {
        Command::new(self.native("@anthropic-ai/claude-code", "claude"))
    }

    /// A package's script, run by node.
    pub fn script(&self, path: &str) -> Command {
        let mut command = self.node();
        command.arg(self.modules.join(path));
        command
    }

    pub fn modules(&self) -> &Path {
        &self.modules
    }

    /// The kit's own node if it has one.
    pub fn node(&self) -> Command {
        let node = self.native("node", "bin/node");
        Command::new(if node.exists() {
            node
        } else {
            PathBuf::from("node")
        })
    }
}

/// The tools in Python, in an environment of their own.
pub struct PythonKit {
    environment: PathBuf,
}

impl PythonKit {
    /// `None` with a message if the tools were not fetched.
    pub fn fetched() -> Option<Self> {
        let Some(folder) =
            std::env::var_os("CHORUS_TEST_PYTHON").filter(|folder| !folder.is_empty())
        else {
            println!("skipped: the tools in Python are not here; ./test --hosts fetches them");
            return None;
        };
        let environment = PathBuf::from(folder);
        assert!(
            environment.join("bin/python").exists(),
            "CHORUS_TEST_PYTHON has no Python: {}",
            environment.display()
        );
        Some(Self { environment })
    }

    pub fn program(&self, name: &str) -> Command {
        Command::new(self.environment.join("bin").join(name))
    }
}

/// The key in an agent's credentials.
pub fn read_key(agent: &Agent) -> String {
    let config = std::fs::read_to_string(agent.home.join(".chorus/config.json")).unwrap();
    serde_json::from_str::<Value>(&config).unwrap()["api_key"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Isolates a host: its own home, our program on the PATH, and no telemetry or updates.
pub fn isolate(command: &mut Command, home: &Path) {
    let binary = Path::new(env!("CARGO_BIN_EXE_chorus")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("NO_COLOR", "1")
        .current_dir(home);
    let disabled = [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    ];
    command
        .envs(disabled.map(|name| (name, "1")))
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DO_NOT_TRACK", "1");
    // Any other request goes to a closed local port.
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(proxy, "http://127.0.0.1:9");
    }
    command
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost");
}

/// Runs a command until it ends, and kills it after the timeout.
pub fn run(command: Command) -> CommandOutput {
    run_within(command, TIMEOUT)
}

pub fn run_within(mut command: Command, timeout: Duration) -> CommandOutput {
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
    let code = await_exit_code(&mut child, &command, timeout);
    CommandOutput {
        code,
        out: out.join().unwrap(),
        err: err.join().unwrap(),
    }
}

fn await_exit_code(child: &mut std::process::Child, command: &Command, timeout: Duration) -> i32 {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
