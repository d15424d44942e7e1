//! Guessed callbacks: an address that guesses is refused without a look-up.

use crate::support::actors::remote_member::{OwnedChannel, RemoteMember};
use serde_json::json;
use std::time::Duration;

story!(
    guessed_callbacks_are_refused_without_a_lookup,
    with(|set| set.rate_limit = 10),
    |hub| async {
        // D-20: a valid callback from the guessing address is refused too, which shows that none is looked up
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak = RemoteMember::accepting(&hub).await;
        room.add_remote("oak", &oak.url()).await;
        room.post_message("hello").await;
        let to_oak = oak.next_delivery().await;
        let event = json!({"type": "status", "status": "busy"});
        for number in 0..20 {
            let path = format!("/channels/ch_none/inbox/tok_{number:032}");
            let status = hub.anonymous().post(&path, &event).await.status;
            assert!(matches!(status, 404 | 429), "{status}");
        }
        oak.post_event(&to_oak, &event)
            .await
            .refused(429, "ERR_RATE_LIMITED");
        hub.advance(Duration::from_secs(60));
        assert_eq!(oak.post_event(&to_oak, &event).await.status, 200);
    }
);
