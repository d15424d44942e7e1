//! `chorus admin`: backups, registration codes, credits, jobs, readiness and activity of a hub.

mod activity;

use super::backup::{self, BackupArgs};
use super::market::format_job::{self, JOB_TITLES};
use super::market::jobs::parse_status;
use super::market::read_input::parse_amount;
use super::register::parse_secret;
use crate::agent_names::{self, is_not_found};
use crate::fail::{Fail, OPERATOR_KEY_PLACE};
use crate::table::{self, TableCell, TableRow};
use crate::{cli::CommonArgs, command_client, output};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use chorus_wire::credits::Credits;
use chorus_wire::market::job::JobStatus;
use chorus_wire::market::transfer::CreditIssue;
use chorus_wire::reply::InviteRecord;
use chorus_wire::{secret::Secret, time::UnixMicros};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A key of the hub's operator
    #[arg(
        long,
        global = true,
        value_name = "KEY",
        env = "CHORUS_OPERATOR_KEY",
        hide_env_values = true,
        value_parser = parse_secret
    )]
    operator_key: Option<Secret>,
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AdminCommand {
    /// Back up the SQLite data of a hub, also while it runs: one copy, or dated copies at an interval
    Backup(BackupArgs),
    /// Copy the SQLite data of a stopped hub to an empty PostgreSQL database
    Copy {
        /// The hub's data directory
        #[arg(
            long,
            value_name = "DIR",
            env = "CHORUS_DATA_DIR",
            default_value = "chorus-data"
        )]
        data_dir: PathBuf,
        /// postgres://… of the target database
        #[arg(long, value_name = "URL", env = "CHORUS_DATABASE", hide_env_values = true, value_parser = parse_secret)]
        database: Secret,
    },
    /// Prepare a restored backup before it is served: new ids continue after all that clients saw since the backup
    Restored {
        /// The data directory of a hub that uses SQLite
        #[arg(
            long,
            value_name = "DIR",
            env = "CHORUS_DATA_DIR",
            default_value = "chorus-data"
        )]
        data_dir: PathBuf,
        /// postgres://… of a hub that uses PostgreSQL
        #[arg(long, value_name = "URL", env = "CHORUS_DATABASE", hide_env_values = true, value_parser = parse_secret)]
        database: Option<Secret>,
    },
    /// After the seal key was lost: let the stopped hub start with a new one. Members of channels that have connection strings must
    /// be added again
    ForgetSealKey {
        /// The data directory of a hub that uses SQLite
        #[arg(
            long,
            value_name = "DIR",
            env = "CHORUS_DATA_DIR",
            default_value = "chorus-data"
        )]
        data_dir: PathBuf,
        /// postgres://… of a hub that uses PostgreSQL
        #[arg(long, value_name = "URL", env = "CHORUS_DATABASE", hide_env_values = true, value_parser = parse_secret)]
        database: Option<Secret>,
    },
    /// Check that a hub can serve: exit code 0 when its store and its bus answer, else 3; for health checks
    Ready,
    /// Registration codes
    #[command(subcommand)]
    Invites(InviteCommand),
    /// Issue new credits to an owner
    Credit {
        /// The owner that gets them, or an agent that owns itself
        owner: String,
        #[arg(value_parser = parse_amount)]
        amount: Credits,
        /// Why, for the audit
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// List the jobs of all agents, the newest first
    Jobs {
        /// Only jobs with this status
        #[arg(long, value_name = "pending|success|failure", value_parser = parse_status)]
        status: Option<JobStatus>,
    },
    /// Show the activity of the hub
    Activity {
        /// After this id
        #[arg(long, value_name = "ID", default_value_t = 0)]
        since: u64,
        /// Then follow it live
        #[arg(long)]
        follow: bool,
    },
}

#[derive(Debug, clap::Subcommand)]
enum InviteCommand {
    /// Create a code; from the first one on, the hub requires a code to register
    Create {
        /// What it is for
        #[arg(long)]
        label: String,
        /// How many agents may register with it
        #[arg(long, value_name = "N")]
        max_uses: Option<u64>,
        /// When it expires (RFC 3339)
        #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
        expires_at: Option<UnixMicros>,
    },
    /// List the codes, without their secret part
    List,
    /// Revoke a code
    Revoke { id: String },
    /// Let agents register without a code again
    Open,
}

fn parse_instant(text: &str) -> Result<UnixMicros, String> {
    UnixMicros::parse(text).ok_or_else(|| "an instant looks like 2026-03-22T04:30:00Z".into())
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let key = args.operator_key;
    match args.command {
        AdminCommand::Backup(args) => backup::run(common, args).await,
        AdminCommand::Copy { data_dir, database } => {
            copy_database(common, &data_dir, &database).await
        }
        AdminCommand::Restored { data_dir, database } => {
            let outcome = chorus_hub::ops::mark_restored(&data_dir, database.as_ref()).await;
            outcome.map_err(|e| Fail::usage_error(e.to_string()))?;
            output::print_result(common.json, &json!({"restored": true}), || {
                "the hub may be started".into()
            });
            Ok(())
        }
        AdminCommand::ForgetSealKey { data_dir, database } => {
            let outcome = chorus_hub::ops::forget_seal_key(&data_dir, database.as_ref()).await;
            outcome.map_err(|e| Fail::usage_error(e.to_string()))?;
            output::print_result(common.json, &json!({"forgotten": true}), || {
                "the hub may be started with a new key".into()
            });
            Ok(())
        }
        AdminCommand::Ready => check_ready(common).await,
        AdminCommand::Invites(command) => {
            run_invites(common, operator_client(common, key)?, command)
                .await
                .map_err(Fail::for_operator)
        }
        AdminCommand::Credit {
            owner,
            amount,
            reason,
        } => {
            let issue = CreditIssue { amount, reason };
            issue_credits(common, operator_client(common, key)?, &owner, &issue)
                .await
                .map_err(Fail::for_operator)
        }
        AdminCommand::Jobs { status } => list_jobs(common, operator_client(common, key)?, status)
            .await
            .map_err(Fail::for_operator),
        AdminCommand::Activity { since, follow } => {
            activity::follow_activity(common, operator_client(common, key)?, since, follow)
                .await
                .map_err(Fail::for_operator)
        }
    }
}

