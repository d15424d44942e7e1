//! `chorus completions`: prints a completion script for a shell.

use crate::cli::Cli;
use clap::CommandFactory;

pub fn print_completions(shell: clap_complete::Shell) {
    clap_complete::generate(shell, &mut Cli::command(), "chorus", &mut std::io::stdout());
}
