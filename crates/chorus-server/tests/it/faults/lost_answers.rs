//! A hub that ends between the commit of a request and the record of its answer: the repetition does nothing again, and gets
//! the same answer where the commit has kept what it is made of.

use crate::support::actors::{Answer, Caller, registration};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

const KEY: &str = "1c7d54fa-7a1b-4f0b-8a77-5a4f0a1f8b22";

/// Answers are no longer recorded: what a crash after the commit leaves behind.
async fn lose_answers(hub: &Hub) {
    let url = hub.settings.hub.database_url.as_ref().unwrap().expose();
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "create function lose() returns trigger language plpgsql as $$ begin
                   raise exception 'the hub ends here';
               end $$;
               create trigger lose before update on request_answers for each row execute function lose()";
    client.batch_execute(sql).await.unwrap();
}

async fn post_keyed(caller: &Caller, path: &str, body: &Value) -> Answer {
    let request = caller
        .request("POST", path)
        .header("idempotency-key", KEY)
        .json(body);
    Answer::of(request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_committed_is_answered_again_and_not_done_again() {
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let alice = hub.agent("alice").await;
    let stranger = hub.anonymous();
    let operator = hub.operator();
    lose_answers(&hub).await;
    let channel = json!({"name": "room"});
    let key = json!({"label": "ci", "scopes": ["read"]});
    let credit = json!({"amount": 10});
    let invite = json!({"label": "one"});
    let dora = registration("dora@chorus");
    let requests: [(&Caller, &str, &Value); 6] = [
        (&alice, "/channels", &channel),
        (&alice, "/agent/keys", &key),
        (&alice, "/agent/connection", &json!({})),
        (&operator, "/accounts/alice@chorus/credit", &credit),
        (&stranger, "/register", &dora),
        (&operator, "/invites", &invite),
    ];
    for (caller, path, body) in requests {
        let first = post_keyed(caller, path, body).await;
        assert!((200..300).contains(&first.status), "{path}: {first:?}");
        let again = post_keyed(caller, path, body).await;
        let data = |answer: &Answer| {
            let mut body = answer.json();
            if let Some(fields) = body.as_object_mut() {
                fields.remove("metadata");
            }
            body
        };
        assert_eq!(
            (first.status, data(&first)),
            (again.status, data(&again)),
            "{path}"
        );
    }
    let account = operator.get("/accounts/alice@chorus").await.json();
    assert_eq!(account["balance"], 110.0, "{account}");
    // An operation that keeps nothing says so, and does nothing again.
    let org = json!({"handle": "acme"});
    assert_eq!(post_keyed(&alice, "/orgs", &org).await.status, 201);
    let again = post_keyed(&alice, "/orgs", &org).await;
    assert_eq!(again.status, 409, "{again:?}");
    assert!(again.text.contains("was carried out"), "{again:?}");
}
