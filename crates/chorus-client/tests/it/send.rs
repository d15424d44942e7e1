//! Which sends are retried, and with which idempotency key (TRN-46…48, R-27).

use crate::scripted::{Answer, ScriptedServer, header};
use chorus_client::backoff::Backoff;
use chorus_client::frame::{AccordProposal, FrameSender};
use chorus_client::{Error, HubClient};
use chorus_wire::agent_key::KeyRotation;
use chorus_wire::envelope::{Envelope, EnvelopeDraft};
use chorus_wire::frame::{OpenItem, RoleName, ScopeIdent};
use chorus_wire::identity::Handle;
use chorus_wire::message::ReceiverReply;
use chorus_wire::secret::Secret;
use std::time::Duration;

const TRACE: &str = "0195c0de-0000-7000-8000-000000000001";

fn client(hub: &ScriptedServer) -> HubClient {
    let mut client = HubClient::new(&hub.url, Some(Secret::new("ca_not-a-real-key"))).unwrap();
    client.backoff = Backoff {
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    client
}

fn envelope() -> Envelope {
    let draft = EnvelopeDraft {
        chorus_version: Some("0.4".into()),
        sender_id: Some("alice@chorus".into()),
        original_text: Some("hi".into()),
        sender_culture: Some("en".into()),
        ..EnvelopeDraft::default()
    };
    draft.into_envelope().unwrap()
}

fn success(data: &str) -> Answer {
    Answer::json(
        200,
        &format!(
            r#"{{"success":true,"data":{data},"metadata":{{"timestamp":"2026-03-20T10:00:00.000Z"}}}}"#
        ),
    )
}

fn refusal(status: u16, code: &str, headers: &str) -> Answer {
    let body = format!(
        r#"{{"success":false,"error":{{"code":"{code}","message":"no"}},"metadata":{{"timestamp":"x"}}}}"#
    );
    Answer::head(status, headers, &body)
}

fn no_document() -> Answer {
    Answer::json(404, "{}")
}

fn idempotency_keys(hub: &ScriptedServer) -> Vec<String> {
    let sends = hub
        .requests()
        .into_iter()
        .filter(|request| request.starts_with("POST /messages "));
    sends
        .map(|request| header(&request, "idempotency-key").expect("every send has a key"))
        .collect()
}

// TRN-48, R-27
#[tokio::test]
async fn a_transient_refusal_is_retried_with_the_same_key() {
    let delivered = success(&format!(
        r#"{{"delivery":"delivered_sse","trace_id":"{TRACE}"}}"#
    ));
    let busy = refusal(503, "ERR_UNAVAILABLE", "retry-after: 0\r\n");
    let broken = Answer {
        pieces: vec![b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec()],
        hang: false,
    };
    let hub = ScriptedServer::start(vec![no_document(), busy, broken, delivered]).await;
    let accepted = client(&hub)
        .send_message("bob@chorus", &envelope(), 0)
        .await
        .unwrap();
    assert_eq!(accepted.sent.delivery, "delivered_sse");
    let keys = idempotency_keys(&hub);
    assert_eq!(keys.len(), 3);
    assert!(
        keys.iter().all(|key| *key == keys[0] && key.len() == 32),
        "{keys:?}"
    );
    let body = hub.requests()[3]
        .split("\r\n\r\n")
        .nth(1)
        .unwrap()
        .to_owned();
    assert_eq!(
        body,
        format!(
            r#"{{"receiver_id":"bob@chorus","envelope":{}}}"#,
            envelope().to_json()
        )
    );
}

// TRN-46, R-27: a failed delivery is an answer; a retry is a new request.
#[tokio::test]
async fn a_failed_delivery_is_retried_only_on_request_and_as_one_message() {
    let failed = success(&format!(
        r#"{{"delivery":"failed","error_code":"ERR_TIMEOUT","detail":"late","trace_id":"{TRACE}"}}"#
    ));
    let delivered = success(&format!(
        r#"{{"delivery":"delivered","receiver_response":{{"status":"ok"}},"trace_id":"{TRACE}"}}"#
    ));
    let hub = ScriptedServer::start(vec![
        no_document(),
        failed.clone(),
        failed.clone(),
        delivered,
    ])
    .await;
    let accepted = client(&hub)
        .send_message("bob@chorus", &envelope(), 2)
        .await
        .unwrap();
    assert_eq!(accepted.sent.delivery, "delivered");
    let keys = idempotency_keys(&hub);
    assert_eq!(keys.len(), 3);
    // R-27: without the header the hub gives the first answer again, with it the same message is posted again.
    let asked: Vec<_> = hub.requests()[1..]
        .iter()
        .map(|request| header(request, "x-chorus-retry"))
        .collect();
    let retry = Some("failed".to_owned());
    assert_eq!(asked, [None, retry.clone(), retry]);
    assert_eq!(
        keys.iter().collect::<std::collections::HashSet<_>>().len(),
        1,
        "{keys:?}"
    );

    let hub = ScriptedServer::start(vec![no_document(), failed]).await;
    let accepted = client(&hub)
        .send_message("bob@chorus", &envelope(), 0)
        .await
        .unwrap();
    assert_eq!(accepted.sent.delivery, "failed");
    assert_eq!(hub.requests().len(), 2);
}

// TRN-47
#[tokio::test]
async fn a_permanent_refusal_is_not_retried() {
    for (status, code) in [
        (404, "ERR_AGENT_NOT_FOUND"),
        (400, "ERR_VALIDATION"),
        (401, "ERR_UNAUTHORIZED"),
    ] {
        let hub = ScriptedServer::start(vec![no_document(), refusal(status, code, "")]).await;
        let error = client(&hub)
            .send_message("bob@chorus", &envelope(), 9)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, Error::Refused(r) if r.code == code && r.status == status),
            "{error:?}"
        );
        assert_eq!(idempotency_keys(&hub).len(), 1, "{code}");
    }
}

