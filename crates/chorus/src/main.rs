//! The binary: a hub, and a command per verb.

mod cli;
mod commands;
mod fail;
mod out;
mod session;
mod signals;

use clap::Parser;
use cli::{Cli, Command};
use commands::{frame, market};
use fail::Fail;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let json = cli.common.json;
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Fail::usage(format!("cannot start: {e}")))
        .and_then(|runtime| {
            let outcome = runtime.block_on(run(cli));
            // A blocked read of standard input must not keep a finished command alive.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => fail.report(json),
    }
}

/// Help and version are no errors; everything else here is usage, exit code 1.
fn not_parsed(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|word| word == "--json") {
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default();
        return Fail::usage(first.trim_start_matches("error: ")).report(true);
    }
    let _ = error.print();
    ExitCode::from(1)
}

async fn run(cli: Cli) -> Result<(), Fail> {
    let common = cli.common;
    if !matches!(cli.command, Command::Serve(_)) {
        out::log_quietly();
    }
    match cli.command {
        Command::Serve(args) => commands::serve::run(*args).await,
        Command::Demo(args) => commands::demo::run(&common, args).await,
        Command::Register(args) => commands::register::run(&common, args).await,
        Command::Whoami => commands::whoami::run(&common).await,
        Command::Discover(args) => commands::discover::run(&common, args).await,
        Command::Send(args) => commands::send::run(&common, args).await,
        Command::Listen(args) => commands::listen::run(&common, args).await,
        Command::History(args) => commands::history::run(&common, args).await,
        Command::Reply(args) => commands::reply::run(&common, args).await,
        Command::Status(args) => commands::status::run(&common, args).await,
        Command::Invite => commands::invite::run(&common).await,
        Command::Unregister(args) => commands::unregister::run(&common, args).await,
        Command::Watch(args) => frame::watch::run(&common, *args).await,
        Command::Advise(args) => frame::advise::run(&common, *args).await,
        Command::Broadcast(args) => frame::broadcast::run(&common, *args).await,
        Command::Handover(args) => frame::handover::run(&common, *args).await,
        Command::Lock(args) => frame::lock::run(&common, *args).await,
        Command::Locks(args) => frame::locks::run(&common, *args).await,
        Command::Ask(args) => frame::ask::run(&common, *args).await,
        Command::Answer(args) => frame::answer::run(&common, *args).await,
        Command::Decide(args) => frame::decide::run(&common, *args).await,
        Command::Diagnose(args) => frame::diagnose::run(&common, *args).await,
        Command::Intent(args) => frame::intent::run(&common, *args).await,
        Command::Frame(args) => frame::say::run(&common, *args).await,
        Command::Roster(args) => frame::roster::run(&common, *args).await,
        Command::Org(args) => frame::org::run(&common, *args).await,
        Command::Grant(args) => frame::grant::run(&common, *args).await,
        Command::Accord(args) => frame::accord::run(&common, *args).await,
        Command::Channel(args) => commands::channel::run(&common, *args).await,
        Command::Connection(args) => commands::connection::run(&common, args).await,
        Command::Say(args) => commands::say::run(&common, *args).await,
        Command::Skills(args) => market::skills::run(&common, args).await,
        Command::Offer(args) => market::offer::run(&common, *args).await,
        Command::Hire(args) => market::hire::run(&common, *args).await,
        Command::Jobs(args) => market::jobs::run(&common, args).await,
        Command::Pipeline(args) => market::pipeline::run(&common, args).await,
        Command::Balance(args) => market::balance::run(&common, args).await,
        Command::Transfer(args) => market::transfer::run(&common, args).await,
        Command::Ledger(args) => market::ledger::run(&common, args).await,
        Command::Init(args) => commands::init::run(&common, args).await,
        Command::Uninstall(args) => commands::uninstall::run(&common, &args),
        Command::Verify(args) => commands::verify::run(&common, args).await,
        Command::Mcp(args) => commands::mcp::run(&common, args).await,
        Command::Hook(args) => commands::hook::run(&common, *args).await,
        Command::Admin(args) => commands::admin::run(&common, args).await,
        Command::Completions { shell } => {
            commands::completions::run(shell);
            Ok(())
        }
    }
}
