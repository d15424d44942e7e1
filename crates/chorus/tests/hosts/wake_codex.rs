//! Mail wakes an idle session of the real Codex, by its queue (WAK-16, WAK-12).

use crate::actors::{Agent, Scene};
use crate::codex::configure;
use crate::kit::{HostKit, isolate};
use crate::model::Model;
use crate::processes::{kill_process, list_processes};
use crate::terminal::Terminal;
use crate::wake::{
    HOSTILE_TEXT, MESSAGE_INTERVAL, Measure, SENDERS, await_end_of_pause, await_turn_where,
    await_waker, newest_turn, send_burst,
};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Instant;

/// How many wakes in a conversation name this sender; Codex is told no word of the message.
pub fn count_notices(conversation: &str, name: &str) -> usize {
    let notices = conversation.split(" for alice@chorus, from ").skip(1);
    let address = format!("{name}@chorus");
    let is_named = |notice: &&str| {
        let senders = notice.split(". Read with").next();
        senders.is_some_and(|senders| senders.contains(&address))
    };
    notices.filter(is_named).count()
}

/// The tools with `--wake`, and a folder that the user trusts.
pub fn set_up_codex<'a>(kit: &HostKit, agent: &'a Agent, model: &Model) -> CodexHost<'a> {
    configure(agent, model);
    agent
        .run(&["init", "--target", "codex", "--wake", "--no-hooks"])
        .ok();
    let config = agent.home.join(".codex/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    // In the file, because with options on the command line Codex runs without its background server, and looks into its
    // queue every ten seconds only.
    let server = "[mcp_servers.chorus]\n";
    assert!(text.contains(server), "{text}");
    let approving = format!("{server}default_tools_approval_mode = \"approve\"\n");
    let text = text.replace(server, &approving);
    let home = agent.home.display();
    let trusted = format!("{text}\n[projects.\"{home}\"]\ntrust_level = \"trusted\"\n");
    std::fs::write(&config, trusted).unwrap();
    CodexHost::install(kit, agent)
}

/// Its first call tells our server which thread it serves.
pub fn model_with_first_call() -> Model {
    Model::with_script(vec![(
        "mcp__chorus__chorus_discover",
        json!({ "culture": "ja" }),
    )])
}

#[test]
fn mail_wakes_an_idle_codex_without_a_word_of_others() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let model = model_with_first_call();
    let host = set_up_codex(&kit, &alice, &model);
    let Some(terminal) = host.open_session() else {
        return;
    };
    await_waker(&alice, &terminal);
    let measure = Measure::chosen();
    let senders = SENDERS.map(|name| scene.agent(name));
    let mut delays = Vec::new();
    for number in 0..measure.messages {
        let before = model.turns().len();
        let at = number % senders.len();
        senders[at]
            .run(&["send", "alice@chorus", HOSTILE_TEXT])
            .ok();
        let sent_at = Instant::now();
        let count = number / senders.len() + 1;
        let is_told = |turn: &str| count_notices(turn, SENDERS[at]) >= count;
        let woken_at = await_turn_where(&model, is_told, &terminal);
        delays.push(woken_at.saturating_duration_since(sent_at));
        await_end_of_pause(sent_at + MESSAGE_INTERVAL);
        assert_eq!(model.turns().len(), before + 1, "{number}: one wake");
    }
    for (at, name) in SENDERS.iter().enumerate() {
        let sent = (measure.messages + senders.len() - 1 - at) / senders.len();
        let told = count_notices(&newest_turn(&model), name);
        assert_eq!(told, sent, "{name}: told once");
    }
    measure.assert_bar(delays);
    measure.assert_silence(&model);
    let before = model.turns().len();
    let pauses = send_burst(&senders);
    await_end_of_pause(Instant::now() + MESSAGE_INTERVAL * 2);
    let wakes = model.turns().len() - before;
    assert!(
        (1..=2 + pauses).contains(&wakes),
        "a burst is {wakes} wakes"
    );
    assert!(!model.requests_text().contains("trust this"));
}

/// Codex on the PATH, as its queue is run by `chorus mcp`. It leaves a daemon, which is stopped at the end.
pub struct CodexHost<'a> {
    agent: &'a Agent,
    folder: std::path::PathBuf,
}

impl<'a> CodexHost<'a> {
    pub fn install(kit: &HostKit, agent: &'a Agent) -> Self {
        let script = kit.script("@openai/codex/bin/codex.js");
        let words = [script.get_program()].into_iter().chain(script.get_args());
        let line: Vec<String> = words
            .map(|word| format!("\"{}\"", word.to_string_lossy()))
            .collect();
        let folder = agent.home.join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("codex");
        let text = format!("#!/bin/sh\nexec {} \"$@\"\n", line.join(" "));
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        Self { agent, folder }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.folder.join("codex"));
        isolate(&mut command, &self.agent.home);
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_chorus"));
        let path = format!(
            "{}:{}:{}",
            self.folder.display(),
            binary.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        command.env("PATH", path).args(args);
        command
    }

    /// A new session, which begins with a turn of its user.
    pub fn open_session(&self) -> Option<Terminal> {
        Terminal::start(&self.command(&["go on"]))
    }
}

impl Drop for CodexHost<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["app-server", "daemon", "stop"]).output();
        // A process that looks for updates of the daemon outlives it.
        for process in list_processes(&self.agent.home) {
            kill_process(process.id);
        }
    }
}
