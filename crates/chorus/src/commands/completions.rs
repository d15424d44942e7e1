//! `chorus completions`: prints a completion script for a shell.

use crate::command_help::build_command;

pub fn print_completions(shell: clap_complete::Shell) {
    clap_complete::generate(
        shell,
        &mut build_command(),
        "chorus",
        &mut std::io::stdout(),
    );
}
