//! The part of the script about receivers with an endpoint.

use super::envelope::message;
use super::transcript::{Transcript, raw_request};
use crate::support::actors::{Reply, Webhook, registration};
use serde_json::json;

/// What an endpoint may answer, and what the sender is told of it.
pub async fn run(transcript: &mut Transcript, alice: &str) {
    let script = |turn: usize| {
        match turn {
        0 => Reply::ok(),
        1 => Reply::json(200, r#"{"status":"error","error_code":"ADAPTATION_FAILED","detail":"no"}"#),
        2 => Reply::json(500, "{}"),
        3 => Reply::typed(200, "text/html", "<p>"),
        4 => Reply::redirect("http://127.0.0.1:9/"),
        _ => Reply::events(&[
            b"event: chunk\ndata: {\"text\":\"I \"}\n\nevent: done\ndata: {\"full_text\":\"I \",\"envelope\":null}\n\n",
        ]),
    }
    };
    let mut hook = Webhook::script(script).await;
    transcript
        .placeholders
        .assign(&format!("127.0.0.1:{}", hook.port()), "carols-place");
    let mut carol = registration("carol@chorus");
    carol["endpoint"] = json!(hook.url());
    transcript
        .post("", "/register", &carol)
        .await
        .expect_status(201);
    for number in 0..6 {
        let mut body = message(
            "alice@chorus",
            "carol@chorus",
            &format!("to a place {number}"),
        );
        body["stream"] = json!(number == 5);
        let asked = raw_request("POST", "/messages")
            .key(alice)
            .header("accept", "text/event-stream, application/json");
        transcript.record(asked.json(&body)).await;
        let heard = hook.next_request().await;
        transcript.add_entry(
            "heard at carol's",
            &format!("{}\n\n{}", heard.head, heard.text),
        );
    }
    transcript
        .post(
            alice,
            "/messages",
            &message("alice@chorus", "dora@chorus", "no server is there"),
        )
        .await;
    transcript
        .get(alice, "/agent/messages?limit=1000")
        .await
        .expect_status(200);
}
