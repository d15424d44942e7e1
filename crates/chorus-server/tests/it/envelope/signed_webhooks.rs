//! Signed webhooks: with an endpoint secret every post to an agent's endpoints proves that it comes from the hub.

use crate::support::actors::market::{
    job_request, register_requester, request_job, skill_offer, success_result,
};
use crate::support::actors::{Agent, ReceivedRequest, Reply, Webhook, registration};
use crate::support::hub::Hub;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Base64 of 24 zeros.
const SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// HMAC-SHA256 as RFC 2104 defines it, so that the hub's library is not checked by itself.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update(message);
    let outer = Sha256::new()
        .chain_update(padded(0x5c))
        .chain_update(inner.finalize());
    outer.finalize().to_vec()
}

/// Checks a post as docs/envelope.md tells receivers to, and returns its id.
#[track_caller]
fn check_signature(hub: &Hub, secret: &str, heard: &ReceivedRequest) -> String {
    let id = heard.header("webhook-id").expect("an id");
    let timestamp = heard.header("webhook-timestamp").expect("a timestamp");
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").expect("the prefix"))
        .unwrap();
    let signed = format!("{id}.{timestamp}.{}", heard.text);
    let expected = format!("v1,{}", STANDARD.encode(hmac(&key, signed.as_bytes())));
    assert_eq!(heard.header("webhook-signature"), Some(expected));
    let age = hub.settings.hub.clock.now().0 / 1_000_000 - timestamp.parse::<i64>().unwrap();
    assert!((0..300).contains(&age), "signed {age} s ago");
    id
}

fn is_unsigned(heard: &ReceivedRequest) -> bool {
    !heard.head.to_ascii_lowercase().contains("webhook-")
}

async fn signed_agent(hub: &Hub, name: &str, endpoint: &str) -> Agent {
    let more = json!({"endpoint": endpoint, "endpoint_secret": SECRET});
    hub.agent_with(&format!("{name}@chorus"), &more).await
}

story!(
    a_message_to_an_endpoint_with_a_secret_is_signed,
    |hub| async {
        //
        let mut webhook = Webhook::replying(Reply::ok()).await;
        let alice = hub.agent("alice").await;
        let bob = signed_agent(&hub, "bob", &webhook.url()).await;
        let data = alice.send_expecting(&bob.id, "hello", "delivered").await;
        let heard = webhook.next_request().await;
        assert_eq!(heard.json(), json!({"envelope": alice.envelope("hello")}));
        let id = check_signature(&hub, SECRET, &heard);
        assert_eq!(json!(id), data["trace_id"], "the message's own id");
        alice.send_expecting(&bob.id, "again", "delivered").await;
        let next_id = check_signature(&hub, SECRET, &webhook.next_request().await);
        assert_ne!(id, next_id);
    }
);

story!(a_relayed_message_is_signed_too, |hub| async {
    //
    let done = b"event: done\ndata: {}\n\n".as_slice();
    let mut webhook = Webhook::replying(Reply::events(&[done])).await;
    let alice = hub.agent("alice").await;
    let bob = signed_agent(&hub, "bob", &webhook.url()).await;
    let mut body = alice.message(&bob.id, "stream it");
    body["stream"] = json!(true);
    assert_eq!(alice.post("/messages", &body).await.status, 200);
    check_signature(&hub, SECRET, &webhook.next_request().await);
});

story!(a_secret_is_made_once_shown_once_and_replaced, |hub| async {
    //
    let mut webhook = Webhook::replying(Reply::ok()).await;
    let alice = hub.agent("alice").await;
    let bob = hub.agent_with_webhook("bob", &webhook.url()).await;
    alice.send_expecting(&bob.id, "plain", "delivered").await;
    assert!(is_unsigned(&webhook.next_request().await), "no secret yet");
    let make = async || -> String {
        let data = bob
            .post("/agent/endpoint-secret", &json!({}))
            .await
            .data(201);
        data["endpoint_secret"].as_str().unwrap().to_owned()
    };
    let first = make().await;
    let second = make().await;
    assert_ne!(first, second);
    alice.send_expecting(&bob.id, "signed", "delivered").await;
    check_signature(&hub, &second, &webhook.next_request().await);
    // An update of the registration that names no secret keeps it, and one that names another replaces it.
    let mut update = registration(&bob.id);
    update["endpoint"] = json!(webhook.url());
    let data = bob.post("/register", &update).await.data(200);
    alice.send_expecting(&bob.id, "kept", "delivered").await;
    check_signature(&hub, &second, &webhook.next_request().await);
    let bob = bob.with_rotated_key(data["api_key"].as_str().unwrap());
    update["endpoint_secret"] = json!(SECRET);
    let answer = bob.post("/register", &update).await;
    answer.data(200);
    alice.send_expecting(&bob.id, "replaced", "delivered").await;
    check_signature(&hub, SECRET, &webhook.next_request().await);
    hub.restart().await;
    let alice = hub.reconnect(&alice);
    alice
        .send_expecting(&bob.id, "restarted", "delivered")
        .await;
    check_signature(&hub, SECRET, &webhook.next_request().await);
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
    assert_secret_is_hidden(&hub, &[&first, &second, SECRET]).await;
});

