//! Runs the commands of the README and of the story pages, and compares the output with the printed one.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

mod page;
mod shell;
mod walk;

use shell::Shell;
use walk::{walk_page, walk_section};

#[test]
fn the_tour_prints_what_the_readme_says() {
    walk_page("README.md");
}

#[test]
fn the_story_of_two_coding_agents_prints_what_its_page_says() {
    walk_page("docs/stories/two-coding-agents.md");
}

#[test]
fn the_story_of_a_friends_agent_prints_what_its_page_says() {
    walk_page("docs/stories/ask-a-friends-agent.md");
}

#[test]
fn the_story_of_a_sold_script_prints_what_its_page_says() {
    walk_page("docs/stories/sell-a-script.md");
}

#[test]
fn the_story_of_a_team_hub_prints_what_its_page_says() {
    walk_page("docs/stories/team-hub.md");
}

#[test]
fn two_machines_are_connected_as_their_page_says() {
    walk_page("docs/stories/two-machines.md");
}

#[test]
fn the_page_of_frames_begins_with_commands_that_work() {
    walk_section("docs/frame.md", "Try it");
}

#[test]
fn every_story_is_walked_through() {
    let pages = std::fs::read_dir(walk::page_path("docs/stories")).unwrap();
    let source = include_str!("main.rs");
    for page in pages {
        let name = page.unwrap().file_name().into_string().unwrap();
        assert!(
            source.contains(&format!("docs/stories/{name}")),
            "{name} is not tested"
        );
    }
}

/// A page that fails half way leaves no `chorus offer` running.
#[test]
fn what_a_page_starts_in_the_background_ends_with_its_shell() {
    let home = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(home.path());
    shell.run("sleep 300 &");
    assert!(shell.end(), "a process still has the output of the shell");
}
