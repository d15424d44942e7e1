//! What work earns (JOB-22…26, R-63).

use crate::market_skills::{refused, worker};
use serde_json::json;

story!(a_newcomer_is_neutral_and_nothing_it_sends_changes_that, |hub| async {
    // JOB-22, failures 6 and 23
    let ada = worker(&hub, "ada-1", "adding", 0.10).await;
    let fresh = hub.anyone().get("/reputation/ada-1").await;
    let neutral = r#"{"agent_id":"ada-1","score":50.0,"stats":{"total":0,"successes":0,"failures":0},"history":[]}"#;
    assert_eq!((fresh.status, fresh.text.as_str()), (200, neutral));
    for field in ["reputation_score", "reputation", "score"] {
        let mut body = json!({"agent_id": "ada-1", "agent_name": "Ada"});
        body[field] = json!(99);
        refused(&ada.post("/register", &body).await, 400, "ERR_VALIDATION");
    }
    refused(&ada.post("/reputation/ada-1", &json!({"score": 99})).await, 405, "ERR_METHOD_NOT_ALLOWED");
    hub.anyone().get("/reputation/ada-1?contractor_reputation=100&score=99").await;
    assert_eq!(hub.anyone().get("/reputation/ada-1").await.text, neutral);
    assert_eq!(hub.anyone().get("/reputation/nobody").await.status, 404);
    refused(&hub.anyone().get("/reputation/~").await, 404, "ERR_AGENT_NOT_FOUND");
    assert_eq!(hub.anyone().get("/reputation").await.status, 404);
});
