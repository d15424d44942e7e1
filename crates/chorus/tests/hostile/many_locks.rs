//! An agent with many claims on resources: another claim costs in proportion to them, not to their square.

use crate::support_frames::{MeasuredHub, call, send_lock};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use serde_json::json;

const FEW: usize = 200;
const MANY: usize = 4 * FEW;
/// Claims that are measured together, because the system counts processor time in hundredths of a second.
const MEASURED: usize = 20;
/// Four times as many claims cost four times as much; a comparison of all pairs cost sixteen times.
const MAX_RATIO: u64 = 8;
/// What the clock of the system cannot tell.
const TICKS_OF_ERROR: u64 = 10;

/// The processor time of the hub while one claim is renewed again and again over MCP.
async fn measure_claims(hub: &MeasuredHub, client: &HubClient) -> u64 {
    let before = hub.processor_ticks();
    for _ in 0..MEASURED {
        let arguments = json!({
            "resource": "src/main.rs",
            "lease_id": "0195d8a0-0000-4000-8000-000000000001",
            "ttl_ms": 3_600_000,
        });
        let params = json!({"name": "agent_lock_acquire", "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = call(client, ApiCall::post("/mcp", message.to_string())).await;
        assert_eq!(
            answer["result"]["structuredContent"]["kept"], true,
            "{answer}"
        );
    }
    hub.processor_ticks() - before
}

async fn claim_files(client: &HubClient, numbers: std::ops::Range<usize>) {
    for number in numbers {
        send_lock(client, "~alice", &format!("docs/{number}.md")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_among_many_costs_in_proportion() {
    let hub = MeasuredHub::start();
    let alice = hub.register("alice").await;
    claim_files(&alice, 0..FEW).await;
    measure_claims(&hub, &alice).await;
    let few = measure_claims(&hub, &alice).await;
    claim_files(&alice, FEW..MANY).await;
    let watch = hub.watch();
    let many = measure_claims(&hub, &alice).await;
    watch.assert_unharmed(32);
    println!("{MEASURED} claims among {FEW}: {few} ticks, among {MANY}: {many} ticks");
    assert!(
        many <= MAX_RATIO * few + TICKS_OF_ERROR,
        "{many} after {few}"
    );
}
