//! The commands of hosts on the page on agents: run as they stand there, by those hosts.

use crate::actors::{Scene, chorus};
use crate::kit::{Kit, alone, run};

const PAGE: &str = include_str!("../../../../docs/agents.md");

#[test]
fn the_hosts_own_commands_on_the_page_add_what_init_knows_as_ours() {
    let Some(kit) = Kit::fetched() else { return };
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
        alone(&mut command, &agent.home);
        command.args(line.split_whitespace().skip(1));
        run(command).ok();
        let mut verify = chorus(&agent.home);
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
