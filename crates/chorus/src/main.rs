//! The `chorus` binary: parses the command line and runs one command.

mod agent_names;
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

use clap::FromArgMatches;
use cli::{Cli, CliCommand};
use commands::{frame, market};
use fail::Fail;
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
    match cli.command {
        CliCommand::Serve(args) => commands::serve::run(*args).await,
        CliCommand::Demo(args) => commands::demo::run(&common, args).await,
        CliCommand::Register(args) => commands::register::run(&common, args).await,
        CliCommand::Console(args) => commands::console::run(&common, args).await,
        CliCommand::Whoami(args) => commands::whoami::run(&common, args).await,
        CliCommand::Doctor(args) => commands::doctor::run(&common, args).await,
        CliCommand::Discover(args) => commands::discover::run(&common, args).await,
        CliCommand::Send(args) => commands::send::run(&common, args).await,
        CliCommand::Listen(args) => commands::listen::run(&common, args).await,
        CliCommand::History(args) => commands::history::run(&common, args).await,
        CliCommand::Reply(args) => commands::reply::run(&common, args).await,
        CliCommand::Status(args) => commands::status::run(&common, args).await,
        CliCommand::Invite => commands::invite::run(&common).await,
        CliCommand::Block(args) => commands::contact::block(&common, args).await,
        CliCommand::Unblock(args) => commands::contact::unblock(&common, args).await,
        CliCommand::Contacts(args) => commands::contact::contacts(&common, args).await,
        CliCommand::Unregister(args) => commands::unregister::run(&common, args).await,
        CliCommand::Watch(args) => frame::watch::run(&common, *args).await,
        CliCommand::Advise(args) => frame::advise::run(&common, *args).await,
        CliCommand::Broadcast(args) => frame::broadcast::run(&common, *args).await,
        CliCommand::Handover(args) => frame::handover::run(&common, *args).await,
        CliCommand::Lock(args) => frame::lock::run(&common, *args).await,
        CliCommand::Locks(args) => frame::locks::run(&common, *args).await,
        CliCommand::Ask(args) => frame::ask::run(&common, *args).await,
        CliCommand::Answer(args) => frame::answer::run(&common, *args).await,
        CliCommand::Decide(args) => frame::decide::run(&common, *args).await,
        CliCommand::Diagnose(args) => frame::diagnose::run(&common, *args).await,
        CliCommand::Intent(args) => frame::intent::run(&common, *args).await,
        CliCommand::Frame(args) => frame::send_frame::run(&common, *args).await,
        CliCommand::Roster(args) => frame::roster::run(&common, *args).await,
        CliCommand::Org(args) => frame::org::run(&common, *args).await,
        CliCommand::Grant(args) => frame::grant::run(&common, *args).await,
        CliCommand::Accord(args) => frame::accord::run(&common, *args).await,
        CliCommand::Channel(args) => commands::channel::run(&common, *args).await,
        CliCommand::Keys(args) => commands::keys::run(&common, args).await,
        CliCommand::Usage => commands::usage::run(&common).await,
        CliCommand::EndpointSecret => commands::endpoint_secret::run(&common).await,
        CliCommand::Connection(args) => commands::connection::run(&common, args).await,
        CliCommand::Say(args) => commands::say::run(&common, *args).await,
        CliCommand::Skills(args) => market::skills::run(&common, args).await,
        CliCommand::Offer(args) => market::offer::run(&common, *args).await,
        CliCommand::Hire(args) => market::hire::run(&common, *args).await,
        CliCommand::Jobs(args) => market::jobs::run(&common, *args).await,
        CliCommand::Board(args) => market::board::run(&common, args).await,
        CliCommand::Reputation(args) => market::reputation::run(&common, args).await,
        CliCommand::Pipeline(args) => market::pipeline::run(&common, args).await,
        CliCommand::Balance(args) => market::balance::run(&common, args).await,
        CliCommand::Transfer(args) => market::transfer::run(&common, args).await,
        CliCommand::Ledger(args) => market::ledger::run(&common, args).await,
        CliCommand::New(args) => commands::new::run(&common, &args),
        CliCommand::Init(args) => commands::init::run(&common, args).await,
        CliCommand::Uninstall(args) => commands::uninstall::run(&common, &args),
        CliCommand::Confirm(args) => commands::confirm::run(&common, &args),
        CliCommand::Verify(args) => commands::verify::run(&common, args).await,
        CliCommand::Mcp(args) => commands::mcp::run(&common, args).await,
        CliCommand::Hook(args) => commands::hook::run(&common, *args).await,
        CliCommand::Wake(args) => commands::wake::run(&common, args).await,
        CliCommand::Admin(args) => commands::admin::run(&common, args).await,
        CliCommand::Man(args) => commands::man::run(&common, &args),
        CliCommand::Openapi => commands::schema::print_openapi(),
        CliCommand::Schema(args) => commands::schema::run(&args),
        CliCommand::Completions { shell } => commands::completions::run(shell),
    }
}
