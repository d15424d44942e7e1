//! `chorus demo`: runs a hub in a temporary directory with a few scripted agents, to try Chorus without setup.

mod agents;
mod channel;
mod market;
mod messages;
mod sessions;
mod temporary_folder;

use super::browser::open_browser;
use super::console::format_link;
use crate::fail::Fail;
use crate::machine_memory::MemoryTotal;
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, output};
use agents::DemoCast;
use chorus_client::HubClient;
use chorus_server::ServerSettings;
use chorus_wire::secret::Secret;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use temporary_folder::TemporaryFolder;
use tokio::task::JoinSet;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Play every scene once, without pauses, and stop
    #[arg(long)]
    once: bool,
    /// Play without pauses; for tests and pictures
    #[arg(long, hide = true)]
    no_pauses: bool,
    /// Stop after this many seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// The speed of the scenes.
#[derive(Clone, Copy, Debug)]
pub struct DemoPace {
    once: bool,
    no_pauses: bool,
}

impl DemoPace {
    /// Gives the user time to read a line; no pause with `--once` and `--no-pauses`.
    pub async fn pause(self, seconds: u64) {
        if !self.once && !self.no_pauses {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
    }

    /// Whether a scene ends by itself where it would wait for the user.
    pub fn is_ending(self) -> bool {
        self.once
    }
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let mut stop = StopSignal::watch()?;
    let folder = TemporaryFolder::create()?;
    let operator = Secret::new(format!(
        "demo-operator-{}",
        chorus_client::market::random_id()
    ));
    let mut settings = ServerSettings::with_data_dir(folder.path());
    settings.listen = args.listen;
    settings.server_name = "Chorus demo".into();
    settings.rate_limit = 0;
    settings.hub.operator_keys = vec![operator.clone()];
    settings.hub.memory = MemoryTotal::find(None).to_bounds();
    let server = chorus_server::start_server(settings)
        .await
        .map_err(|e| Fail::usage_error(e.to_string()))?;

    let hub = server.url();
    let mut tasks = JoinSet::new();
    let outcome = tokio::select! {
        outcome = play_scenes(common, &args, &hub, &operator, &mut tasks) => outcome,
        () = stop.wait_requested() => Ok(()),
        () = wait_seconds(args.seconds) => Ok(()),
    };
    // Stop the agents before the hub, so that none of them reconnects.
    tasks.shutdown().await;
    server.stop().await;
    drop(folder);
    outcome
}

async fn wait_seconds(seconds: Option<u64>) {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}

async fn play_scenes(
    common: &CommonArgs,
    args: &Args,
    hub: &str,
    operator: &Secret,
    tasks: &mut JoinSet<Result<(), Fail>>,
) -> Result<(), Fail> {
    let pace = DemoPace {
        once: args.once,
        no_pauses: args.no_pauses,
    };
    let cast = Arc::new(DemoCast::register_all(hub).await?);
    cast.serve_inboxes(pace, tasks).await?;
    let links = DemoLinks::create(hub, &cast, operator).await?;
    print_welcome(common, hub, &cast, operator, &links);
    if !args.no_open && !args.once && !common.json {
        // One that is opened here would be spent when the reader clicks on the printed one.
        let opened = DemoLinks::create(hub, &cast, operator).await?;
        open_browser(&opened.you);
    }
    let scenes = [
        tasks
            .spawn(messages::play_messages(cast.clone(), pace))
            .id(),
        tasks.spawn(market::play_market(cast.clone(), pace)).id(),
        tasks.spawn(channel::play_channel(cast.clone(), pace)).id(),
        tasks.spawn(sessions::play_sessions(cast, pace)).id(),
    ];
    let mut remaining = scenes.len();
    // An agent's error ends the demo. Without --once the agents stay when every scene is played.
    while (remaining > 0 || !args.once)
        && let Some(ended) = tasks.join_next_with_id().await
    {
        let (id, outcome) =
            ended.map_err(|e| Fail::usage_error(format!("a scene broke off: {e}")))?;
        outcome?;
        remaining -= usize::from(scenes.contains(&id));
    }
    Ok(())
}

/// Single-use links that sign in to the console.
struct DemoLinks {
    you: String,
    operator: String,
}

impl DemoLinks {
    async fn create(hub: &str, cast: &DemoCast, operator: &Secret) -> Result<Self, Fail> {
        let create_link = async |key: &Secret| {
            let client = HubClient::new(hub, Some(key.clone()))?;
            let link = client.create_console_link().await?;
            Ok::<_, Fail>(format_link(hub, &link.link_token))
        };
        Ok(Self {
            you: create_link(&cast.you.key).await?,
            operator: create_link(operator).await?,
        })
    }
}

fn print_welcome(
    common: &CommonArgs,
    hub: &str,
    cast: &DemoCast,
    operator: &Secret,
    links: &DemoLinks,
) {
    let you = &cast.you;
    let output = json!({ "hub": hub, "console": format!("{hub}/console"), "agent_id": you.id,
        "api_key": you.key.expose(), "operator_key": operator.expose(),
        "console_link": links.you, "operator_link": links.operator });
    output::print_result(common.json, &output, || {
        let strong = |text: &str| output::paint_text(output::STRONG_STYLE, text);
        format!(
            "A hub of your own is running. It lives in a temporary folder and is gone when you stop it.\n\n\
             Open one of these links. Each signs you in once, within five minutes:\n  \
             {}\n      as your agent {}: read along, answer what is asked\n  \
             {}\n      as the operator: all agents, counts and states, without the texts\n\n\
             Later, sign in at {hub}/console with a key:\n  {}  {}\n  {}  the operator\n\n\
             Ada, your agent, collects words that no other language has, with Mei, Haruto, Lena and Sofia. As Ada you\n\
             read what she and the others write to each other, and answer the decision that waits under Sessions.\n\
             The operator sees who writes to whom, and no texts. Every line is said once; then the agents wait for\n\
             what you write to them.\n\n\
             Ctrl-C stops it.",
            strong(&links.you),
            you.id,
            links.operator,
            you.key.expose(),
            you.id,
            operator.expose(),
        )
    });
}
