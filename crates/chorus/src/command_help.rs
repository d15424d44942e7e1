//! The help of the commands: groups in the list of all commands, and examples for each.

use crate::cli::Cli;
use crate::command_examples::{COMMAND_EXAMPLES, CommandExamples};
use clap::{Arg, Command, CommandFactory};

/// Commands that belong together, in the order in which a newcomer needs them.
struct CommandGroup {
    heading: &'static str,
    commands: &'static [&'static str],
}

const GROUPS: [CommandGroup; 8] = [
    CommandGroup {
        heading: "Getting started",
        commands: &[
            "demo", "serve", "register", "whoami", "doctor", "console", "init", "new",
        ],
    },
    CommandGroup {
        heading: "Messages",
        commands: &[
            "send", "listen", "history", "status", "reply", "discover", "invite", "block",
            "unblock", "contacts",
        ],
    },
    CommandGroup {
        heading: "Channels",
        commands: &["channel", "say", "connection"],
    },
    CommandGroup {
        heading: "Sessions of coding agents",
        commands: &[
            "watch",
            "advise",
            "broadcast",
            "lock",
            "locks",
            "handover",
            "ask",
            "answer",
            "decide",
            "diagnose",
            "intent",
            "frame",
            "roster",
            "org",
            "grant",
            "accord",
        ],
    },
    CommandGroup {
        heading: "Market",
        commands: &[
            "skills",
            "hire",
            "jobs",
            "offer",
            "board",
            "pipeline",
            "reputation",
            "balance",
            "transfer",
            "ledger",
        ],
    },
    CommandGroup {
        heading: "Identity, keys and quotas",
        commands: &["keys", "usage", "endpoint-secret", "unregister"],
    },
    CommandGroup {
        heading: "Operating a hub",
        commands: &["serve", "admin", "openapi", "schema"],
    },
    CommandGroup {
        heading: "Setup of hosts and shells",
        commands: &[
            "verify",
            "uninstall",
            "confirm",
            "mcp",
            "hook",
            "wake",
            "completions",
            "man",
        ],
    },
];

/// The command line with the examples and the grouped list, as parser, help, completions and manual pages take it.
pub fn build_command() -> Command {
    let command = hide_client_options(add_examples(Cli::command(), ""));
    let groups = list_groups(&command);
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Global options:\n{{options}}\n\n\
         chorus COMMAND --help shows the options of a command and examples."
    ))
}

/// Leaves the hub and the credentials of a client out of the help of `serve`, which has neither. They are still taken there,
/// because every command takes them.
fn hide_client_options(command: Command) -> Command {
    let is_of_client = |arg: &&Arg| ["hub", "credentials"].contains(&arg.get_id().as_str());
    let hidden: Vec<Arg> = command
        .get_arguments()
        .filter(is_of_client)
        .map(|arg| arg.clone().hide(true))
        .collect();
    command.mut_subcommand("serve", |serve| serve.args(hidden))
}

/// Gives a command and the commands below it their examples, unless they have their own text.
fn add_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub_command| sub_command.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim().to_owned();
        command.mut_subcommand(name, |sub_command| add_examples(sub_command, &path))
    });
    let examples = COMMAND_EXAMPLES
        .iter()
        .find(|examples| examples.command == path);
    match examples {
        Some(examples) if command.get_after_help().is_none() => {
            command.after_help(format_examples(examples))
        }
        Some(_) | None => command,
    }
}

fn format_examples(examples: &CommandExamples) -> String {
    let lines: Vec<String> = examples
        .lines
        .iter()
        .map(|line| format!("  {line}"))
        .collect();
    format!("Examples:\n{}", lines.join("\n"))
}

fn list_groups(command: &Command) -> String {
    let width = command
        .get_subcommands()
        .map(|sub_command| sub_command.get_name().len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for group in GROUPS {
        text.push_str(&format!("{}:\n", group.heading));
        for name in group.commands {
            if let Some(sub_command) = command.find_subcommand(name) {
                let about = sub_command.get_about().map(ToString::to_string);
                text.push_str(&format!("  {name:width$}  {}\n", about.unwrap_or_default()));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command with its path, `channel add` for example.
    fn list_commands(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        for sub_command in command.get_subcommands() {
            let path = format!("{path} {}", sub_command.get_name());
            let path = path.trim().to_owned();
            list_commands(sub_command, &path, found);
            found.push((path, sub_command.clone()));
        }
    }

    /// The words of a line as a shell reads them, up to a comment, a pipe or a redirection.
    fn split_words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, '#' | '|' | '>' | '<') if word.is_none() => break,
                (None, ' ') => words.extend(word.take()),
                (Some(_), c) | (None, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn every_command_has_an_example_and_every_example_parses() {
        let command = build_command();
        let mut commands = Vec::new();
        list_commands(&command, "", &mut commands);
        assert!(commands.len() > 80, "only {} commands", commands.len());
        for (path, sub_command) in commands {
            let help = sub_command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_else(|| panic!("chorus {path} has no example"));
            let examples: Vec<&str> = help
                .lines()
                .filter_map(|line| line.find("chorus ").map(|at| &line[at..]))
                .filter(|example| !example.starts_with("chorus COMMAND"))
                .collect();
            let is_own = |example: &&str| example.starts_with(&format!("chorus {path}"));
            assert!(examples.iter().any(is_own), "{path}: {help}");
            for example in examples {
                let parsed = command.clone().try_get_matches_from(split_words(example));
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    // A newcomer starts a hub to try it, an operator to run it.
    #[test]
    fn every_command_is_in_one_group_and_serve_in_two() {
        let command = build_command();
        for sub_command in command.get_subcommands() {
            let name = sub_command.get_name();
            let count = GROUPS
                .iter()
                .filter(|group| group.commands.contains(&name))
                .count();
            let expected = if name == "serve" { 2 } else { 1 };
            assert_eq!(count, expected, "{name}");
        }
    }
}