/// No record, activity entry or file has the secret.
async fn assert_secret_is_hidden(hub: &Hub, secrets: &[&str]) {
    let shown = [
        hub.operator().get("/agents").await.text,
        hub.operator().get("/agents/bob@chorus").await.text,
        json!(hub.operator().activity(0).await).to_string(),
        hub.anonymous().get("/discover").await.text,
    ];
    let files = ["chorus.db", "chorus.db-wal"]
        .map(|name| std::fs::read(hub.dir.path().join(name)).unwrap_or_default());
    for secret in secrets {
        assert!(shown.iter().all(|text| !text.contains(secret)), "R-96");
        let is_readable = |bytes: &Vec<u8>| {
            bytes
                .windows(secret.len())
                .any(|at| at == secret.as_bytes())
        };
        assert!(!files.iter().any(is_readable), "R-78: it is sealed");
    }
}

story!(jobs_and_their_results_are_signed, |hub| async {
    //
    let mut endpoint = Webhook::replying(Reply::json(202, "{}")).await;
    let mut callback = Webhook::replying(Reply::ok()).await;
    let boss = register_requester(&hub).await;
    let boss_secret = boss
        .post("/agent/endpoint-secret", &json!({}))
        .await
        .data(201)["endpoint_secret"]
        .clone();
    let worker = json!({"agent_id": "worker-1", "owner_id": "owner-of-worker-1", "skills": skill_offer(0.10),
        "api_endpoint": format!("http://127.0.0.1:{}/jobs", endpoint.port()), "endpoint_secret": SECRET});
    let answer = hub.anonymous().post("/register", &worker).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let key = answer.json()["api_key"].as_str().unwrap().to_owned();
    let worker = Agent::new(&hub.anonymous().0, "worker-1", &key);
    let mut job = job_request("job-1");
    job["callback_url"] = json!(callback.url());
    request_job(&boss, &job).await;
    let id = check_signature(&hub, SECRET, &endpoint.next_request().await);
    assert_eq!(id, "job_job-1");
    let answer = worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let heard = callback.next_request().await;
    let id = check_signature(&hub, boss_secret.as_str().unwrap(), &heard);
    assert_eq!(id, "job_result_job-1");
});

story!(a_secret_that_no_library_reads_is_refused, |hub| async {
    // whsec_ and the base64 of 24 to 64 octets
    let of = |octets: usize| format!("whsec_{}", STANDARD.encode(vec![7; octets]));
    let refused: [Value; 7] = [
        json!(7),
        json!(""),
        json!("whsec_"),
        json!(&SECRET["whsec_".len()..]),
        json!("whsec_not base64, and longer than that"),
        json!(of(23)),
        json!(of(65)),
    ];
    for secret in refused {
        let mut body = registration("bob@chorus");
        body["endpoint_secret"] = secret.clone();
        let said = hub
            .anonymous()
            .post("/register", &body)
            .await
            .refused(400, "ERR_VALIDATION");
        assert!(said.contains("endpoint_secret"), "{secret}: {said}");
        body["endpoint"] = json!("https://example.com/");
        let answer = hub.operator().post("/agents", &body).await;
        answer.refused(400, "ERR_VALIDATION");
    }
    for octets in [24, 64] {
        let id = format!("bob-{octets}@chorus");
        hub.agent_with(&id, &json!({"endpoint_secret": of(octets)}))
            .await;
    }
    let body = json!({"agent_id": "dora@chorus", "endpoint": "https://example.com/", "endpoint_secret": SECRET});
    hub.operator().post("/agents", &body).await.data(201);
    // Only an agent has endpoints.
    let answer = hub
        .operator()
        .post("/agent/endpoint-secret", &json!({}))
        .await;
    answer.refused(403, "ERR_FORBIDDEN");
});
