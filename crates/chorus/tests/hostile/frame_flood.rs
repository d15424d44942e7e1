//! Large frames to many handles: the payload is in memory once.

use crate::support_frames::{MeasuredHub, call, send_frame};
use chorus_client::http::ApiCall;
use serde_json::json;

const MEMBERS: usize = 400;
const FRAMES: usize = 12;
const FRAME_BYTES: usize = 60 * 1024;
/// A copy for each member would be 281 MiB.
const MAX_GROWTH_MIB: u64 = 60;

#[tokio::test(flavor = "multi_thread")]
async fn large_frames_to_an_organisation_do_not_fill_the_memory() {
    let hub = MeasuredHub::start();
    let alice = hub.register("alice").await;
    call(
        &alice,
        ApiCall::post("/orgs", json!({"handle": "acme"}).to_string()),
    )
    .await;
    for number in 0..MEMBERS {
        let member = hub.register(&format!("member-{number}")).await;
        let path = format!("/orgs/~acme/members/~member-{number}");
        let roles = json!({"roles": []}).to_string();
        call(&alice, ApiCall::put(path.clone(), roles)).await;
        call(
            &member,
            ApiCall::post(format!("{path}/accept"), "{}".into()),
        )
        .await;
    }
    // The first frame sets up the rings; its own memory is not counted.
    let scope = "org:~acme/members/*";
    send_frame(&alice, "~alice", "~acme", scope, 1_024).await;
    let watch = hub.watch();
    for _ in 0..FRAMES {
        send_frame(&alice, "~alice", "~acme", scope, FRAME_BYTES).await;
    }
    watch.assert_unharmed(MAX_GROWTH_MIB);
}
