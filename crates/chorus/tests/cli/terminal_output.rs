//! Output for people: local times, headers on terminals, notes for empty lists, the other party of a job, grouped help.

use crate::actors::{Agent, CommandOutput, RunningProcess, Scene, chorus, on_terminal, run};
use crate::frame::MOMENT;
use crate::servers::await_condition;

fn in_tokyo(agent: &Agent, args: &[&str], is_terminal: bool) -> CommandOutput {
    let mut command = agent.command(args);
    command.env("TZ", "Asia/Tokyo");
    match is_terminal {
        true => run(on_terminal(&command), "").ok(),
        false => run(command, "").ok(),
    }
}

/// The time of the last line of a channel in Tokyo.
fn tokyo_time(agent: &Agent) -> String {
    let row = agent.json(&["channel", "history", "weather"]);
    let at = row.last().unwrap()["timestamp"].as_str().unwrap();
    let at: jiff::Timestamp = at.parse().unwrap();
    let at = at + jiff::SignedDuration::from_hours(9);
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[test]
fn times_are_of_the_users_zone_and_have_a_date_on_a_terminal() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice.run(&["channel", "create", "weather"]).ok();
    alice.run(&["channel", "post", "weather", "cloudy"]).ok();
    let expected = tokyo_time(&alice);
    let history = ["channel", "history", "weather"];
    let shown = in_tokyo(&alice, &history, true).out;
    assert!(
        shown.contains(&format!("{expected} alice: cloudy")),
        "{shown}"
    );
    let piped = in_tokyo(&alice, &history, false).out;
    let clock = &expected[11..];
    assert!(piped.contains(&format!("{clock} alice: cloudy")), "{piped}");
    assert!(!piped.contains(&expected), "scripts read the same columns");
    let json = in_tokyo(&alice, &["channel", "history", "weather", "--json"], true).out;
    assert!(json.contains("Z\""), "{json}");
    alice.run(&["send", "alice", "hi"]).ok();
    let past = in_tokyo(&alice, &["history"], true).out;
    assert!(
        past.starts_with(&expected[..10]) && !past.contains('Z'),
        "{past}"
    );
    assert!(
        alice
            .run(&["history"])
            .ok()
            .out
            .contains("Z → alice@chorus: hi")
    );
}

#[test]
fn lists_have_a_header_on_a_terminal_only() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let shown = run(on_terminal(&alice.command(&["discover"])), "").ok().out;
    assert!(shown.starts_with("AGENT "), "{shown}");
    let piped = alice.run(&["discover"]).ok().out;
    assert!(piped.starts_with("alice@chorus"), "{piped}");
}

#[test]
fn an_empty_list_says_so() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    for args in [
        &["skills"] as &[&str],
        &["skills", "translate"],
        &["jobs"],
        &["board"],
        &["discover", "--online"],
        &["channel", "list"],
        &["block"],
        &["history"],
        &["history", "--remote"],
        &["history", "alice"],
        &["handover", "--list"],
        &["locks"],
    ] {
        let ended = alice.run(args).ok();
        assert!(ended.out.is_empty(), "{args:?}: {ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{args:?}: {ended:?}");
        let json = alice.run(&[args, &["--json"]].concat()).ok();
        assert!(json.err.is_empty(), "{args:?}: {json:?}");
    }
}

#[test]
fn the_jobs_of_a_worker_name_the_hirer_and_waiting_is_told() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let offer = [
        "offer", "echo", "--cost", "0.10", "--count", "1", "--", "cat",
    ];
    let offering = RunningProcess::start(bob.command(&offer));
    await_condition("the skill is offered", || {
        !alice.json(&["skills"]).is_empty()
    });
    let hire = alice.command(&["hire", "echo", "--budget", "1", "--input", "{}", "--wait"]);
    let hired = run(on_terminal(&hire), "").ok();
    assert!(hired.out.contains("waiting for bob@chorus"), "{hired:?}");
    offering.remaining_lines();
    assert!(bob.run(&["jobs"]).ok().out.contains("for alice@chorus"));
    let own = alice.run(&["jobs"]).ok().out;
    assert!(own.contains("bob@chorus") && !own.contains("for "), "{own}");
}

