//! Local files keep their promises across crashes and between processes (R-33, SKL-19…31).

use chorus_client::desk::{Desk, Verdict};
use chorus_client::files::history::{Appended, Dir, History, Line};
use chorus_client::files::{Credentials, Place, State, state::Turn};
use chorus_wire::{cursor::Cursor, message::ReceiverReply, secret::Secret};
use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};
use std::path::Path;

fn envelope(text: &str, turn: Option<(&str, u64)>) -> Box<RawValue> {
    let mut envelope = json!({
        "chorus_version": "0.4", "sender_id": "bob@chorus", "original_text": text, "sender_culture": "en",
    });
    if let Some((conversation, turn)) = turn {
        envelope["conversation_id"] = json!(conversation);
        envelope["turn_number"] = json!(turn);
    }
    serde_json::value::to_raw_value(&envelope).unwrap()
}

fn received(ts: &str, text: &str) -> Line {
    Line {
        ts: ts.into(),
        dir: Dir::Received,
        peer: "bob@chorus".into(),
        envelope: envelope(text, None),
    }
}

fn alice() -> Credentials {
    Credentials {
        agent_id: "alice@chorus".into(),
        api_key: Secret::new("ca_not-a-real-key"),
        hub_url: "http://127.0.0.1:1".into(),
        rest: serde_json::Map::new(),
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// R-33
#[test]
fn credentials_are_looked_for_in_the_named_file_then_the_workspace_then_the_home() {
    let folder = tempfile::tempdir().unwrap();
    let (workspace, home) = (folder.path().join("w"), folder.path().join("h"));
    std::fs::create_dir(&workspace).unwrap();
    let at_home = Place::find(None, &workspace, &home);
    assert_eq!(at_home.credentials, home.join("config.json"));
    assert_eq!(at_home.history, home.join("history"));
    std::fs::write(workspace.join("chorus-credentials.json"), "{}").unwrap();
    let in_workspace = Place::find(None, &workspace, &home);
    assert_eq!(
        in_workspace.credentials,
        workspace.join("chorus-credentials.json")
    );
    assert_eq!(in_workspace.history, workspace.join("chorus-history"));
    let named = Place::find(Some(Path::new("bot.json")), &workspace, &home);
    assert_eq!(named.credentials, workspace.join("bot.json"));
    assert_eq!(named.history, workspace.join("bot-history"));
}

// SKL-22, SKL-23, R-33
#[cfg(unix)]
#[test]
fn saved_credentials_are_whole_private_and_never_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::beside(folder.path().join("deep/config.json"));
    assert!(Credentials::read(&place).unwrap().is_none());
    Credentials::slot(&place, false)
        .unwrap()
        .save(alice())
        .unwrap();
    assert_eq!(mode(&place.credentials), 0o600);
    assert_eq!(mode(&folder.path().join("deep")), 0o700);
    let text: Value =
        serde_json::from_str(&std::fs::read_to_string(&place.credentials).unwrap()).unwrap();
    let printed = json!({"agent_id":"alice@chorus","api_key":"ca_not-a-real-key","hub_url":"http://127.0.0.1:1"});
    assert_eq!(text, printed);
    assert!(
        Credentials::slot(&place, false).is_err(),
        "an identity is there"
    );
    let renewed = Credentials {
        agent_id: "carol@chorus".into(),
        ..alice()
    };
    Credentials::slot(&place, true)
        .unwrap()
        .save(renewed)
        .unwrap();
    assert_eq!(
        Credentials::read(&place).unwrap().unwrap().agent_id,
        "carol@chorus"
    );
    assert_eq!(mode(&place.credentials), 0o600);
    let left: Vec<_> = std::fs::read_dir(folder.path().join("deep"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "no temporary file is left: {left:?}");
}

// SKL-20, SKL-22
#[test]
fn of_two_registrations_at_once_the_first_to_save_stays() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::beside(folder.path().join("config.json"));
    let (first, second) = (
        Credentials::slot(&place, false).unwrap(),
        Credentials::slot(&place, false).unwrap(),
    );
    first.save(alice()).unwrap();
    let late = Credentials {
        agent_id: "carol@chorus".into(),
        ..alice()
    };
    assert!(second.save(late).is_err());
    assert_eq!(
        Credentials::read(&place).unwrap().unwrap().agent_id,
        "alice@chorus"
    );
}

// SKL-19
#[test]
fn a_file_without_a_key_is_free_space_and_keeps_what_else_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::beside(folder.path().join("config.json"));
    std::fs::write(&place.credentials, r#"{"api_key":"","theme":"dark"}"#).unwrap();
    assert!(Credentials::read(&place).unwrap().is_none());
    Credentials::slot(&place, false)
        .unwrap()
        .save(alice())
        .unwrap();
    assert_eq!(
        Credentials::read(&place).unwrap().unwrap().rest["theme"],
        "dark"
    );
    std::fs::write(&place.credentials, "not json").unwrap();
    assert!(
        Credentials::slot(&place, true).is_err(),
        "a file that is something else is not ours to replace"
    );
}

// SKL-27, SKL-28, SKL-29
#[test]
fn a_line_has_the_four_printed_keys_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::at(folder.path().join("history"));
    history
        .append(&received("2026-03-22T04:30:05Z", "hi"))
        .unwrap();
    let text = std::fs::read_to_string(folder.path().join("history/bob@chorus.jsonl")).unwrap();
    assert!(
        text.starts_with(
            r#"{"ts":"2026-03-22T04:30:05Z","dir":"received","peer":"bob@chorus","envelope":{"#
        ),
        "{text}"
    );
    assert!(text.ends_with("}}\n"));
    #[cfg(unix)]
    assert_eq!(mode(&folder.path().join("history/bob@chorus.jsonl")), 0o600);
}