async fn issue_credits(
    common: &CommonArgs,
    client: HubClient,
    owner: &str,
    issue: &CreditIssue,
) -> Result<(), Fail> {
    agent_names::check_expanded(owner)?;
    let account = match client.issue_credits(owner, issue).await {
        // No owner of that name: it may be another spelling of an agent's name.
        Err(error) if is_not_found(&error) => {
            let agent = agent_names::resolve_agent(&client, owner).await?;
            client.issue_credits(&agent, issue).await
        }
        issued => issued,
    };
    let account = account.map_err(|error| match is_not_found(&error) {
        true => Fail::from(error).with_message(format!(
            "no owner is called {owner}; an agent that has another owner is paid under that owner's name"
        )),
        false => Fail::from(error),
    })?;
    output::print_result(common.json, &account, || {
        format!(
            "{} has {} credits, {} held",
            output::escape_controls(&account.owner_id),
            account.balance,
            account.held
        )
    });
    Ok(())
}

async fn list_jobs(
    common: &CommonArgs,
    client: HubClient,
    status: Option<JobStatus>,
) -> Result<(), Fail> {
    let jobs = client.list_jobs(None, status).await?.jobs;
    let empty = "no agent has such a job";
    table::print_table(common.json, &jobs, JOB_TITLES, empty, format_job::job_row);
    Ok(())
}

fn operator_client(common: &CommonArgs, key: Option<Secret>) -> Result<HubClient, Fail> {
    let key = key.ok_or_else(|| {
        Fail::usage_error(format!(
            "pass --operator-key or set CHORUS_OPERATOR_KEY; {OPERATOR_KEY_PLACE}"
        ))
    })?;
    command_client::open_client(common, Some(key))
}

async fn copy_database(
    common: &CommonArgs,
    data_dir: &std::path::Path,
    database: &Secret,
) -> Result<(), Fail> {
    let copied = chorus_hub::ops::copy_to_postgres(data_dir, database)
        .await
        .map_err(|e| Fail::usage_error(e.to_string()))?;
    let rows: u64 = copied.iter().map(|(_, rows)| rows).sum();
    let tables: serde_json::Map<String, serde_json::Value> = copied
        .into_iter()
        .map(|(table, rows)| (table, rows.into()))
        .collect();
    let output = json!({ "copied": tables });
    output::print_result(common.json, &output, || {
        format!("copied {rows} rows; start the hub with --database from now on")
    });
    Ok(())
}

async fn check_ready(common: &CommonArgs) -> Result<(), Fail> {
    let output: serde_json::Value = command_client::open_client(common, None)?
        .fetch_data(ApiCall::get("/ready"))
        .await?;
    output::print_result(common.json, &output, || "ready".into());
    Ok(())
}

async fn run_invites(
    common: &CommonArgs,
    client: HubClient,
    command: InviteCommand,
) -> Result<(), Fail> {
    match command {
        InviteCommand::Create {
            label,
            max_uses,
            expires_at,
        } => {
            let invite = client.create_invite(&label, max_uses, expires_at).await?;
            // The only time that the code is shown.
            let code = invite.code.as_ref().map(Secret::expose).unwrap_or_default();
            output::print_result(common.json, &invite, || {
                format!("{code}\n{}", format_invite(&invite))
            });
        }
        InviteCommand::List => {
            let invites = client.list_invites().await?;
            let empty = "there is no registration code; chorus admin invites create makes one";
            let titles = ["ID", "LABEL", "USED", "UNTIL", ""];
            table::print_table(common.json, &invites, titles, empty, invite_row);
        }
        InviteCommand::Revoke { id } => {
            let revoked = client.revoke_invite(&id).await;
            let invite = revoked.map_err(|error| match is_not_found(&error) {
                true => Fail::from(error).with_message(format!(
                    "no registration code has the id {id}; chorus admin invites list shows them"
                )),
                false => Fail::from(error),
            })?;
            output::print_result(common.json, &invite, || format_invite(&invite));
        }
        InviteCommand::Open => {
            let registration = client.open_registration().await?;
            output::print_result(common.json, &registration, || {
                "the hub takes registrations without a code".into()
            });
        }
    }
    Ok(())
}

fn format_invite(invite: &InviteRecord) -> String {
    table::format_single_row(&invite_row(invite))
}

fn invite_row(invite: &InviteRecord) -> TableRow<5> {
    let max_uses = invite
        .max_uses
        .map_or("any number".into(), |max| max.to_string());
    let until = invite.expires_at.map_or("without an end".into(), |at| {
        crate::local_time::date_time(&at.to_string())
    });
    let revoked = if invite.revoked { "revoked" } else { "" };
    TableRow::of_cells([
        TableCell::from(&invite.id),
        TableCell::styled(output::STRONG_STYLE, &invite.label),
        TableCell::from(format!("{} of {max_uses}", invite.uses)),
        TableCell::from(until),
        TableCell::styled(output::BAD_STYLE, revoked),
    ])
}
