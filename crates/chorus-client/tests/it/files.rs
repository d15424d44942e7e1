//! Local files stay consistent after crashes and between processes (R-33, SKL-19…31).

use chorus_client::files::history::{AppendOutcome, HistoryLine, HistoryStore, MessageDirection};
use chorus_client::files::{AgentCredentials, IdentityFiles, InboxState, inbox_state::StateLock};
use chorus_client::inbox_store::{FilingOutcome, InboxStore};
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

fn received(ts: &str, text: &str) -> HistoryLine {
    HistoryLine {
        ts: ts.into(),
        dir: MessageDirection::Received,
        peer: "bob@chorus".into(),
        envelope: envelope(text, None),
    }
}

fn alice() -> AgentCredentials {
    AgentCredentials {
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
fn credentials_come_from_the_explicit_file_then_the_workspace_then_the_home() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("w");
    let home = folder.path().join("h");
    std::fs::create_dir(&workspace).unwrap();
    let at_home = IdentityFiles::locate(None, &workspace, &home);
    assert_eq!(at_home.credentials, home.join("config.json"));
    assert_eq!(at_home.history, home.join("history"));
    std::fs::write(workspace.join("chorus-credentials.json"), "{}").unwrap();
    let in_workspace = IdentityFiles::locate(None, &workspace, &home);
    assert_eq!(
        in_workspace.credentials,
        workspace.join("chorus-credentials.json")
    );
    assert_eq!(in_workspace.history, workspace.join("chorus-history"));
    let named = IdentityFiles::locate(Some(Path::new("bot.json")), &workspace, &home);
    assert_eq!(named.credentials, workspace.join("bot.json"));
    assert_eq!(named.history, workspace.join("bot-history"));
}

// SKL-22, SKL-23, R-33
#[cfg(unix)]
#[test]
fn saved_credentials_are_complete_private_and_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("deep/config.json"));
    assert!(AgentCredentials::read_from(&files).unwrap().is_none());
    AgentCredentials::reserve_slot(&files, false)
        .unwrap()
        .save(alice())
        .unwrap();
    assert_eq!(mode(&files.credentials), 0o600);
    assert_eq!(mode(&folder.path().join("deep")), 0o700);
    let text: Value =
        serde_json::from_str(&std::fs::read_to_string(&files.credentials).unwrap()).unwrap();
    let printed = json!({"agent_id":"alice@chorus","api_key":"ca_not-a-real-key","hub_url":"http://127.0.0.1:1"});
    assert_eq!(text, printed);
    assert!(
        AgentCredentials::reserve_slot(&files, false).is_err(),
        "an identity exists"
    );
    let renewed = AgentCredentials {
        agent_id: "carol@chorus".into(),
        ..alice()
    };
    AgentCredentials::reserve_slot(&files, true)
        .unwrap()
        .save(renewed)
        .unwrap();
    assert_eq!(
        AgentCredentials::read_from(&files)
            .unwrap()
            .unwrap()
            .agent_id,
        "carol@chorus"
    );
    assert_eq!(mode(&files.credentials), 0o600);
    let remaining: Vec<_> = std::fs::read_dir(folder.path().join("deep"))
        .unwrap()
        .collect();
    assert_eq!(
        remaining.len(),
        1,
        "a temporary file remains: {remaining:?}"
    );
}

// SKL-20, SKL-22
#[test]
fn of_two_concurrent_registrations_the_first_saved_stays() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("config.json"));
    let first = AgentCredentials::reserve_slot(&files, false).unwrap();
    let second = AgentCredentials::reserve_slot(&files, false).unwrap();
    first.save(alice()).unwrap();
    let late = AgentCredentials {
        agent_id: "carol@chorus".into(),
        ..alice()
    };
    assert!(second.save(late).is_err());
    assert_eq!(
        AgentCredentials::read_from(&files)
            .unwrap()
            .unwrap()
            .agent_id,
        "alice@chorus"
    );
}

// SKL-19
#[test]
fn a_file_without_a_key_is_reused_and_keeps_its_other_fields() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("config.json"));
    std::fs::write(&files.credentials, r#"{"api_key":"","theme":"dark"}"#).unwrap();
    assert!(AgentCredentials::read_from(&files).unwrap().is_none());
    AgentCredentials::reserve_slot(&files, false)
        .unwrap()
        .save(alice())
        .unwrap();
    assert_eq!(
        AgentCredentials::read_from(&files).unwrap().unwrap().rest["theme"],
        "dark"
    );
    std::fs::write(&files.credentials, "not json").unwrap();
    assert!(
        AgentCredentials::reserve_slot(&files, true).is_err(),
        "a file with other content must not be replaced"
    );
}

