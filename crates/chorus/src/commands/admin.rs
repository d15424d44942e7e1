//! `chorus admin`: copies of a hub, who may join it, and what happens on it.

use super::register::secret;
use crate::signals::Stop;
use crate::{cli::Common, fail::Fail, out, session};
use chorus_client::Client;
use chorus_client::http::Call;
use chorus_wire::reply::{Activity, Invite};
use chorus_wire::{cursor::Cursor, secret::Secret, time::Micros};
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
        value_parser = secret
    )]
    operator_key: Option<Secret>,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Copy the data of a hub that keeps it in a file, also while it runs
    Backup {
        /// The hub's data directory
        #[arg(
            long,
            value_name = "DIR",
            env = "CHORUS_DATA_DIR",
            default_value = "chorus-data"
        )]
        data_dir: PathBuf,
        /// Where the copy goes
        to: PathBuf,
    },
    /// Move the data of a stopped hub from its file to an empty PostgreSQL database
    Copy {
        /// The hub's data directory
        #[arg(
            long,
            value_name = "DIR",
            env = "CHORUS_DATA_DIR",
            default_value = "chorus-data"
        )]
        data_dir: PathBuf,
        /// postgres://… where it goes
        #[arg(long, value_name = "URL", env = "CHORUS_DATABASE", hide_env_values = true, value_parser = secret)]
        database: Secret,
    },
    /// Before a restored copy is served: its ids go on beyond all that clients saw after it was made
    Restored {
        /// The data directory of a hub that keeps its data in a file
        #[arg(
            long,
            value_name = "DIR",
            env = "CHORUS_DATA_DIR",
            default_value = "chorus-data"
        )]
        data_dir: PathBuf,
        /// postgres://… of one that does not
        #[arg(long, value_name = "URL", env = "CHORUS_DATABASE", hide_env_values = true, value_parser = secret)]
        database: Option<Secret>,
    },
    /// Whether a hub can serve: exit code 0 when its store and its bus answer, else 3; for health checks
    Ready,
    /// Registration codes
    #[command(subcommand)]
    Invites(Invites),
    /// What happened on the hub
    Activity {
        /// After this id
        #[arg(long, value_name = "ID", default_value_t = 0)]
        since: u64,
        /// Go on with what happens now
        #[arg(long)]
        follow: bool,
    },
}

#[derive(Debug, clap::Subcommand)]
enum Invites {
    /// Make a code; from the first one on, the hub admits by code only
    Create {
        /// What it is for
        #[arg(long)]
        label: String,
        /// How many agents may join with it
        #[arg(long, value_name = "N")]
        max_uses: Option<u64>,
        /// Until when (RFC 3339)
        #[arg(long, value_name = "INSTANT", value_parser = instant)]
        expires_at: Option<Micros>,
    },
    /// Show the codes that were made, without the codes
    List,
    /// End a code
    Revoke { id: String },
    /// Admit agents without a code again
    Open,
}

fn instant(text: &str) -> Result<Micros, String> {
    Micros::parse(text).ok_or_else(|| "an instant looks like 2026-03-22T04:30:00Z".into())
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let key = args.operator_key;
    match args.what {
        What::Backup { data_dir, to } => backup(common, &data_dir, &to),
        What::Copy { data_dir, database } => copy(common, &data_dir, &database).await,
        What::Restored { data_dir, database } => {
            let done = chorus_hub::ops::restored(&data_dir, database.as_ref()).await;
            done.map_err(|e| Fail::usage(e.to_string()))?;
            out::say(common.json, &json!({"restored": true}), || {
                "the hub may be started".into()
            });
            Ok(())
        }
        What::Ready => ready(common).await,
        What::Invites(what) => invites(common, operator(common, key)?, what)
            .await
            .map_err(Fail::of_operator),
        What::Activity { since, follow } => activity(common, operator(common, key)?, since, follow)
            .await
            .map_err(Fail::of_operator),
    }
}

fn operator(common: &Common, key: Option<Secret>) -> Result<Client, Fail> {
    let key = key.ok_or_else(|| Fail::usage("pass --operator-key or set CHORUS_OPERATOR_KEY"))?;
    session::hub(common, Some(key))
}