#[test]
fn a_person_who_waits_for_an_answer_sees_the_time_on_one_line() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    std::fs::write(alice.home.join("moment.json"), MOMENT).unwrap();
    for args in [
        &[
            "frame",
            "agent_binding_moment",
            "moment.json",
            "--wait",
            "2s",
        ] as &[&str],
        &[
            "diagnose",
            "it hangs",
            "--severity",
            "info",
            "--window",
            "2s",
        ],
        &["ask", "who?", "--window", "2s"],
    ] {
        let waited = run(on_terminal(&alice.command(args)), "");
        assert_eq!(waited.code, 5, "{args:?}: {waited:?}");
        for expected in [
            "waiting for an answer, 0s of 2s",
            "waiting for an answer, 1s of 2s",
        ] {
            assert!(waited.out.contains(expected), "{args:?}: {waited:?}");
        }
        assert!(!waited.out.contains("\u{1b}[2m"), "NO_COLOR: {waited:?}");
        let (_, after) = waited.out.rsplit_once("\u{1b}[K").unwrap();
        assert!(
            after.contains("no answer within 2s"),
            "{args:?}: {waited:?}"
        );
    }
    // Elsewhere no line runs.
    let waited = alice.run(&["ask", "who?", "--window", "1ms"]);
    assert!(!waited.err.contains("waiting"), "{waited:?}");
}

/// Checks that a cell begins under its title in every row.
fn check_column(text: &str, title: &str, cell: &str) {
    let mut lines = text.lines().filter(|line| !line.starts_with(' '));
    let place = lines.next().unwrap().find(title).unwrap();
    for line in lines {
        assert_eq!(line.find(cell), Some(place), "{text}");
    }
}

#[test]
fn the_columns_of_jobs_and_channels_stand_under_their_header() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    for skill in ["echo", "translate-everything"] {
        let hire = ["hire", skill, "--budget", "1.50", "--board"];
        alice.run(&hire).ok();
    }
    for name in ["ops", "weather-of-the-north"] {
        alice.run(&["channel", "create", name]).ok();
    }
    let shown = |command| run(on_terminal(&command), "").ok().out;
    for text in [
        shown(alice.command(&["jobs"])),
        shown(alice.command(&["board"])),
        shown(scene.operator_command(&["admin", "jobs"])),
    ] {
        check_column(&text, "WITH", "(on the board)");
        check_column(&text, "CREDITS", "1.50");
    }
    let channels = shown(alice.command(&["channel", "list"]));
    check_column(&channels, "MEMBERS", "1 in it");
    check_column(&channels, "OWNER", "of alice@chorus");
}

#[test]
fn the_columns_of_skills_stand_under_their_header() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let _offering = [
        bob.offer("echo", &[], &["cat"]),
        bob.offer("translate-everything", &[], &["cat"]),
    ];
    let shown = |args: &[&str]| run(on_terminal(&alice.command(args)), "").ok().out;
    let skills = shown(&["skills"]);
    assert_eq!(skills.lines().count(), 3, "{skills}");
    check_column(&skills, "PRICE", "from 0.10");
    check_column(&skills, "AGENTS", "1 agent");
    let offers = shown(&["skills", "--max-cost", "1"]);
    check_column(&offers, "ONLINE", "online");
    check_column(&offers, "PRICE", "0.10");
    check_column(&offers, "REPUTATION", "50.0");
}

#[test]
fn a_session_id_is_short_on_a_terminal() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let id = "7f3a1c2e-2222-4333-8444-555555555555";
    let lock = [
        "lock",
        "src/auth.rs",
        "--session",
        id,
        "--instrument",
        "cc-a",
    ];
    alice.run(&lock).ok();
    let shown = run(on_terminal(&alice.command(&["locks"])), "").ok().out;
    assert!(
        shown.contains("cc-a@7f3a1c2e") && !shown.contains(id),
        "{shown}"
    );
    assert!(alice.run(&["locks"]).ok().out.contains(id));
    let released = alice.run(&[&lock[..2], &lock[2..], &["--release"]].concat());
    assert_eq!(released.ok().out, "released src/auth.rs\n");
}