// SKL-27, SKL-28, SKL-29
#[test]
fn a_line_has_the_four_specified_keys_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryStore::open_folder(folder.path().join("history"));
    history
        .append_once(&received("2026-03-22T04:30:05Z", "hi"))
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
    let history = HistoryStore::open_folder("/h");
    assert_eq!(
        history.peer_file("bob@chorus"),
        Path::new("/h/bob@chorus.jsonl")
    );
    assert_eq!(history.peer_file("urn:a/b"), Path::new("/h/urn_a_b.jsonl"));
    for hostile in [
        "../../etc/passwd",
        "..",
        ".hidden",
        "a\\..\\b",
        "a\0b",
        "/etc/passwd",
    ] {
        let path = history.peer_file(hostile);
        assert_eq!(path.parent(), Some(Path::new("/h")), "{hostile:?}");
        assert!(
            !path.file_name().unwrap().to_string_lossy().starts_with('.'),
            "{hostile:?}"
        );
    }
}

// R-33: as after a crash in the middle of a write.
#[test]
fn a_torn_last_line_is_removed_and_its_message_can_be_filed_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryStore::open_folder(folder.path());
    history
        .append_once(&received("2026-03-22T04:30:00.000001Z", "first"))
        .unwrap();
    let path = history.peer_file("bob@chorus");
    let whole = std::fs::read(&path).unwrap();
    let second = received("2026-03-22T04:30:00.000002Z", "zweitens: äöü");
    let line = serde_json::to_vec(&second).unwrap();
    for cut in 1..line.len() {
        let mut torn = whole.clone();
        torn.extend_from_slice(&line[..cut]);
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(
            history.append_once(&second).unwrap(),
            AppendOutcome::New,
            "cut after {cut} bytes"
        );
        let texts: Vec<String> = history
            .peer_lines("bob@chorus")
            .unwrap()
            .into_iter()
            .map(|l| l.ts)
            .collect();
        assert_eq!(texts.len(), 2, "cut after {cut} bytes");
        history = HistoryStore::open_folder(folder.path());
    }
}

#[test]
fn a_last_line_without_its_line_feed_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryStore::open_folder(folder.path());
    let first = received("2026-03-22T04:30:00Z", "by another tool");
    std::fs::write(
        history.peer_file("bob@chorus"),
        serde_json::to_vec(&first).unwrap(),
    )
    .unwrap();
    assert_eq!(history.append_once(&first).unwrap(), AppendOutcome::Known);
    assert_eq!(
        history
            .append_once(&received("2026-03-22T04:30:01Z", "next"))
            .unwrap(),
        AppendOutcome::New
    );
    assert_eq!(history.peer_lines("bob@chorus").unwrap().len(), 2);
}

// R-33: a lock belongs to an open file, so two `HistoryStore`s act like two processes.
#[test]
fn two_writers_never_mix_their_lines_and_file_a_message_once() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(9_000);
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let folder = folder.path().to_owned();
            let long = long.clone();
            std::thread::spawn(move || {
                let mut history = HistoryStore::open_folder(folder);
                let mut new = 0;
                for at in 0..40 {
                    let own_line = received(&format!("2026-03-22T04:3{writer}:00.{at:06}Z"), &long);
                    history.append_once(&own_line).unwrap();
                    let common_line = received(&format!("2026-03-22T05:00:00.{at:06}Z"), "common");
                    new += usize::from(
                        history.append_once(&common_line).unwrap() == AppendOutcome::New,
                    );
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
            .all(|line| serde_json::from_str::<HistoryLine>(line).is_ok())
    );
}

// ENV-08
#[test]
fn the_next_turn_follows_the_last_one_of_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryStore::open_folder(folder.path());
    assert_eq!(history.next_turn_number("bob@chorus", "c1").unwrap(), 1);
    for (dir, turn) in [
        (MessageDirection::Sent, 1),
        (MessageDirection::Received, 2),
        (MessageDirection::Sent, 3),
    ] {
        let line = HistoryLine {
            dir,
            envelope: envelope("x", Some(("c1", turn))),
            ..received("2026-03-22T04:30:00Z", "")
        };
        history.append_once(&line).unwrap();
    }
    assert_eq!(history.next_turn_number("bob@chorus", "c1").unwrap(), 4);
    assert_eq!(history.next_turn_number("bob@chorus", "c2").unwrap(), 1);
    assert_eq!(history.next_turn_number("carol@chorus", "c1").unwrap(), 1);
}

// R-28
#[test]
fn a_repeated_turn_is_not_handled_and_gets_its_first_reply() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("config.json"));
    let mut inbox = InboxStore::for_agent(files.clone(), &alice()).unwrap();
    let turn = envelope("hi", Some(("c1", 1)));
    assert_eq!(
        inbox
            .file_message(
                "2026-03-22T04:30:00.000001Z",
                "bob@chorus",
                turn.clone(),
                None
            )
            .unwrap(),
        FilingOutcome::NewMessage
    );
    let refusal = ReceiverReply::error("ADAPTATION_FAILED", "no words for it");
    inbox.cache_reply("bob@chorus", &turn, &refusal);
    let again = inbox
        .file_message(
            "2026-03-22T04:30:09.000002Z",
            "bob@chorus",
            turn.clone(),
            None,
        )
        .unwrap();
    assert_eq!(again, FilingOutcome::Repeated(refusal));
    // After a restart the reply is lost, but the turn is still known.
    let mut inbox = InboxStore::for_agent(files, &alice()).unwrap();
    let again = inbox
        .file_message("2026-03-22T04:30:10.000003Z", "bob@chorus", turn, None)
        .unwrap();
    assert_eq!(again, FilingOutcome::Repeated(ReceiverReply::ok()));
    let other = envelope("hi", Some(("c2", 1)));
    assert_eq!(
        inbox
            .file_message("2026-03-22T04:30:11.000004Z", "bob@chorus", other, None)
            .unwrap(),
        FilingOutcome::NewMessage
    );
    assert_eq!(inbox.history().peer_lines("bob@chorus").unwrap().len(), 2);
}

