//! A recipient's duties: once, not stale, opened again when silent, gaps said aloud (FRM-68, FRM-71, FRM-105, FRM-106).

use crate::scripted::{Answer, Scripted, header};
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

fn speaker() -> FrameSender {
    let ident = |text| ScopeIdent::parse(text).unwrap();
    FrameSender::new(Handle::parse("~alice").unwrap(), ident("cli"), ident("s1"))
}

fn said(text: &str, at: UnixMicros, ttl_ms: Option<u64>) -> Frame {
    let payload = AgentAdvisory {
        advisory_text: text.into(),
        file_refs: None,
        worktree: None,
        branch: None,
    };
    let speaker = FrameSender {
        ttl_ms,
        ..speaker()
    };
    speaker
        .draft_frame(&speaker.handle_scope(), payload.into(), at)
        .to_frame()
        .unwrap()
}

fn place(seq: u64) -> Cursor {
    Cursor { epoch: 7, seq }
}

fn event(seq: u64, frame: &Frame) -> String {
    String::from_utf8(
        sse::format_event(
            frame.kind().as_str(),
            Some(place(seq)),
            frame.submitted_json(),
        )
        .to_vec(),
    )
    .unwrap()
}

/// As the hub says it: both name the place from which the stream goes on.
fn told(name: &str, seq: u64) -> String {
    format!(
        "event: {name}\nretry: 1\nid: {}\ndata: {{\"handle\":\"~alice\"}}\n\n",
        place(seq)
    )
}