#[test]
fn an_agent_lists_its_organisations() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let none = alice.run(&["org", "list"]).ok().out;
    assert!(none.contains("chorus org create"), "{none}");
    alice.run(&["org", "create", "acme"]).ok();
    alice.run(&["org", "invite", "acme", "bob"]).ok();
    let words = |agent: &Agent, args: &[&str]| {
        let shown = agent.run(args).ok().out;
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(words(&alice, &["org", "list"]), "~acme owner accepted");
    assert_eq!(words(&bob, &["org", "list"]), "~acme - invited");
    alice.run(&["grant", "add", "bob"]).ok();
    for (args, titles, column) in [
        (
            &["org", "list"] as &[&str],
            "ORGANISATION",
            ("ROLES", "owner"),
        ),
        (
            &["org", "list-members", "acme"],
            "MEMBER",
            ("STATUS", "accepted"),
        ),
        (&["grant", "list"], "HANDLE", ("SINCE", "20")),
    ] {
        let shown = run(on_terminal(&alice.command(args)), "").ok().out;
        assert!(shown.starts_with(titles), "{shown}");
        check_column(&shown, column.0, column.1);
        assert!(!shown.contains('T') || !shown.contains('Z'), "{shown}");
    }
}

fn help(words: &[&str]) -> String {
    print_help(words, "--help")
}

fn print_help(words: &[&str], option: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = chorus(folder.path());
    command.args(words).arg(option);
    run(command, "").ok().out
}

/// REL-07: a report of a fault names the program that it was seen with.
#[test]
fn the_long_version_names_the_target_and_the_short_one_only_the_version() {
    let print_version = |option: &str| print_help(&[], option);
    let short = concat!("chorus ", env!("CARGO_PKG_VERSION"));
    assert_eq!(print_version("-V").trim(), short);
    let long = print_version("--version");
    let target = format!("{}-", std::env::consts::ARCH);
    assert!(
        long.starts_with(&format!("{short} (")) && long.contains(&target),
        "{long}"
    );
}

#[test]
fn help_leaves_out_what_a_person_does_not_set() {
    for command in ["advise", "lock", "org", "decide"] {
        let short = print_help(&[command], "-h");
        assert!(
            !short.contains("--drafted-with") && !short.contains("--instrument"),
            "{short}"
        );
        assert!(short.contains("see more with '--help'"), "{short}");
        let long = help(&[command]);
        for option in ["--drafted-with", "--instrument", "--stale-after"] {
            assert!(long.contains(option), "{command}: {long}");
        }
    }
    let serve = help(&["serve"]);
    assert!(serve.contains("--json") && serve.contains("--listen"));
    for option in ["--hub ", "--credentials "] {
        assert!(!serve.contains(option), "{serve}");
        assert!(help(&["send"]).contains(option));
    }
}

#[test]
fn help_groups_the_commands_and_each_has_an_example() {
    let all = help(&[]);
    for heading in [
        "Getting started:",
        "Messages:",
        "Channels:",
        "Sessions of coding agents:",
        "Market:",
        "Identity, keys and quotas:",
        "Operating a hub:",
        "Setup of hosts and shells:",
        "Global options:",
    ] {
        assert!(all.contains(&format!("\n{heading}\n")), "{heading}: {all}");
    }
    let commands = all
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut count = 0;
    for command in commands.map(|line| line.split(' ').next().unwrap()) {
        let text = help(&[command]);
        assert!(text.contains(&format!("  chorus {command}")), "{text}");
        assert!(text.contains("Global options:"), "{text}");
        count += 1;
    }
    assert!(count > 45, "only {count} commands");
}

#[test]
fn the_manual_has_a_page_with_examples_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let man = |args: &[&str]| {
        let mut command = chorus(folder.path());
        command.arg("man").args(args);
        run(command, "").ok().out
    };
    let page = man(&[]);
    assert!(page.contains(".TH chorus 1"), "{page}");
    let told = man(&["pages"]);
    assert!(told.contains("man pages/chorus-send.1"), "{told}");
    for (page, example) in [
        ("chorus-send.1", "chorus send bob"),
        ("chorus-channel-add.1", "chorus channel add ops bob"),
        ("chorus-hire.1", "chorus hire translate"),
    ] {
        let text = std::fs::read_to_string(folder.path().join("pages").join(page)).unwrap();
        assert!(text.contains(example), "{page}: {text}");
    }
}