// Lesson 12 for the receiver: file the line first, then save the cursor.
#[test]
fn a_crash_between_the_line_and_the_cursor_loses_nothing_and_files_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("config.json"));
    let at = "2026-03-22T04:30:00.000001Z";
    let mut inbox = InboxStore::for_agent(files.clone(), &alice()).unwrap();
    assert_eq!(
        inbox
            .file_message(
                at,
                "bob@chorus",
                envelope("hi", None),
                Some(Cursor::from_log_seq(7))
            )
            .unwrap(),
        FilingOutcome::NewMessage
    );
    drop(inbox); // killed before `save_progress`
    let mut inbox = InboxStore::for_agent(files.clone(), &alice()).unwrap();
    assert_eq!(inbox.cursor(), None);
    let reordered = r#"{"sender_culture":"en","original_text":"hi","sender_id":"bob@chorus","chorus_version":"0.4"}"#;
    let replayed = RawValue::from_string(reordered.into()).unwrap();
    // A handler runs after `save_progress`, so it has not run, and the message is still new.
    let again = inbox
        .file_message(
            at,
            "bob@chorus",
            replayed.clone(),
            Some(Cursor::from_log_seq(7)),
        )
        .unwrap();
    assert_eq!(again, FilingOutcome::NewMessage);
    assert_eq!(inbox.history().peer_lines("bob@chorus").unwrap().len(), 1);
    inbox
        .save_progress(Some(Cursor::from_log_seq(7)), Some("trace-7"))
        .unwrap();
    let already_handled = inbox
        .file_message(at, "bob@chorus", replayed, Some(Cursor::from_log_seq(7)))
        .unwrap();
    assert_eq!(
        already_handled,
        FilingOutcome::Repeated(ReceiverReply::ok())
    );
    drop(inbox); // killed before the reply went out
    let mut inbox = InboxStore::for_agent(files.clone(), &alice()).unwrap();
    assert_eq!(inbox.cursor(), Some(Cursor::from_log_seq(7)));
    assert_eq!(inbox.unanswered_traces(), ["trace-7"]);
    inbox
        .save_progress(Some(Cursor::from_log_seq(8)), Some("trace-8"))
        .unwrap();
    inbox.mark_answered("trace-7").unwrap();
    let inbox = InboxStore::for_agent(files, &alice()).unwrap();
    assert_eq!(inbox.cursor(), Some(Cursor::from_log_seq(8)));
    assert_eq!(inbox.unanswered_traces(), ["trace-8"]);
}

// SKL-20: another identity starts without a cursor.
#[test]
fn a_cursor_belongs_to_one_identity() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("config.json"));
    let state = InboxState {
        cursor: Some("12".into()),
        ..InboxState::read_for(&files, &alice()).unwrap()
    };
    state.save(&files).unwrap();
    assert_eq!(
        InboxState::read_for(&files, &alice())
            .unwrap()
            .parse_cursor(),
        Some(Cursor::from_log_seq(12))
    );
    let carol = AgentCredentials {
        agent_id: "carol@chorus".into(),
        ..alice()
    };
    assert_eq!(
        InboxState::read_for(&files, &carol).unwrap().parse_cursor(),
        None
    );
}

#[test]
fn only_one_listener_can_lock_the_files_of_an_identity() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("config.json"));
    let lock = StateLock::acquire(&files).unwrap();
    assert!(StateLock::acquire(&files).is_err());
    drop(lock);
    StateLock::acquire(&files).unwrap();
}

proptest! {
    // Any text survives the round trip on one line.
    #[test]
    fn any_text_is_read_back_unchanged(texts in prop::collection::vec(".{1,40}", 1..8)) {
        let folder = tempfile::tempdir().unwrap();
        let mut history = HistoryStore::open_folder(folder.path());
        for (at, text) in texts.iter().enumerate() {
            let line = received(&format!("2026-03-22T04:30:00.{at:06}Z"), text);
            prop_assert_eq!(history.append_once(&line).unwrap(), AppendOutcome::New);
        }
        let read_texts: Vec<String> = history.peer_lines("bob@chorus").unwrap().iter().map(|line| {
            let envelope: Value = serde_json::from_str(line.envelope.get()).unwrap();
            envelope["original_text"].as_str().unwrap().to_owned()
        }).collect();
        prop_assert_eq!(read_texts, texts);
    }
}