/// The discovery document is asked for first; this hub has none.
async fn hub(streams: Vec<Answer>) -> (Scripted, HubClient) {
    let mut script = vec![Answer::json(404, "{}")];
    script.extend(streams);
    let hub = Scripted::start(script).await;
    let mut client = HubClient::new(&hub.url, Some(Secret::new("ca_not-a-real-key"))).unwrap();
    client.backoff = Backoff {
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    (hub, client)
}

/// What comes until a frame with this text: `gap`, or the texts of frames.
async fn until(frames: &mut FrameStream, last: &str) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.last().is_none_or(|text| text != last) {
        let next = tokio::time::timeout(Duration::from_secs(20), frames.next())
            .await
            .expect("it hangs")
            .unwrap();
        match next {
            FrameStreamEvent::Opened(_) => {}
            FrameStreamEvent::Gap => heard.push("gap".to_owned()),
            FrameStreamEvent::Frame(frame, _) => {
                let payload: serde_json::Value =
                    serde_json::from_str(frame.submitted_json()).unwrap();
                heard.push(
                    payload["payload"]["advisory_text"]
                        .as_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    heard
}

// FRM-106: the same frame at another place of the stream is the same frame.
#[tokio::test]
async fn a_frame_that_comes_twice_is_heard_once() {
    let (one, end) = (said("one", NOON, None), said("end", NOON, None));
    let body = format!(
        "{}{}{}{}",
        told("connected", 0),
        event(1, &one),
        event(2, &one),
        event(3, &end)
    );
    let (_hub, client) = hub(vec![Answer::events(&body, 64).hanging()]).await;
    let mut frames = client
        .open_frame_stream(&speaker(), &FrameFilter::default(), None, noon)
        .await;
    assert_eq!(until(&mut frames, "end").await, ["one", "end"]);
}

// FRM-105
#[tokio::test]
async fn what_is_stale_is_dropped_and_what_is_not_a_frame_is_passed_over() {
    let early = NOON.saturating_sub(Duration::from_secs(10));
    let (stale, good) = (
        said("stale", early, Some(9_000)),
        said("good", early, Some(11_000)),
    );
    let lasting = said("lasting", early, None);
    let odd = "event: agent_advisory\nid: 7-3\ndata: {\"kind\":\"nonsense\"}\n\n";
    let body = format!(
        "{}{}{odd}{}",
        event(1, &stale),
        event(2, &good),
        event(4, &lasting)
    );
    let (_hub, client) = hub(vec![Answer::events(&body, 64).hanging()]).await;
    let mut frames = client
        .open_frame_stream(&speaker(), &FrameFilter::default(), None, noon)
        .await;
    assert_eq!(until(&mut frames, "lasting").await, ["good", "lasting"]);
}

// FRM-71, R-52: the gap stands at the place where the stream goes on, and is news all the same.
#[tokio::test]
async fn a_gap_after_a_reconnection_is_announced() {
    let first = format!(
        "{}{}",
        told("connected", 0),
        event(1, &said("one", NOON, None))
    );
    let rest = format!(
        "{}{}{}",
        told("connected", 50),
        told("resume-gap", 50),
        event(51, &said("end", NOON, None))
    );
    let (hub, client) = hub(vec![
        Answer::events(&first, 64),
        Answer::events(&rest, 64).hanging(),
    ])
    .await;
    let mut frames = client
        .open_frame_stream(&speaker(), &FrameFilter::default(), None, noon)
        .await;
    assert_eq!(until(&mut frames, "end").await, ["one", "gap", "end"]);
    assert_eq!(
        header(&hub.asked()[2], "last-event-id").as_deref(),
        Some("7-1")
    );
}

// A stream that breaks before its first frame goes on from where it began, not from wherever it is now.
#[tokio::test]
async fn a_stream_that_breaks_before_its_first_frame_misses_nothing() {
    let (broken, rest) = (
        told("connected", 4),
        format!(
            "{}{}",
            told("connected", 4),
            event(5, &said("end", NOON, None))
        ),
    );
    let (hub, client) = hub(vec![
        Answer::events(&broken, 64),
        Answer::events(&rest, 64).hanging(),
    ])
    .await;
    let mut frames = client
        .open_frame_stream(&speaker(), &FrameFilter::default(), None, noon)
        .await;
    assert_eq!(until(&mut frames, "end").await, ["end"]);
    assert_eq!(
        header(&hub.asked()[2], "last-event-id").as_deref(),
        Some("7-4")
    );
}

// R-42, R-52: one stream says where the newest is, the other reads up to there.
#[tokio::test]
async fn what_is_kept_is_read_to_its_end_and_the_stream_goes_on() {
    let now = Answer::events(&told("connected", 2), 64).hanging();
    let (one, two, live) = (
        said("one", NOON, None),
        said("two", NOON, None),
        said("live", NOON, None),
    );
    let all = [
        told("connected", 0),
        told("resume-gap", 0),
        event(1, &one),
        event(2, &two),
        event(3, &live),
    ]
    .concat();
    let (hub, client) = hub(vec![now, Answer::events(&all, 64).hanging()]).await;
    let (kept, mut frames) = client.replay_frames(&speaker(), noon).await.unwrap();
    assert_eq!(
        kept.iter().map(|frame| frame.frame_id).collect::<Vec<_>>(),
        [one.frame_id, two.frame_id]
    );
    assert_eq!(until(&mut frames, "live").await, ["live"]);
    let asked = hub.asked();
    assert!(
        asked[2].starts_with("GET /handles/~alice/stream?instrument=cli&session=s1 "),
        "{}",
        asked[2]
    );
    assert_eq!(header(&asked[2], "last-event-id").as_deref(), Some("0"));
}

// R-41, R-43: a submission says which session it is, and is repeated under the same frame id.
#[tokio::test]
async fn a_submission_that_meets_a_busy_hub_is_repeated_as_it_was() {
    let frame = said("one", NOON, None);
    let answer = format!(r#"{{"frame_id":"{}","recipient_count":3}}"#, frame.frame_id);
    let busy = Answer::head(
        503,
        "retry-after: 0\r\n",
        r#"{"code":"unavailable","message":"try again"}"#,
    );
    let (hub, client) = hub(vec![busy, Answer::json(200, &answer)]).await;
    let submitted = client
        .submit_frame(&speaker(), &speaker().handle_scope(), &frame, true)
        .await
        .unwrap();
    assert_eq!(
        (submitted.frame_id, submitted.recipient_count),
        (frame.frame_id, 3)
    );
    let asked = hub.asked();
    assert!(
        asked[1].starts_with("POST /frames?exclude_self=1 "),
        "{}",
        asked[1]
    );
    assert_eq!(header(&asked[2], "x-chorus-session").as_deref(), Some("s1"));
    assert_eq!(
        asked[1].split("\r\n\r\n").nth(1),
        asked[2].split("\r\n\r\n").nth(1)
    );
}

// FRM-83
#[tokio::test]
async fn a_refusal_in_the_form_of_frames_is_understood() {
    let refusal = r#"{"code":"scope-unauthorised","field":"scope","message":"not this one"}"#;
    let (_hub, client) = hub(vec![Answer::json(403, refusal)]).await;
    let frame = said("one", NOON, None);
    let error = client
        .submit_frame(&speaker(), &speaker().handle_scope(), &frame, false)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Refused(r) if r.code == "scope-unauthorised" && r.status == 403),
        "{error:?}"
    );
}
