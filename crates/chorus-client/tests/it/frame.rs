//! Frame streams: no repeats, no stale frames, reconnect after silence, report gaps (FRM-68, FRM-71, FRM-105, FRM-106).

use crate::scripted::{Answer, ScriptedServer, header};
use chorus_client::backoff::Backoff;
use chorus_client::frame::{FrameSender, FrameStream, FrameStreamEvent};
use chorus_client::{Error, HubClient};
use chorus_wire::frame::payload::AgentAdvisory;
use chorus_wire::frame::{Frame, FrameFilter, ScopeIdent};
use chorus_wire::{cursor::Cursor, identity::Handle, secret::Secret, sse, time::UnixMicros};
use std::time::Duration;

const NOON: UnixMicros = UnixMicros(1_774_000_000_000_000);

fn noon() -> UnixMicros {
    NOON
}

fn sender() -> FrameSender {
    let ident = |text| ScopeIdent::parse(text).unwrap();
    FrameSender::new(Handle::parse("~alice").unwrap(), ident("cli"), ident("s1"))
}

fn advisory(text: &str, at: UnixMicros, ttl_ms: Option<u64>) -> Frame {
    let payload = AgentAdvisory {
        advisory_text: text.into(),
        file_refs: None,
        worktree: None,
        branch: None,
    };
    let sender = FrameSender { ttl_ms, ..sender() };
    sender
        .draft_frame(&sender.handle_scope(), payload.into(), at)
        .to_frame()
        .unwrap()
}

fn cursor(seq: u64) -> Cursor {
    Cursor { epoch: 7, seq }
}

fn frame_event(seq: u64, frame: &Frame) -> String {
    String::from_utf8(
        sse::format_event(
            frame.kind().as_str(),
            Some(cursor(seq)),
            frame.submitted_json(),
        )
        .to_vec(),
    )
    .unwrap()
}

/// A `connected` or `resume-gap` event; both name the cursor from which the stream continues.
fn control_event(name: &str, seq: u64) -> String {
    format!(
        "event: {name}\nretry: 1\nid: {}\ndata: {{\"handle\":\"~alice\"}}\n\n",
        cursor(seq)
    )
}

