//! Runs every command of a page in order and compares the output with the page.

use crate::page::{Step, check_output, fence_languages, parse_steps};
use crate::shell::{ProcessGuard, Shell, start_hub};
use std::path::{Path, PathBuf};

/// How a page runs the program before it is installed.
const FROM_SOURCE: [&str; 2] = ["cargo run --release --", "target/release/chorus"];
/// The port of a hub that is started without `--listen`.
const DEFAULT_PORT: &str = "3000";
/// The machine of the hub in pages about two machines. Both are this one here.
const OTHER_MACHINE: &str = "192.168.1.20";
/// A command that a person ends with Ctrl-C, and its form that ends by itself.
const ENDLESS: (&str, &str) = ("chorus demo", "chorus demo --once --no-open");

/// One walk through a page: its folder, its shell and its hubs.
struct PageWalk {
    home: tempfile::TempDir,
    shell: Shell,
    /// Running hubs, each with the port that the page says and the one that it has.
    hubs: Vec<(ProcessGuard, String, String)>,
}

impl PageWalk {
    /// The text of the page as it is on this machine: with the real ports and addresses.
    fn localize(&self, text: &str) -> String {
        let mut text = text.replace(OTHER_MACHINE, "127.0.0.1");
        for (_, written, real) in &self.hubs {
            text = text.replace(&format!(":{written}"), &format!(":{real}"));
        }
        text
    }

    fn start_hub(&mut self, step: &Step) {
        let command = as_installed(&step.command);
        let command = command
            .trim_end_matches('&')
            .replace("chorus serve", "exec chorus serve");
        let written = match command.split_once("--listen ") {
            Some((_, rest)) => {
                let address = rest.split_whitespace().next().unwrap();
                address.rsplit(':').next().unwrap().to_owned()
            }
            None => DEFAULT_PORT.to_owned(),
        };
        let command = self.localize(&command);
        let command = command.replace(&format!(":{written}"), ":0");
        let (hub, line) = start_hub(self.home.path(), &command);
        let real = line.rsplit(':').next().unwrap().to_owned();
        self.hubs.push((hub, written, real));
        self.check(step, &[line]);
    }

    fn check(&self, step: &Step, printed: &[String]) {
        let localized = Step {
            command: step.command.clone(),
            printed: step
                .printed
                .iter()
                .map(|line| self.localize(line))
                .collect(),
        };
        check_output(&localized, printed);
    }

    fn run(&mut self, step: &Step) {
        let command = as_installed(&step.command);
        if command.contains("chorus serve") {
            return self.start_hub(step);
        }
        let command = if command == ENDLESS.0 {
            ENDLESS.1.to_owned()
        } else {
            self.localize(&command)
        };
        let (printed, status) = self.shell.run(&command);
        // Shown when the test fails, as the way up to there.
        println!("$ {command}\n{}", printed.join("\n"));
        self.check(step, &printed);
        // A page that prints an error of the program means a command that fails.
        let is_refused = step.printed.iter().any(|line| line.starts_with("chorus: "));
        assert_eq!(status != "0", is_refused, "$ {} → {status}", step.command);
    }
}

/// A command of the page, run by the program on the path.
fn as_installed(command: &str) -> String {
    let [cargo, built] = FROM_SOURCE;
    command.replace(cargo, "chorus").replace(built, "chorus")
}

pub fn page_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// Walks through a page of this repository. All its blocks must be commands.
#[track_caller]
pub fn walk_page(name: &str) {
    let text = std::fs::read_to_string(page_path(name)).unwrap();
    walk_text(name, &text);
}

/// Walks through the section of a page under a heading of the second level.
#[track_caller]
pub fn walk_section(name: &str, heading: &str) {
    let text = std::fs::read_to_string(page_path(name)).unwrap();
    let mut sections = text.split("\n## ");
    let section = sections.find(|section| section.lines().next() == Some(heading));
    let section = section.unwrap_or_else(|| panic!("{name} has no section {heading}"));
    walk_text(name, section);
}

#[track_caller]
fn walk_text(name: &str, text: &str) {
    let languages = fence_languages(text);
    assert!(
        languages.iter().all(|&language| language == "console"),
        "{name}: a block that is not run: {languages:?}"
    );
    let steps = parse_steps(text);
    assert!(steps.len() >= 5, "{name} has only {} commands", steps.len());
    let home = tempfile::tempdir().unwrap();
    let mut walk = PageWalk {
        shell: Shell::start(home.path()),
        home,
        hubs: Vec::new(),
    };
    for step in &steps {
        walk.run(step);
    }
    assert!(!walk.hubs.is_empty(), "{name} never starts a hub");
}
