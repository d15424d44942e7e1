//! What was made with a key ends with it: tokens, callbacks and connection strings.

use crate::support::actors::channel::{add_agent, create_channel, post_message};
use crate::support::actors::{Agent, Answer, Caller, registration};
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// Everything that a client can get with the key of a member of a channel.
pub struct Credentials {
    pub room: String,
    callback: String,
    bearer: String,
    standing: String,
    standing_of_other: String,
    connection: String,
    session: String,
}

fn path_of(hub: &Hub, url: &Value) -> String {
    let url = url.as_str().expect("a URL");
    url.strip_prefix(&hub.url).expect("on this hub").to_owned()
}

impl Credentials {
    /// Those of `agent`, which is in a channel of `owner` and owns another one. `agent` uses `key` for all of it.
    pub async fn collect(hub: &Hub, agent: &Agent, key: &Caller, owner: &Agent) -> Self {
        let room = create_channel(owner, "shared").await;
        let member = add_agent(owner, &room, agent).await;
        let mut inbox = key.stream("/agent/inbox").await;
        inbox.next("connected").await;
        post_message(owner, &room, "hello").await;
        let delivery = inbox.next("channel").await.data;
        let name = member["name"].as_str().unwrap();
        let standing = key
            .post(&format!("{room}/members/{name}/callback"), &json!({}))
            .await
            .data(201);
        let own_room = create_channel(agent, "own").await;
        let remote = json!({"name": "oak", "connection": "http://127.0.0.1:1/inbox/sk_00112233"});
        agent
            .post(&format!("{own_room}/members"), &remote)
            .await
            .data(201);
        let standing_of_other = key
            .post(&format!("{own_room}/members/oak/callback"), &json!({}))
            .await
            .data(201);
        let connection = key.post("/agent/connection", &json!({})).await.data(200);
        let session = key.post("/agent/session", &json!({})).await.data(200);
        Self {
            room,
            callback: path_of(hub, &delivery["callback"]),
            bearer: delivery["mcp"]["headers"]["Authorization"]
                .as_str()
                .unwrap()
                .trim_start_matches("Bearer ")
                .to_owned(),
            standing: path_of(hub, &standing["callback"]),
            standing_of_other: path_of(hub, &standing_of_other["callback"]),
            connection: path_of(hub, &connection["connection_string"]),
            session: session["session_token"].as_str().unwrap().to_owned(),
        }
    }

    async fn post_event(&self, hub: &Hub, path: &str) -> Answer {
        let event = json!({"type": "message", "content": "spoken"});
        hub.anonymous().post(path, &event).await
    }

    async fn list_tools(&self, hub: &Hub) -> u16 {
        let caller = hub.anonymous().with_key(&self.bearer);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        let path = self.room.replace("/channels/", "/mcp/");
        let request = caller
            .request("POST", &path)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .json(&body);
        Answer::of(request).await.status
    }

    async fn deliver(&self, hub: &Hub, message: &str) -> Answer {
        let delivery = json!({"channel": {"id": "c"}, "callback": "https://service.example.com/cb",
            "message": {"id": message, "sender": "x", "content": "x"}});
        hub.anonymous().post(&self.connection, &delivery).await
    }

    pub async fn assert_standing_alive(&self, hub: &Hub) {
        for path in [&self.standing, &self.standing_of_other] {
            let answer = self.post_event(hub, path).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }

    /// All but the session token, which works once.
    pub async fn assert_alive(&self, hub: &Hub, message: &str) {
        for path in [&self.callback, &self.standing, &self.standing_of_other] {
            let answer = self.post_event(hub, path).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        assert_eq!(self.list_tools(hub).await, 200);
        assert_eq!(self.deliver(hub, message).await.status, 200);
    }

    pub async fn assert_ended(&self, hub: &Hub) {
        for path in [&self.callback, &self.standing, &self.standing_of_other] {
            self.post_event(hub, path).await.refused(410, "ERR_GONE");
        }
        assert_eq!(self.list_tools(hub).await, 401, "the tools of the channel");
        self.deliver(hub, "after")
            .await
            .refused(404, "ERR_NOT_FOUND");
        let path = format!("/agent/inbox?session={}", self.session);
        hub.anonymous()
            .get(&path)
            .await
            .refused(401, "ERR_UNAUTHORIZED");
    }
}

story!(
    a_rotation_ends_everything_that_was_made_with_the_old_key,
    |hub| async {
        // a thief of the key reads and speaks nowhere after it
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let carol = hub.agent("carol").await;
        let stolen = Credentials::collect(&hub, &bob, &bob, &alice).await;
        let of_carol = Credentials::collect(&hub, &carol, &carol, &alice).await;
        stolen.assert_alive(&hub, "before").await;
        let renewed = bob
            .post("/register", &registration(&bob.id))
            .await
            .data(200);
        stolen.assert_ended(&hub).await;
        of_carol.assert_alive(&hub, "other").await;
        // The agent itself goes on, with its new key.
        let bob = bob.with_rotated_key(renewed["api_key"].as_str().unwrap());
        let fresh = Credentials::collect(&hub, &bob, &bob, &alice).await;
        fresh.assert_alive(&hub, "fresh").await;
    }
);