// SKL-29
#[test]
fn a_peer_name_never_leaves_the_history_folder() {
    let history = History::at("/h");
    assert_eq!(
        history.file_of("bob@chorus"),
        Path::new("/h/bob@chorus.jsonl")
    );
    assert_eq!(history.file_of("urn:a/b"), Path::new("/h/urn_a_b.jsonl"));
    for sly in [
        "../../etc/passwd",
        "..",
        ".hidden",
        "a\\..\\b",
        "a\0b",
        "/etc/passwd",
    ] {
        let path = history.file_of(sly);
        assert_eq!(path.parent(), Some(Path::new("/h")), "{sly:?}");
        assert!(
            !path.file_name().unwrap().to_string_lossy().starts_with('.'),
            "{sly:?}"
        );
    }
}

// R-33: a crash in the middle of a write.
#[test]
fn a_torn_last_line_is_removed_and_its_message_can_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::at(folder.path());
    history
        .append(&received("2026-03-22T04:30:00.000001Z", "first"))
        .unwrap();
    let path = history.file_of("bob@chorus");
    let whole = std::fs::read(&path).unwrap();
    let second = received("2026-03-22T04:30:00.000002Z", "zweitens: äöü");
    let line = serde_json::to_vec(&second).unwrap();
    for cut in 1..line.len() {
        let mut torn = whole.clone();
        torn.extend_from_slice(&line[..cut]);
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(
            history.append_once(&second).unwrap(),
            Appended::New,
            "cut after {cut} bytes"
        );
        let texts: Vec<String> = history
            .lines("bob@chorus")
            .unwrap()
            .into_iter()
            .map(|l| l.ts)
            .collect();
        assert_eq!(texts.len(), 2, "cut after {cut} bytes");
        history = History::at(folder.path());
    }
}

#[test]
fn a_last_line_without_its_line_feed_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::at(folder.path());
    let first = received("2026-03-22T04:30:00Z", "by another tool");
    std::fs::write(
        history.file_of("bob@chorus"),
        serde_json::to_vec(&first).unwrap(),
    )
    .unwrap();
    assert_eq!(history.append_once(&first).unwrap(), Appended::Known);
    assert_eq!(
        history
            .append_once(&received("2026-03-22T04:30:01Z", "next"))
            .unwrap(),
        Appended::New
    );
    assert_eq!(history.lines("bob@chorus").unwrap().len(), 2);
}

// R-33: two processes, one file. A lock belongs to an open file, so two histories stand for two processes.
#[test]
fn two_writers_never_mix_their_lines_and_file_a_message_once() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(9_000);
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (folder, long) = (folder.path().to_owned(), long.clone());
            std::thread::spawn(move || {
                let mut history = History::at(folder);
                let mut new = 0;
                for at in 0..40 {
                    let own = received(&format!("2026-03-22T04:3{writer}:00.{at:06}Z"), &long);
                    history.append(&own).unwrap();
                    let common = received(&format!("2026-03-22T05:00:00.{at:06}Z"), "common");
                    new += usize::from(history.append_once(&common).unwrap() == Appended::New);
                }
                new
            })
        })
        .collect();
    let new: usize = writers
        .into_iter()
        .map(|writer| writer.join().unwrap())
        .sum();
    assert_eq!(new, 40, "each common line was new to exactly one writer");
    let text = std::fs::read_to_string(folder.path().join("bob@chorus.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 4 * 40 + 40);
    assert!(
        text.lines()
            .all(|line| serde_json::from_str::<Line>(line).is_ok())
    );
}

// ENV-08
#[test]
fn a_conversation_goes_on_after_its_last_turn() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::at(folder.path());
    assert_eq!(history.next_turn("bob@chorus", "c1").unwrap(), 1);
    for (dir, turn) in [(Dir::Sent, 1), (Dir::Received, 2), (Dir::Sent, 3)] {
        let line = Line {
            dir,
            envelope: envelope("x", Some(("c1", turn))),
            ..received("2026-03-22T04:30:00Z", "")
        };
        history.append(&line).unwrap();
    }
    assert_eq!(history.next_turn("bob@chorus", "c1").unwrap(), 4);
    assert_eq!(history.next_turn("bob@chorus", "c2").unwrap(), 1);
    assert_eq!(history.next_turn("carol@chorus", "c1").unwrap(), 1);
}

