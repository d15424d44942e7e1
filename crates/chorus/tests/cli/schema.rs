//! `chorus openapi` and `chorus schema`: the contract without a hub.

use crate::actors::{chorus, run};
use serde_json::Value;

#[test]
fn the_contract_is_printed_without_a_hub() {
    let folder = tempfile::tempdir().unwrap();
    let print = |args: &[&str]| {
        let mut command = chorus(folder.path());
        command.args(args);
        run(command, "")
    };
    let document: Value = serde_json::from_str(&print(&["openapi"]).ok().out).unwrap();
    assert!(document["paths"]["/messages"]["post"].is_object());
    let names = print(&["schema"]).ok().out;
    assert!(names.lines().any(|name| name == "envelope"), "{names}");
    let schema: Value = serde_json::from_str(&print(&["schema", "envelope"]).ok().out).unwrap();
    assert_eq!(schema["properties"]["turn_number"]["minimum"], 1);
    let refused = print(&["schema", "nothing"]);
    assert!(
        refused.err.contains("there is no schema nothing"),
        "{}",
        refused.err
    );
}