fn backup(common: &Common, data_dir: &std::path::Path, to: &std::path::Path) -> Result<(), Fail> {
    // Whoever reads the data directory may read the reason too.
    let wrong = |e: chorus_wire::Error| {
        Fail::usage(format!(
            "no copy was made: {}",
            e.cause.unwrap_or(e.message)
        ))
    };
    let file = chorus_hub::ops::backup(data_dir, to).map_err(wrong)?;
    let said = json!({ "backup": file.display().to_string() });
    out::say(common.json, &said, || {
        format!("copied to {}", file.display())
    });
    Ok(())
}

async fn copy(common: &Common, data_dir: &std::path::Path, database: &Secret) -> Result<(), Fail> {
    let copied = chorus_hub::ops::copy(data_dir, database)
        .await
        .map_err(|e| Fail::usage(e.to_string()))?;
    let rows: u64 = copied.iter().map(|(_, rows)| rows).sum();
    let tables: serde_json::Map<String, serde_json::Value> = copied
        .into_iter()
        .map(|(table, rows)| (table, rows.into()))
        .collect();
    let said = json!({ "copied": tables });
    out::say(common.json, &said, || {
        format!("copied {rows} rows; start the hub with --database from now on")
    });
    Ok(())
}

async fn ready(common: &Common) -> Result<(), Fail> {
    let said: serde_json::Value = session::hub(common, None)?
        .data(Call::get("/ready"))
        .await?;
    out::say(common.json, &said, || "ready".into());
    Ok(())
}

async fn invites(common: &Common, client: Client, what: Invites) -> Result<(), Fail> {
    match what {
        Invites::Create {
            label,
            max_uses,
            expires_at,
        } => {
            let made = client.create_invite(&label, max_uses, expires_at).await?;
            // Shown this once: it is what the command is for.
            let code = made.code.as_ref().map(Secret::expose).unwrap_or_default();
            out::say(common.json, &made, || format!("{code}\n{}", invite(&made)));
        }
        Invites::List => {
            for made in client.invites().await? {
                out::say(common.json, &made, || invite(&made));
            }
        }
        Invites::Revoke { id } => {
            let made = client.revoke_invite(&id).await?;
            out::say(common.json, &made, || invite(&made));
        }
        Invites::Open => {
            let gate = client.open_registration().await?;
            out::say(common.json, &gate, || {
                "the hub takes registrations without a code".into()
            });
        }
    }
    Ok(())
}

fn invite(made: &Invite) -> String {
    let most = made
        .max_uses
        .map_or("any number of".into(), |most| most.to_string());
    let until = made.expires_at.map_or(String::new(), |at| {
        format!(", until {}", out::seconds(&at.to_string()))
    });
    let revoked = if made.revoked { ", revoked" } else { "" };
    let (id, label) = (out::harmless(&made.id), out::harmless(&made.label));
    format!(
        "{id}  {}: used {} of {most} times{until}{revoked}",
        out::painted(out::STRONG, &label),
        made.uses
    )
}

async fn activity(common: &Common, client: Client, since: u64, follow: bool) -> Result<(), Fail> {
    let mut since = since;
    loop {
        let page = client.activity(since).await?;
        let Some(last) = page.last() else { break };
        since = last.id;
        page.iter().for_each(|happened| show(common, happened));
    }
    if !follow {
        return Ok(());
    }
    let mut stop = Stop::watch()?;
    let mut stream = client.events(Some(Cursor::log(since))).await;
    loop {
        let event = tokio::select! {
            event = stream.next() => event?,
            () = stop.asked() => return Ok(()),
        };
        if let Ok(happened) = serde_json::from_str::<Activity>(&event.data) {
            show(common, &happened);
        }
    }
}

fn show(common: &Common, happened: &Activity) {
    out::say(common.json, happened, || {
        let time = out::painted(out::FAINT, &out::seconds(&happened.timestamp.to_string()));
        format!(
            "{time} {} {}",
            out::painted(out::STRONG, &out::harmless(&happened.kind)),
            out::harmless(&happened.data.to_string())
        )
    });
}
