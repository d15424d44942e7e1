//! `chorus man`: prints the manual page, or writes one for every command.

use crate::cli::{Cli, CommonArgs};
use crate::fail::Fail;
use clap::CommandFactory;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write a page for every command into this folder; without it, print the page of chorus
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub fn run(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        rendered.map_err(|e| Fail::usage_error(format!("the manual page: {e}")))?;
        crate::output::print_line(String::from_utf8_lossy(&page).trim_end());
        return Ok(());
    };
    let file_error = |e: std::io::Error| Fail::usage_error(format!("{}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(file_error)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(file_error)?;
    let output = serde_json::json!({ "folder": folder });
    crate::output::print_result(common.json, &output, || {
        format!(
            "the manual pages are in {}; read one with man {}/chorus-send.1",
            folder.display(),
            folder.display()
        )
    });
    Ok(())
}
