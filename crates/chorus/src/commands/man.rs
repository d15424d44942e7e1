//! `chorus man`: prints the manual page, or writes one for every command.

use crate::cli::{Cli, CommonArgs};
use crate::fail::Fail;
use chorus_hub::Clock;
use chorus_wire::time::UnixMicros;
use clap::CommandFactory;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write a page for every command into this folder; without it, print the page of chorus
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub fn run(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let mut command = Cli::command().disable_help_subcommand(true);
    // Gives the commands of commands their whole names.
    command.build();
    let date = page_date();
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let rendered = render_page(&command, &date, &mut page);
        rendered.map_err(|e| Fail::usage_error(format!("the manual page: {e}")))?;
        crate::output::print_line(String::from_utf8_lossy(&page).trim_end());
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| write_pages(&command, &date, folder))
        .map_err(|e| Fail::usage_error(format!("{}: {e}", folder.display())))?;
    let output = serde_json::json!({ "folder": folder });
    crate::output::print_result(common.json, &output, || {
        let folder = folder.display();
        format!("the manual pages are in {folder}; read one with man {folder}/chorus-send.1")
    });
    Ok(())
}

/// `SOURCE_DATE_EPOCH`, so that packages have the same bytes each time; else today.
fn page_date() -> String {
    let fixed = std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|text| text.parse::<i64>().ok())
        .map(|seconds| UnixMicros(seconds.saturating_mul(1_000_000)));
    let at = fixed.unwrap_or_else(|| Clock::system().now());
    at.to_rfc3339_millis().chars().take(10).collect()
}

fn write_pages(command: &clap::Command, date: &str, folder: &Path) -> std::io::Result<()> {
    let mut page = Vec::new();
    render_page(command, date, &mut page)?;
    std::fs::write(folder.join(format!("{}.1", page_name(command))), page)?;
    command
        .get_subcommands()
        .filter(|sub_command| !sub_command.is_hide_set())
        .try_for_each(|sub_command| write_pages(sub_command, date, folder))
}

fn render_page(command: &clap::Command, date: &str, page: &mut impl Write) -> std::io::Result<()> {
    clap_mangen::Man::new(command.clone())
        .title(page_name(command))
        .date(date)
        .source(concat!("chorus ", env!("CARGO_PKG_VERSION")))
        .render(page)
}

fn page_name(command: &clap::Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}
