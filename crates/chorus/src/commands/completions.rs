//! `chorus completions`: prints a completion script for a shell.

use crate::command_help::build_command;
use crate::fail::Fail;
use std::io::Write;

pub fn run(shell: clap_complete::Shell) -> Result<(), Fail> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut build_command(), "chorus", &mut script);
    std::io::stdout()
        .write_all(&script)
        .map_err(|error| Fail::usage_error(format!("standard output: {error}")))
}
