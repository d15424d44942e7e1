//! Hub, waker and host are killed with SIGKILL: nothing is left behind, nothing is lost, and nothing wakes twice (D-115).

use crate::actors::{Agent, Hub, OPERATOR, Scene};
use crate::kit::HostKit;
use crate::model::Model;
use crate::processes::{await_no_chorus, kill_process, list_processes, list_wakers};
use crate::terminal::Terminal;
use crate::wake::{
    MESSAGE_INTERVAL, await_end_of_pause, await_reach, await_turn_where, await_waker,
    claude_command, enable_plugin, newest_turn, settle_claude_after_init,
};
use crate::wake_codex::{count_notices, model_with_first_call, set_up_codex};
use std::path::Path;
use std::time::{Duration, Instant};

/// Between a text and the key that sends it: a host takes both at once for a pasted text.
const KEY_PAUSE: Duration = Duration::from_secs(1);

/// Kills the hub and starts it again with its data, at the same address.
fn restart_hub(scene: &mut Scene) {
    scene.hub.process.send_signal("KILL");
    scene.hub.process.await_exit();
    start_again(scene);
}

fn start_again(scene: &mut Scene) {
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    let options = [
        "--operator-key",
        OPERATOR,
        "--allow-private-endpoints",
        "--listen",
        &address,
    ];
    scene.hub = Hub::start(scene.folder.path(), &options);
}

/// Sends one message after another, and kills the hub meanwhile; the texts that the hub accepted.
fn send_into_crash(scene: &mut Scene, sender: &Agent) -> Vec<String> {
    let (report, accepted) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 1.. {
                let text = format!("letter {number:02} of carol");
                if sender.run(&["send", "alice@chorus", &text]).code != 0 {
                    return;
                }
                report.send(text).unwrap();
            }
        });
        let first = accepted.recv().unwrap();
        scene.hub.process.send_signal("KILL");
        scene.hub.process.await_exit();
        let texts = std::iter::once(first).chain(accepted.iter()).collect();
        start_again(scene);
        texts
    })
}

fn kill_waker(agent: &Agent) {
    let wakers = list_wakers(&agent.home);
    assert_eq!(wakers.len(), 1, "one waker for a session: {wakers:?}");
    kill_process(wakers[0].id);
}

/// Kills the host's own programs, with the background server of Codex, and nothing that they have started of ours.
fn kill_host(agent: &Agent) {
    let mut killed = 0;
    for process in list_processes(&agent.home) {
        let program = process.program.file_name().unwrap_or_default();
        if ["claude", "codex", "node"]
            .iter()
            .any(|name| program == *name)
        {
            kill_process(process.id);
            killed += 1;
        }
    }
    assert!(killed > 0, "the host was not found");
    await_no_chorus(&agent.home);
    assert_no_locks(&agent.home);
}

/// Wakers that saw their host end have removed their locks; the file of a killed one may stay, but holds no waker up.
fn assert_no_locks(home: &Path) {
    for entry in std::fs::read_dir(home.join(".chorus/wake")).unwrap() {
        let file = std::fs::File::open(entry.unwrap().path()).unwrap();
        assert!(
            file.try_lock().is_ok(),
            "a lock is held by a process that ended"
        );
    }
}

/// A session in which mail wakes the agent, whatever its host is.
struct WokenSession<'a> {
    scene: Scene,
    alice: &'a Agent,
    model: &'a Model,
    /// How often a conversation tells of the message of this sender.
    count_told: fn(&str, &str) -> usize,
    /// Whether a wake has the text of the messages.
    has_text: bool,
}

impl WokenSession<'_> {
    fn send(&self, sender: &Agent) {
        let name = sender.home.file_name().unwrap().to_str().unwrap();
        sender.run(&["send", "alice@chorus", &letter_of(name)]).ok();
    }

    fn told(&self, name: &str) -> usize {
        (self.count_told)(&newest_turn(self.model), name)
    }

    fn await_told(&self, name: &str, terminal: &Terminal) {
        let is_told = |turn: &str| (self.count_told)(turn, name) > 0;
        await_turn_where(self.model, is_told, terminal);
    }

    /// The hub is killed right after a send and during another one.
    fn survive_hub(&mut self, terminal: &Terminal) {
        let [bob, carol] = ["bob", "carol"].map(|name| self.scene.agent(name));
        self.send(&bob);
        restart_hub(&mut self.scene);
        self.await_told("bob", terminal);
        // In a running turn the Stop hook would tell that mail waits.
        await_end_of_pause(Instant::now() + MESSAGE_INTERVAL);
        let accepted = send_into_crash(&mut self.scene, &carol);
        await_reach(self.alice, "wakes", || terminal.screen());
        self.await_told("carol", terminal);
        await_end_of_pause(Instant::now() + MESSAGE_INTERVAL);
        assert_eq!(self.told("bob"), 1, "told once");
        if self.has_text {
            let newest = newest_turn(self.model);
            for text in &accepted {
                assert_eq!(newest.matches(text).count(), 1, "{text} is told once");
            }
        }
        // What the hub accepted before and after the crash may be two batches.
        assert!(self.told("carol") <= 2.max(accepted.len() + 1));
    }

    /// What came while no host ran is told to the next session, and the next message wakes it.
    fn survive_host(&mut self, open_session: &dyn Fn() -> Option<Terminal>) {
        let [erin, frank] = ["erin", "frank"].map(|name| self.scene.agent(name));
        await_reach(self.alice, "mail", || "a waker is left".to_owned());
        self.send(&erin);
        let terminal = open_session().unwrap();
        await_waker(self.alice, &terminal);
        self.send(&frank);
        self.await_told("frank", &terminal);
        await_end_of_pause(Instant::now() + MESSAGE_INTERVAL);
        assert_eq!(self.told("frank"), 1, "told once");
        assert_eq!(self.told("bob"), 0, "told in the session before");
        assert_eq!(self.told("carol"), 0, "told in the session before");
    }
}

