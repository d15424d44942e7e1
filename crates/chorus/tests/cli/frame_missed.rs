//! What commands that wait say when the answer came while they were cut off from the hub.

use crate::actors::{Agent, Hub, RunningProcess, Scene, run};
use crate::frame::MOMENT;
use crate::servers::await_condition;

const ASK: [&str; 6] = [
    "--json",
    "frame",
    "agent_binding_moment",
    "moment.json",
    "--wait",
    "30m",
];

/// Kills the hub and starts it again on its data and address. What it has on disk stays; its frames are gone.
fn restart_hub(scene: &mut Scene) {
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    scene.hub.process.send_signal("KILL");
    scene.hub.process.await_exit();
    scene.hub = Hub::start(scene.folder.path(), &["--listen", &address]);
}

/// Starts a command that waits, with standard error in `log`. A test stops it with a signal, so that it hears nothing of what
/// happens meanwhile.
fn start_waiting(agent: &Agent, args: &[&str]) -> RunningProcess {
    let mut command = agent.command(args);
    command.env("CHORUS_SESSION", "waiter");
    command.env("CHORUS_LOG", "error");
    let log = std::fs::File::create(agent.home.join("log")).unwrap();
    RunningProcess::start_with_log(command, log)
}

fn read_log(agent: &Agent) -> String {
    std::fs::read_to_string(agent.home.join("log")).unwrap()
}

// the hub keeps that a decision has ended, and no answers
#[test]
fn an_asker_that_was_cut_off_while_its_decision_was_answered_says_so() {
    let mut scene = Scene::open();
    let alice = scene.agent("alice");
    std::fs::write(alice.home.join("moment.json"), MOMENT).unwrap();
    let mut asking = start_waiting(&alice, &ASK);
    assert_eq!(asking.json()["kept"], true);
    asking.send_signal("STOP");
    restart_hub(&mut scene);
    alice.run(&["decide", "--choose", "2"]).ok();
    restart_hub(&mut scene);
    asking.send_signal("CONT");
    assert_eq!(asking.await_exit(), Some(6), "{}", read_log(&alice));
    let told = read_log(&alice);
    for part in ["\"ANSWER_MISSED\"", "was answered", "chorus console"] {
        assert!(told.contains(part), "{told}");
    }
}

// a gap by itself ends nothing
#[test]
fn an_asker_that_was_cut_off_hears_the_answer_of_a_decision_that_is_still_open() {
    let mut scene = Scene::open();
    let alice = scene.agent("alice");
    std::fs::write(alice.home.join("moment.json"), MOMENT).unwrap();
    let mut asking = start_waiting(&alice, &ASK);
    assert_eq!(asking.json()["kept"], true);
    asking.send_signal("STOP");
    restart_hub(&mut scene);
    restart_hub(&mut scene);
    asking.send_signal("CONT");
    alice.run(&["decide", "--choose", "2"]).ok();
    assert_eq!(asking.json()["response_text"], "2: Later");
    assert_eq!(asking.await_exit(), Some(0));
}

// A question is not kept: whether an answer came while the connection was away, its sender cannot know.
#[test]
fn a_question_whose_hub_went_away_does_not_claim_that_there_was_no_answer() {
    let mut scene = Scene::open();
    let alice = scene.agent("alice");
    let mut asking = start_waiting(&alice, &["--json", "ask", "who?", "--window", "5s"]);
    assert!(asking.json()["query_id"].is_string());
    scene.hub.process.send_signal("KILL");
    scene.hub.process.await_exit();
    assert_eq!(asking.await_exit(), Some(6), "{}", read_log(&alice));
    let told = read_log(&alice);
    assert!(told.contains("an answer may have come"), "{told}");
}

// a decision that was asked for while `decide` was cut off is open, and is found
#[test]
fn decide_finds_the_decision_that_was_asked_for_while_it_was_cut_off() {
    let mut scene = Scene::open();
    let alice = scene.agent("alice");
    let deciding = start_waiting(&alice, &["decide", "--choose", "1"]);
    await_condition("decide waits", || {
        read_log(&alice).contains("waiting for one")
    });
    deciding.send_signal("STOP");
    restart_hub(&mut scene);
    let moment = ["frame", "agent_binding_moment", "--stale-after", "30m"];
    run(alice.command(&moment), MOMENT).ok();
    restart_hub(&mut scene);
    deciding.send_signal("CONT");
    let shown = deciding.remaining_lines().join("\n");
    assert!(shown.contains("Ready."), "{shown}");
    assert!(shown.contains("answered: 1: Now"), "{shown}");
}