// The client does not wait for a Retry-After of an hour.
#[tokio::test]
async fn a_long_retry_after_is_returned_instead_of_waited_for() {
    let hub = ScriptedServer::start(vec![
        no_document(),
        refusal(429, "ERR_RATE_LIMITED", "retry-after: 3600\r\n"),
    ])
    .await;
    let error = client(&hub)
        .send_message("bob@chorus", &envelope(), 0)
        .await
        .unwrap_err();
    assert_eq!(
        error.error_response().unwrap().retry_after,
        Some(Duration::from_secs(3600))
    );
}

// TRN-51
#[tokio::test]
async fn sends_use_the_path_of_the_discovery_document() {
    let document = Answer::json(
        200,
        r#"{"chorus_version":"0.4","endpoints":{"send":"/v9/post"}}"#,
    );
    let queued = success(&format!(r#"{{"delivery":"queued","trace_id":"{TRACE}"}}"#));
    let hub = ScriptedServer::start(vec![document, queued]).await;
    client(&hub)
        .send_message("bob@chorus", &envelope(), 0)
        .await
        .unwrap();
    let requests = hub.requests();
    assert!(requests[0].starts_with("GET /.well-known/chorus.json "));
    assert!(requests[1].starts_with("POST /v9/post "));
}

/// What a hub announces that has every route elsewhere.
const MOVED_ROUTES: &str = r#"{"chorus_version":"0.4","endpoints":{"channel":"/v9/rooms/{id}","job":"/v9/work/{id}",
    "job_claim":"/v9/claims/{id}","job_approve":"/v9/work/{id}/yes","job_reject":"/v9/work/{id}/no",
    "job_answer":"/v9/work/{id}/said","board":"/v9/open-work","console_links":"/v9/links",
    "frame_stream":"/v9/{handle}/frames","open_items":"/v9/{handle}/items",
    "open_item":"/v9/{handle}/items/{frame_id}","take_handover":"/v9/{handle}/items/{frame_id}/mine",
    "orgs":"/v9/groups","members":"/v9/groups-of/{org}","send":"/v9/post","message":"/v9/states/{trace_id}",
    "history":"/v9/past","respond":"/v9/replies/{trace_id}","shown":"/v9/seen/{trace_id}","register":"/v9/all",
    "agent":"/v9/one/{id}","unregister":"/v9/gone/{id}","keys":"/v9/keys","rotate_key":"/v9/new-key",
    "revoke_key":"/v9/old-keys/{id}","revoke_invite":"/v9/old-codes/{id}"}}"#;

/// A hub that announces these routes and has nothing behind them, and its client.
async fn start_moved_hub(calls: usize) -> (ScriptedServer, HubClient) {
    let absent = || refusal(404, "ERR_NOT_FOUND", "");
    let mut script = vec![Answer::json(200, MOVED_ROUTES)];
    script.extend(std::iter::repeat_with(absent).take(calls));
    let hub = ScriptedServer::start(script).await;
    let client = client(&hub);
    (hub, client)
}

/// Method and path of every request but the first, which is for the discovery document.
fn request_lines(hub: &ScriptedServer) -> Vec<String> {
    let line = |request: &String| {
        let head = request.split(" HTTP/").next();
        head.unwrap_or_default().to_owned()
    };
    hub.requests().iter().skip(1).map(line).collect()
}

