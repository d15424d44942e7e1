//! The `chorus` binary: parses the command line and runs one command.

mod agent_names;
mod build_version;
mod cli;
mod command_client;
mod command_examples;
mod command_help;
mod commands;
mod confirmed_workspaces;
mod fail;
mod hidden_text;
mod hub_origin;
mod local_time;
mod machine_memory;
mod next_step;
mod output;
mod refusal_steps;
mod stop_signal;
mod table;

use clap::FromArgMatches;
use cli::{Cli, CliCommand};
use commands::{frame, market};
use fail::Fail;
use std::future::ready;
use std::pin::Pin;
use std::process::ExitCode;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let parsed = command_help::build_command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return report_parse_error(&error),
    };
    let common = cli.common.clone();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Fail::usage_error(format!("cannot start: {e}")))
        .and_then(|runtime| {
            let outcome = runtime.block_on(run_command(cli));
            // A blocked read of standard input must not keep a finished command running.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => next_step::explain_error(fail, &common).report(common.json),
    }
}

/// Prints help and version with exit code 0, and any other parse result as a usage error with exit code 1.
fn report_parse_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|arg| arg == "--json") {
        let text = error.to_string();
        let first_line = text.lines().next().unwrap_or_default();
        return Fail::usage_error(first_line.trim_start_matches("error: ")).report(true);
    }
    let _ = error.print();
    ExitCode::from(1)
}

fn init_logging(command: &CliCommand) {
    // What a waker prints starts a turn of a model, so it logs nothing unless it is asked to.
    let is_silent =
        matches!(command, CliCommand::Wake(_)) && std::env::var_os("CHORUS_LOG").is_none();
    if !is_silent && !matches!(command, CliCommand::Serve(_)) {
        output::init_quiet_logging();
    }
}

async fn run_command(cli: Cli) -> Result<(), Fail> {
    let common = cli.common;
    init_logging(&cli.command);
    // On the heap and behind one type: otherwise the state machines of all commands are one, copied for every kind of runtime.
    let command: Pin<Box<dyn Future<Output = Result<(), Fail>> + '_>> = match cli.command {
        CliCommand::Serve(args) => Box::pin(commands::serve::run(*args)),
        CliCommand::Demo(args) => Box::pin(commands::demo::run(&common, args)),
        CliCommand::Register(args) => Box::pin(commands::register::run(&common, args)),
        CliCommand::Console(args) => Box::pin(commands::console::run(&common, args)),
        CliCommand::Whoami(args) => Box::pin(commands::whoami::run(&common, args)),
        CliCommand::Doctor(args) => Box::pin(commands::doctor::run(&common, args)),
        CliCommand::Discover(args) => Box::pin(commands::discover::run(&common, args)),
        CliCommand::Send(args) => Box::pin(commands::send::run(&common, args)),
        CliCommand::Listen(args) => Box::pin(commands::listen::run(&common, args)),
        CliCommand::History(args) => Box::pin(commands::history::run(&common, args)),
        CliCommand::Reply(args) => Box::pin(commands::reply::run(&common, args)),
        CliCommand::Status(args) => Box::pin(commands::status::run(&common, args)),
        CliCommand::Invite => Box::pin(commands::invite::run(&common)),
        CliCommand::Block(args) => Box::pin(commands::contact::block(&common, args)),
        CliCommand::Unblock(args) => Box::pin(commands::contact::unblock(&common, args)),
        CliCommand::Contacts(args) => Box::pin(commands::contact::contacts(&common, args)),
        CliCommand::Unregister(args) => Box::pin(commands::unregister::run(&common, args)),
        CliCommand::Watch(args) => Box::pin(frame::watch::run(&common, *args)),
        CliCommand::Advise(args) => Box::pin(frame::advise::run(&common, *args)),
        CliCommand::Broadcast(args) => Box::pin(frame::broadcast::run(&common, *args)),
        CliCommand::Handover(args) => Box::pin(frame::handover::run(&common, *args)),
        CliCommand::Lock(args) => Box::pin(frame::lock::run(&common, *args)),
        CliCommand::Locks(args) => Box::pin(frame::locks::run(&common, *args)),
        CliCommand::Ask(args) => Box::pin(frame::ask::run(&common, *args)),
        CliCommand::Answer(args) => Box::pin(frame::answer::run(&common, *args)),
        CliCommand::Decide(args) => Box::pin(frame::decide::run(&common, *args)),
        CliCommand::Diagnose(args) => Box::pin(frame::diagnose::run(&common, *args)),
        CliCommand::Intent(args) => Box::pin(frame::intent::run(&common, *args)),
        CliCommand::Frame(args) => Box::pin(frame::send_frame::run(&common, *args)),
        CliCommand::Roster(args) => Box::pin(frame::roster::run(&common, *args)),
        CliCommand::Org(args) => Box::pin(frame::org::run(&common, *args)),
        CliCommand::Grant(args) => Box::pin(frame::grant::run(&common, *args)),
        CliCommand::Accord(args) => Box::pin(frame::accord::run(&common, *args)),
        CliCommand::Channel(args) => Box::pin(commands::channel::run(&common, *args)),
        CliCommand::Keys(args) => Box::pin(commands::keys::run(&common, args)),
        CliCommand::Usage => Box::pin(commands::usage::run(&common)),
        CliCommand::EndpointSecret => Box::pin(commands::endpoint_secret::run(&common)),
        CliCommand::Connection(args) => Box::pin(commands::connection::run(&common, args)),
        CliCommand::Say(args) => Box::pin(commands::say::run(&common, *args)),
        CliCommand::Skills(args) => Box::pin(market::skills::run(&common, args)),
        CliCommand::Offer(args) => Box::pin(market::offer::run(&common, *args)),
        CliCommand::Hire(args) => Box::pin(market::hire::run(&common, *args)),
        CliCommand::Jobs(args) => Box::pin(market::jobs::run(&common, *args)),
        CliCommand::Board(args) => Box::pin(market::board::run(&common, args)),
        CliCommand::Reputation(args) => Box::pin(market::reputation::run(&common, args)),
        CliCommand::Pipeline(args) => Box::pin(market::pipeline::run(&common, args)),
        CliCommand::Balance(args) => Box::pin(market::balance::run(&common, args)),
        CliCommand::Transfer(args) => Box::pin(market::transfer::run(&common, args)),
        CliCommand::Ledger(args) => Box::pin(market::ledger::run(&common, args)),
        CliCommand::New(args) => Box::pin(ready(commands::new::run(&common, &args))),
        CliCommand::Init(args) => Box::pin(commands::init::run(&common, args)),
        CliCommand::Uninstall(args) => Box::pin(ready(commands::uninstall::run(&common, &args))),
        CliCommand::Confirm(args) => Box::pin(ready(commands::confirm::run(&common, &args))),
        CliCommand::Verify(args) => Box::pin(commands::verify::run(&common, args)),
        CliCommand::Mcp(args) => Box::pin(commands::mcp::run(&common, args)),
        CliCommand::Hook(args) => Box::pin(commands::hook::run(&common, *args)),
        CliCommand::Wake(args) => Box::pin(commands::wake::run(&common, args)),
        CliCommand::Admin(args) => Box::pin(commands::admin::run(&common, args)),
        CliCommand::Man(args) => Box::pin(ready(commands::man::run(&common, &args))),
        CliCommand::Openapi => Box::pin(ready(commands::schema::print_openapi())),
        CliCommand::Schema(args) => Box::pin(ready(commands::schema::run(&args))),
        CliCommand::Completions { shell } => Box::pin(ready(commands::completions::run(shell))),
    };
    command.await
}
