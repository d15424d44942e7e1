//! docs/agents.md: runs the commands of the hosts themselves.

use crate::actors::{Scene, chorus};
use crate::kit::{HostKit, isolate, run};

const PAGE: &str = include_str!("../../../../docs/agents.md");

#[test]
fn host_commands_in_the_docs_add_entries_that_verify_accepts() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    for (host, target) in [("claude", "claude-user"), ("codex", "codex")] {
        let agent = scene.agent(host);
        let line = PAGE
            .lines()
            .find(|line| line.starts_with(&format!("{host} mcp add ")))
            .unwrap();
        let mut command = match host {
            "claude" => kit.claude(),
            _ => kit.script("@openai/codex/bin/codex.js"),
        };
        isolate(&mut command, &agent.home);
        command.args(line.split_whitespace().skip(1));
        run(command).ok();
        // The page names the program without its folder, so it has to be on the PATH, as it is for the host.
        let mut verify = chorus(&agent.home);
        isolate(&mut verify, &agent.home);
        verify.args(["verify", "--target", target]);
        let found = run(verify).out;
        assert!(
            found.contains("✓ tools:") && found.contains("✗ skill:"),
            "{host}: {found}"
        );
        agent.run(&["init", "--target", target]).ok();
        agent.run(&["verify", "--target", target]).ok();
    }
}