// TRN-51: also the routes of channels, jobs and frames, and those of streams
#[tokio::test]
async fn calls_and_streams_of_every_protocol_use_the_paths_of_the_discovery_document() {
    let (hub, client) = start_moved_hub(12).await;
    let alice = Handle::parse("~alice").unwrap();
    assert!(client.channel("ch_1").fetch_channel().await.is_err());
    assert!(client.fetch_job("j_1").await.is_err());
    assert!(client.claim_job("j_1").await.is_err());
    assert!(client.approve_job("j_1").await.is_err());
    assert!(client.reject_job("j_1", None).await.is_err());
    assert!(client.answer_job("j_1", "yes").await.is_err());
    assert!(client.list_board(Some("ocr")).await.is_err());
    assert!(client.list_open_items(&alice).await.is_err());
    let frame_id = TRACE.parse().unwrap();
    assert!(client.withdraw_item("~alice", frame_id).await.is_err());
    assert!(client.list_own_orgs().await.is_err());
    assert!(client.list_org_members(&alice).await.is_err());
    let mut stream = client.open_stream("/handles/~alice/stream?session=s1", None);
    assert!(stream.next().await.is_err());
    let expected = [
        "GET /v9/rooms/ch_1",
        "GET /v9/work/j_1",
        "POST /v9/claims/j_1",
        "POST /v9/work/j_1/yes",
        "POST /v9/work/j_1/no",
        "POST /v9/work/j_1/said",
        "GET /v9/open-work?skill=ocr",
        "GET /v9/~alice/items",
        &format!("DELETE /v9/~alice/items/{TRACE}"),
        "GET /v9/groups",
        "GET /v9/groups-of/~alice",
        "GET /v9/~alice/frames?session=s1",
    ];
    assert_eq!(request_lines(&hub), expected);
}

// TRN-51: a route with a path of its own is not looked for below the route that it usually is below.
#[tokio::test]
async fn calls_about_one_message_agent_or_key_use_the_paths_of_the_discovery_document() {
    let (hub, client) = start_moved_hub(9).await;
    assert!(client.fetch_message_status("t_1").await.is_err());
    assert!(client.mark_shown("t_1").await.is_err());
    let reply = ReceiverReply::ok();
    assert!(client.send_response("t_1", &reply).await.is_err());
    assert!(client.fetch_record("bob@chorus").await.is_err());
    assert!(client.unregister_agent("bob@chorus").await.is_err());
    let rotation = KeyRotation { overlap_s: None };
    assert!(client.rotate_key(&rotation, "r_1").await.is_err());
    assert!(client.revoke_key("k_1").await.is_err());
    assert!(client.revoke_invite("i_1").await.is_err());
    assert!(client.create_console_link().await.is_err());
    let expected = [
        "GET /v9/states/t_1",
        "POST /v9/seen/t_1",
        "POST /v9/replies/t_1",
        "GET /v9/one/bob@chorus",
        "DELETE /v9/gone/bob@chorus",
        "POST /v9/new-key",
        "DELETE /v9/old-keys/k_1",
        "DELETE /v9/old-codes/i_1",
        "POST /v9/links",
    ];
    assert_eq!(request_lines(&hub), expected);
}

// TRN-51
#[tokio::test]
async fn a_handover_is_taken_at_the_path_of_the_discovery_document() {
    let (hub, client) = start_moved_hub(1).await;
    let ident = |text| ScopeIdent::parse(text).unwrap();
    let alice = Handle::parse("~alice").unwrap();
    let sender = FrameSender::new(alice, ident("cli"), ident("s1"));
    let item = format!(
        r#"{{"frame_id":"{TRACE}","item":"handover","handle":"~alice","scope":"~alice","left_ms":1,"frame":{{}},
            "opened_at":"2026-03-20T10:00:00.000Z","expires_at":"2026-03-20T11:00:00.000Z"}}"#
    );
    let item: OpenItem = serde_json::from_str(&item).unwrap();
    assert!(client.take_handover(&sender, &item).await.is_err());
    let expected = format!("POST /v9/~alice/items/{TRACE}/mine");
    assert_eq!(request_lines(&hub), [expected]);
}

// Neither a key nor a query appears in an error.
#[tokio::test]
async fn an_unreachable_hub_is_reported_without_secrets() {
    let hub = HubClient::new("http://127.0.0.1:1", Some(Secret::new("ca_not-a-real-key"))).unwrap();
    let error = hub.fetch_health().await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    let text = format!("{error} {error:?} {hub:?}");
    assert!(
        text.contains("http://127.0.0.1:1") && !text.contains("not-a-real-key"),
        "{text}"
    );
    let error =
        chorus_client::direct::send_direct("http://127.0.0.1:1/in?k=hidden", &envelope(), 0)
            .await
            .unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("hidden"),
        "{error:?}"
    );
}

