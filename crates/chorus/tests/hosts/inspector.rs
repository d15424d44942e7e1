//! The command line of the official MCP inspector, over stdio and over HTTP.

use crate::actors::{Agent, Scene};
use crate::kit::{HostKit, isolate, read_key, run};
use serde_json::Value;

fn inspect(kit: &HostKit, agent: &Agent, args: &[&str]) -> Value {
    let mut command = kit.script("@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    isolate(&mut command, &agent.home);
    command.arg("--cli").args(args);
    let ended = run(command).ok();
    serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"))
}

#[test]
fn the_inspector_lists_and_calls_our_tools_over_stdio_and_http() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let key = read_key(&alice);
    let url = format!("{}/mcp", scene.hub.url);
    let header = format!("Authorization: Bearer {key}");
    let transports: [&[&str]; 2] = [
        &[env!("CARGO_BIN_EXE_chorus"), "mcp"],
        &[&url, "--transport", "http", "--header", &header],
    ];
    for transport in transports {
        let listed = inspect(
            &kit,
            &alice,
            &[transport, &["--method", "tools/list"]].concat(),
        );
        let names: Vec<&str> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap())
            .collect();
        assert!(
            names.contains(&"chorus_send") && names.contains(&"agent_subscribe"),
            "{names:?}"
        );
        let call = ["--method", "tools/call", "--tool-name", "chorus_discover"];
        let called = inspect(&kit, &alice, &[transport, &call].concat());
        assert_eq!(
            called["structuredContent"]["agents"][0]["agent_id"], "alice@chorus",
            "{called}"
        );
    }
}