/// Starts a hub that plays `streams`. The client first asks for the discovery document; this hub has none.
async fn start_hub(streams: Vec<Answer>) -> (ScriptedServer, HubClient) {
    let mut script = vec![Answer::json(404, "{}")];
    script.extend(streams);
    let hub = ScriptedServer::start(script).await;
    let mut client = HubClient::new(&hub.url, Some(Secret::new("ca_not-a-real-key"))).unwrap();
    client.backoff = Backoff {
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    (hub, client)
}

/// Reads the stream until a frame with this text; returns `gap` or the text of each frame.
async fn read_until(frames: &mut FrameStream, last: &str) -> Vec<String> {
    let mut items = Vec::new();
    while items.last().is_none_or(|text| text != last) {
        let next = tokio::time::timeout(Duration::from_secs(20), frames.next())
            .await
            .expect("it hangs")
            .unwrap();
        match next {
            FrameStreamEvent::Opened(_) | FrameStreamEvent::OpenItems(_) => {}
            FrameStreamEvent::Gap => items.push("gap".to_owned()),
            FrameStreamEvent::Frame(frame, _) => {
                let payload: serde_json::Value =
                    serde_json::from_str(frame.submitted_json()).unwrap();
                items.push(
                    payload["payload"]["advisory_text"]
                        .as_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    items
}

// FRM-106: a frame with another cursor but the same id is a repeat.
#[tokio::test]
async fn a_repeated_frame_is_returned_once() {
    let first = advisory("one", NOON, None);
    let end = advisory("end", NOON, None);
    let body = format!(
        "{}{}{}{}",
        control_event("connected", 0),
        frame_event(1, &first),
        frame_event(2, &first),
        frame_event(3, &end)
    );
    let (_hub, client) = start_hub(vec![Answer::events(&body, 64).hanging()]).await;
    let mut frames = client.open_frame_stream(&sender(), &FrameFilter::default(), None, noon);
    assert_eq!(read_until(&mut frames, "end").await, ["one", "end"]);
}

// FRM-105
#[tokio::test]
async fn stale_frames_are_dropped_and_invalid_events_skipped() {
    let ten_seconds_ago = NOON.saturating_sub(Duration::from_secs(10));
    let stale = advisory("stale", ten_seconds_ago, Some(9_000));
    let fresh = advisory("good", ten_seconds_ago, Some(11_000));
    let lasting = advisory("lasting", ten_seconds_ago, None);
    let invalid = "event: agent_advisory\nid: 7-3\ndata: {\"kind\":\"nonsense\"}\n\n";
    let body = format!(
        "{}{}{invalid}{}",
        frame_event(1, &stale),
        frame_event(2, &fresh),
        frame_event(4, &lasting)
    );
    let (_hub, client) = start_hub(vec![Answer::events(&body, 64).hanging()]).await;
    let mut frames = client.open_frame_stream(&sender(), &FrameFilter::default(), None, noon);
    assert_eq!(
        read_until(&mut frames, "lasting").await,
        ["good", "lasting"]
    );
}

// FRM-71, R-52: the gap has the cursor from which the stream continues, and is reported all the same.
#[tokio::test]
async fn a_gap_after_a_reconnection_is_reported() {
    let first = format!(
        "{}{}",
        control_event("connected", 0),
        frame_event(1, &advisory("one", NOON, None))
    );
    let rest = format!(
        "{}{}{}",
        control_event("connected", 50),
        control_event("resume-gap", 50),
        frame_event(51, &advisory("end", NOON, None))
    );
    let (hub, client) = start_hub(vec![
        Answer::events(&first, 64),
        Answer::events(&rest, 64).hanging(),
    ])
    .await;
    let mut frames = client.open_frame_stream(&sender(), &FrameFilter::default(), None, noon);
    assert_eq!(read_until(&mut frames, "end").await, ["one", "gap", "end"]);
    assert_eq!(
        header(&hub.requests()[2], "last-event-id").as_deref(),
        Some("7-1")
    );
}

// It resumes from the cursor of `connected`, not from the newest one.
#[tokio::test]
async fn a_stream_that_breaks_before_its_first_frame_misses_nothing() {
    let broken = control_event("connected", 4);
    let rest = format!(
        "{}{}",
        control_event("connected", 4),
        frame_event(5, &advisory("end", NOON, None))
    );
    let (hub, client) = start_hub(vec![
        Answer::events(&broken, 64),
        Answer::events(&rest, 64).hanging(),
    ])
    .await;
    let mut frames = client.open_frame_stream(&sender(), &FrameFilter::default(), None, noon);
    assert_eq!(read_until(&mut frames, "end").await, ["end"]);
    assert_eq!(
        header(&hub.requests()[2], "last-event-id").as_deref(),
        Some("7-4")
    );
}

// R-42, R-52: one stream gives the newest cursor, the other reads up to it.
#[tokio::test]
async fn the_replay_is_complete_and_the_stream_continues_live() {
    let now = Answer::events(&control_event("connected", 2), 64).hanging();
    let first = advisory("one", NOON, None);
    let two = advisory("two", NOON, None);
    let live = advisory("live", NOON, None);
    let all = [
        control_event("connected", 0),
        control_event("resume-gap", 0),
        frame_event(1, &first),
        frame_event(2, &two),
        frame_event(3, &live),
    ]
    .concat();
    let (hub, client) = start_hub(vec![now, Answer::events(&all, 64).hanging()]).await;
    let (replayed, mut frames) = client.replay_frames(&sender(), noon).await.unwrap();
    assert_eq!(
        replayed
            .iter()
            .map(|frame| frame.frame_id)
            .collect::<Vec<_>>(),
        [first.frame_id, two.frame_id]
    );
    assert_eq!(read_until(&mut frames, "live").await, ["live"]);
    let requests = hub.requests();
    assert!(
        requests[2].starts_with("GET /handles/~alice/stream?instrument=cli&session=s1 "),
        "{}",
        requests[2]
    );
    assert_eq!(header(&requests[2], "last-event-id").as_deref(), Some("0"));
}

// R-41, R-43: a submission names its session and is retried with the same frame id.
#[tokio::test]
async fn a_submission_to_a_busy_hub_is_retried_unchanged() {
    let frame = advisory("one", NOON, None);
    let answer = format!(r#"{{"frame_id":"{}","recipient_count":3}}"#, frame.frame_id);
    let busy = Answer::head(
        503,
        "retry-after: 0\r\n",
        r#"{"code":"unavailable","message":"try again"}"#,
    );
    let (hub, client) = start_hub(vec![busy, Answer::json(200, &answer)]).await;
    let submitted = client
        .submit_frame(&sender(), &sender().handle_scope(), &frame, true)
        .await
        .unwrap();
    assert_eq!(
        (submitted.frame_id, submitted.recipient_count),
        (frame.frame_id, 3)
    );
    let requests = hub.requests();
    assert!(
        requests[1].starts_with("POST /frames?exclude_self=1 "),
        "{}",
        requests[1]
    );
    assert_eq!(
        header(&requests[2], "x-chorus-session").as_deref(),
        Some("s1")
    );
    assert_eq!(
        requests[1].split("\r\n\r\n").nth(1),
        requests[2].split("\r\n\r\n").nth(1)
    );
}

// FRM-83
#[tokio::test]
async fn an_error_in_the_format_of_frames_is_parsed() {
    let refusal = r#"{"code":"scope-unauthorised","field":"scope","message":"not this one"}"#;
    let (_hub, client) = start_hub(vec![Answer::json(403, refusal)]).await;
    let frame = advisory("one", NOON, None);
    let error = client
        .submit_frame(&sender(), &sender().handle_scope(), &frame, false)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Refused(r) if r.code == "scope-unauthorised" && r.status == 403),
        "{error:?}"
    );
}