// R-15: a send reply and a history page give one message the same timestamp.
#[test]
fn the_time_of_a_send_is_read_from_its_trace_id() {
    let at = chorus_client::envelope::trace_time(&TRACE.parse().unwrap()).unwrap();
    assert_eq!(at, "2025-03-23T02:38:49.344Z");
    let random = "8c1b2f8e-7a0c-4f57-9d3c-0a4d3f0f7b11".parse().unwrap();
    assert_eq!(chorus_client::envelope::trace_time(&random), None);
}

// R-27: a write whose answer was lost is repeated under one key, so that the hub carries it out once.
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_repeated_with_the_same_key() {
    let broken = || Answer {
        pieces: vec![b"HTTP/1.1 201 Created\r\ncontent-length: 99\r\n\r\n{".to_vec()],
        hang: false,
    };
    let invite = success(
        r#"{"id":"i","code":"ci_not-a-real-code","label":"x","uses":0,"max_uses":null,"expires_at":null,"revoked":false,"created_at":"2026-03-20T10:00:00.000Z"}"#,
    );
    let connection =
        success(r#"{"connection_string":"https://hub.example/inbox/sk_not-a-real-one"}"#);
    let script = vec![no_document(), broken(), invite, broken(), connection];
    let hub = ScriptedServer::start(script).await;
    let client = client(&hub);
    client.create_invite("x", None, None).await.unwrap();
    client.create_connection().await.unwrap();
    let keys: Vec<String> = hub
        .requests()
        .iter()
        .filter(|request| request.starts_with("POST "))
        .map(|request| header(request, "idempotency-key").expect("every write has a key"))
        .collect();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[2] == keys[3] && keys[1] != keys[2]);
    assert!(keys.iter().all(|key| key.len() == 32), "{keys:?}");
}

// R-27, R-46, R-47: so are the writes for organisations and accords; a PUT is the same however often it is sent, so it has no key.
#[tokio::test]
async fn writes_for_organisations_and_accords_are_repeated_with_the_same_key() {
    let broken = || Answer {
        pieces: vec![b"HTTP/1.1 201 Created\r\ncontent-length: 99\r\n\r\n{".to_vec()],
        hang: false,
    };
    let busy = || refusal(503, "ERR_UNAVAILABLE", "retry-after: 0\r\n");
    let done = || Answer::json(200, "{}");
    let mut script = vec![no_document()];
    let failures: [fn() -> Answer; 6] = [broken, busy, broken, busy, broken, busy];
    for failed in failures {
        script.extend([failed(), done()]);
    }
    let hub = ScriptedServer::start(script).await;
    let client = client(&hub);
    let handle = |text| Handle::parse(text).unwrap();
    let org = handle("~north");
    let other = handle("~south");
    let proposal = AccordProposal {
        grantee: other.clone(),
        grant: RoleName::parse("reader").unwrap(),
        reaches: None,
        expires_at: None,
    };
    client.create_org(&org).await.unwrap();
    client.accept_membership(&org, &other).await.unwrap();
    client.propose_accord(&org, &proposal).await.unwrap();
    client.accept_accord(&other, "a1").await.unwrap();
    client.invite_member(&org, &other, &[]).await.unwrap();
    client.create_grant(&org, &other).await.unwrap();
    let requests = hub.requests();
    let line = |request: &String| request.lines().next().map(str::to_owned);
    let writes: Vec<&String> = requests
        .iter()
        .filter(|one| !one.starts_with("GET "))
        .collect();
    assert_eq!(writes.len(), 12);
    let mut keys = Vec::new();
    for pair in writes.chunks(2) {
        assert_eq!(line(pair[0]), line(pair[1]));
        let key = header(pair[0], "idempotency-key");
        assert_eq!(key, header(pair[1], "idempotency-key"));
        assert_eq!(key.is_some(), pair[0].starts_with("POST "));
        keys.extend(key);
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4, "each write has a key of its own");
}

// R-102: a hub that takes an id for a time repeats the page
#[tokio::test]
async fn a_full_page_that_repeats_ends_the_history() {
    let row = |id: u32| {
        format!(
            r#"{{"id":{id},"trace_id":"{TRACE}","sender_id":"alice@chorus","receiver_id":"bob@chorus","envelope":{{}},"delivered_via":"queued","timestamp":"2026-03-20T10:00:00.000Z"}}"#
        )
    };
    let rows: Vec<String> = (1..=200).map(row).collect();
    let page = success(&format!("[{}]", rows.join(",")));
    let hub = ScriptedServer::start(vec![no_document(), page.clone(), page]).await;
    let mut history = client(&hub).read_history(None);
    assert_eq!(history.next_page().await.unwrap().unwrap().len(), 200);
    assert!(history.next_page().await.unwrap().is_none());
    assert!(history.next_page().await.unwrap().is_none());
    let requests = hub.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests[2].contains("?limit=200&since=200 "),
        "{requests:?}"
    );
}