// R-28
#[test]
fn a_turn_that_comes_again_is_not_handed_over_and_gets_its_first_answer() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::beside(folder.path().join("config.json"));
    let mut desk = Desk::of(place.clone(), &alice()).unwrap();
    let turn = envelope("hi", Some(("c1", 1)));
    assert_eq!(
        desk.file(
            "2026-03-22T04:30:00.000001Z",
            "bob@chorus",
            turn.clone(),
            None
        )
        .unwrap(),
        Verdict::Fresh
    );
    let no = ReceiverReply::error("ADAPTATION_FAILED", "no words for it");
    desk.answered("bob@chorus", &turn, &no);
    let again = desk
        .file(
            "2026-03-22T04:30:09.000002Z",
            "bob@chorus",
            turn.clone(),
            None,
        )
        .unwrap();
    assert_eq!(again, Verdict::Repeat(no));
    // After a restart the answer is forgotten, the turn is not.
    let mut desk = Desk::of(place, &alice()).unwrap();
    let again = desk
        .file("2026-03-22T04:30:10.000003Z", "bob@chorus", turn, None)
        .unwrap();
    assert_eq!(again, Verdict::Repeat(ReceiverReply::ok()));
    let other = envelope("hi", Some(("c2", 1)));
    assert_eq!(
        desk.file("2026-03-22T04:30:11.000004Z", "bob@chorus", other, None)
            .unwrap(),
        Verdict::Fresh
    );
    assert_eq!(desk.history().lines("bob@chorus").unwrap().len(), 2);
}

// Lesson 12 from the receiving side: filed, then remembered.
#[test]
fn a_crash_between_the_line_and_the_cursor_loses_nothing_and_files_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::beside(folder.path().join("config.json"));
    let at = "2026-03-22T04:30:00.000001Z";
    let mut desk = Desk::of(place.clone(), &alice()).unwrap();
    assert_eq!(
        desk.file(at, "bob@chorus", envelope("hi", None), Some(Cursor::log(7)))
            .unwrap(),
        Verdict::Fresh
    );
    drop(desk); // killed before `reached`
    let mut desk = Desk::of(place.clone(), &alice()).unwrap();
    assert_eq!(desk.cursor(), None);
    let reordered = r#"{"sender_culture":"en","original_text":"hi","sender_id":"bob@chorus","chorus_version":"0.4"}"#;
    let replayed = RawValue::from_string(reordered.into()).unwrap();
    // A handler runs after `reached`, so it has not run: its sender is not told that it did before it does.
    let again = desk
        .file(at, "bob@chorus", replayed.clone(), Some(Cursor::log(7)))
        .unwrap();
    assert_eq!(again, Verdict::Fresh);
    assert_eq!(desk.history().lines("bob@chorus").unwrap().len(), 1);
    desk.reached(Some(Cursor::log(7)), Some("trace-7")).unwrap();
    let behind = desk
        .file(at, "bob@chorus", replayed, Some(Cursor::log(7)))
        .unwrap();
    assert_eq!(behind, Verdict::Repeat(ReceiverReply::ok()));
    drop(desk); // killed before the reply went out
    let mut desk = Desk::of(place.clone(), &alice()).unwrap();
    assert_eq!(desk.cursor(), Some(Cursor::log(7)));
    assert_eq!(desk.unanswered(), ["trace-7"]);
    desk.reached(Some(Cursor::log(8)), Some("trace-8")).unwrap();
    desk.settled("trace-7").unwrap();
    let desk = Desk::of(place, &alice()).unwrap();
    assert_eq!(desk.cursor(), Some(Cursor::log(8)));
    assert_eq!(desk.unanswered(), ["trace-8"]);
}

// SKL-20: another identity starts at its own beginning.
#[test]
fn a_cursor_belongs_to_one_identity() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::beside(folder.path().join("config.json"));
    let state = State {
        cursor: Some("12".into()),
        ..State::read(&place, &alice()).unwrap()
    };
    state.save(&place).unwrap();
    assert_eq!(
        State::read(&place, &alice()).unwrap().cursor(),
        Some(Cursor::log(12))
    );
    let carol = Credentials {
        agent_id: "carol@chorus".into(),
        ..alice()
    };
    assert_eq!(State::read(&place, &carol).unwrap().cursor(), None);
}

#[test]
fn one_listener_keeps_the_files_of_an_identity() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::beside(folder.path().join("config.json"));
    let turn = Turn::take(&place).unwrap();
    assert!(Turn::take(&place).is_err());
    drop(turn);
    Turn::take(&place).unwrap();
}

proptest! {
    // Any text survives the round trip, on one line.
    #[test]
    fn whatever_was_said_is_read_back(texts in prop::collection::vec(".{1,40}", 1..8)) {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::at(folder.path());
        for (at, text) in texts.iter().enumerate() {
            let line = received(&format!("2026-03-22T04:30:00.{at:06}Z"), text);
            prop_assert_eq!(history.append_once(&line).unwrap(), Appended::New);
        }
        let back: Vec<String> = history.lines("bob@chorus").unwrap().iter().map(|line| {
            let envelope: Value = serde_json::from_str(line.envelope.get()).unwrap();
            envelope["original_text"].as_str().unwrap().to_owned()
        }).collect();
        prop_assert_eq!(back, texts);
    }
}
