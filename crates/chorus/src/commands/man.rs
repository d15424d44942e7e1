//! `chorus man`: prints the manual page, or writes one for every command.

use crate::cli::CommonArgs;
use crate::command_help::build_command;
use crate::fail::Fail;
use chorus_hub::Clock;
use chorus_wire::time::UnixMicros;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write a page for every command into this folder; without it, print the page of chorus
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub fn run(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let mut command = build_command().disable_help_subcommand(true);
    // Gives the commands of commands their whole names.
    command.build();
    let date = page_date();
    let Some(folder) = &args.folder else {
        let page = render_page(&command, &date)
            .map_err(|e| Fail::usage_error(format!("the manual page: {e}")))?;
        crate::output::print_line(page.trim_end());
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
    let path = folder.join(format!("{}.1", page_name(command)));
    std::fs::write(path, render_page(command, date)?)?;
    command
        .get_subcommands()
        .filter(|sub_command| !sub_command.is_hide_set())
        .try_for_each(|sub_command| write_pages(sub_command, date, folder))
}

fn render_page(command: &clap::Command, date: &str) -> std::io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .title(page_name(command))
        .date(date)
        .source(concat!("chorus ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)?;
    Ok(drop_idle_breaks(&String::from_utf8_lossy(&page)))
}

/// A break beside an empty line does nothing, and `mandoc` warns of each.
fn drop_idle_breaks(page: &str) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let is_empty = |number: usize| lines.get(number).is_some_and(|line| line.is_empty());
    let is_idle = |number: usize| {
        lines[number] == ".br" && (is_empty(number + 1) || number > 0 && is_empty(number - 1))
    };
    let kept = (0..lines.len()).filter(|number| !is_idle(*number));
    kept.map(|number| format!("{}\n", lines[number])).collect()
}

fn page_name(command: &clap::Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}