fn letter_of(name: &str) -> String {
    format!("letter of {name}")
}

fn count_letters(conversation: &str, name: &str) -> usize {
    conversation.matches(&format!(" of {name}")).count()
}

/// Claude Code with either way to wake it: hub, waker and host are killed one after another.
fn kill_all_of_claude(kit: &HostKit, scene: Scene, alice: &Agent, waker_returns: bool) {
    let model = Model::with_script(Vec::new());
    let open_session = || Terminal::start(&claude_command(kit, alice, &model));
    let Some(terminal) = open_session() else {
        return;
    };
    await_waker(alice, &terminal);
    let mut session = WokenSession {
        scene,
        alice,
        model: &model,
        count_told: count_letters,
        has_text: true,
    };
    session.survive_hub(&terminal);
    // Without its waker the session is not woken, and the next turn tells of the message.
    kill_waker(alice);
    await_reach(alice, "turns", || terminal.screen());
    session.send(&session.scene.agent("dave"));
    await_end_of_pause(Instant::now() + MESSAGE_INTERVAL);
    // Claude Code tells its model that the monitor failed, and in that turn a hook may tell of the message.
    assert!(session.told("dave") <= 1, "told once");
    terminal.press_keys("good morning");
    await_end_of_pause(Instant::now() + KEY_PAUSE);
    terminal.press_keys("\r");
    session.await_told("dave", &terminal);
    await_end_of_pause(Instant::now() + MESSAGE_INTERVAL);
    assert_eq!(session.told("dave"), 1, "told once");
    assert_eq!(session.told("bob"), 1, "told once");
    if waker_returns {
        await_waker(alice, &terminal);
    }
    kill_host(alice);
    drop(terminal);
    session.survive_host(&open_session);
    assert_eq!(session.told("erin"), 1, "told once");
    assert_eq!(session.told("dave"), 0, "told in the session before");
}

// WAK-04, WAK-07, WAK-08, WAK-10; a monitor that ended is not started again
#[test]
fn killed_processes_wake_no_claude_code_with_the_plugin_twice() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    enable_plugin(&alice);
    kill_all_of_claude(&kit, scene, &alice, false);
}

// WAK-04, WAK-07, WAK-08, WAK-10; the hook at the end of a turn starts the next waker
#[test]
fn killed_processes_wake_no_claude_code_with_hooks_twice() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice.run(&["init", "--target", "claude-user"]).ok();
    settle_claude_after_init(&alice);
    kill_all_of_claude(&kit, scene, &alice, true);
}

// WAK-04, WAK-08, WAK-10, WAK-12; the waker of Codex is the process of the tools
#[test]
fn killed_processes_wake_no_codex_twice() {
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
    let mut session = WokenSession {
        scene,
        alice: &alice,
        model: &model,
        count_told: count_notices,
        has_text: false,
    };
    session.survive_hub(&terminal);
    kill_waker(&alice);
    session.send(&session.scene.agent("dave"));
    await_end_of_pause(Instant::now() + MESSAGE_INTERVAL);
    assert_eq!(session.told("bob"), 1, "told once");
    kill_host(&alice);
    drop(terminal);
    session.survive_host(&|| host.open_session());
    // The result of the first call tells of unread mail, with three senders by name, and then nothing wakes for it.
    for name in ["dave", "erin"] {
        let newest = newest_turn(&model);
        let is_told =
            newest.contains(&format!("{name}@chorus")) || newest.contains(" and others. See");
        assert!(is_told, "{newest}");
        assert!(session.told(name) <= 1, "{name} wakes once");
    }
}
