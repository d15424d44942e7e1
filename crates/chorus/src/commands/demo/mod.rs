//! `chorus demo`: a hub on a temporary directory and a few agents that live on it, for somebody who wants to see before reading.

mod browser;
mod cast;
mod folder;
mod letters;
mod market;
mod room;
mod sessions;

use crate::fail::Fail;
use crate::signals::Stop;
use crate::{cli::Common, out};
use cast::Cast;
use chorus_server::Settings;
use chorus_wire::secret::Secret;
use folder::Folder;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Play every scene once, without pauses, and end
    #[arg(long)]
    once: bool,
    /// End by itself after this long
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// How fast the scenes go.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    once: bool,
}

impl Pace {
    /// Time to read a line; none when nobody watches.
    pub async fn rest(self, seconds: u64) {
        if !self.once {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
    }

    /// Whether to begin again after the last line.
    pub fn goes_on(self) -> bool {
        !self.once
    }
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let mut stop = Stop::watch()?;
    let folder = Folder::make()?;
    let operator = Secret::new(format!("demo-operator-{}", chorus_client::market::new_id()));
    let mut settings = Settings::at(folder.path());
    settings.listen = args.listen;
    settings.server_name = "Chorus demo".into();
    settings.rate_limit = 0;
    settings.hub.operator_keys = vec![operator.clone()];
    let running = chorus_server::start(settings)
        .await
        .map_err(|e| Fail::usage(e.to_string()))?;

    let (hub, mut playing) = (running.url(), JoinSet::new());
    let played = tokio::select! {
        played = play(common, &args, &hub, &operator, &mut playing) => played,
        () = stop.asked() => Ok(()),
        () = after(args.seconds) => Ok(()),
    };
    // The agents leave before the hub does: none of them shall look for it.
    playing.shutdown().await;
    running.stop().await;
    drop(folder);
    played
}

async fn after(seconds: Option<u64>) {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}

async fn play(
    common: &Common,
    args: &Args,
    hub: &str,
    operator: &Secret,
    playing: &mut JoinSet<Result<(), Fail>>,
) -> Result<(), Fail> {
    let pace = Pace { once: args.once };
    let cast = Arc::new(Cast::arrive(hub).await?);
    cast.attend(pace, playing).await?;
    welcome(common, hub, &cast, operator);
    if !args.no_open && !args.once && !common.json {
        browser::open(&format!("{hub}/console"));
    }
    let scenes = [
        playing.spawn(letters::play(cast.clone(), pace)).id(),
        playing.spawn(market::play(cast.clone(), pace)).id(),
        playing.spawn(room::play(cast.clone(), pace)).id(),
        playing.spawn(sessions::play(cast, pace)).id(),
    ];
    let mut left = scenes.len();
    // An agent that cannot go on is a fault worth hearing of; a scene that is over is one less to wait for.
    while left > 0
        && let Some(ended) = playing.join_next_with_id().await
    {
        let (id, outcome) = ended.map_err(|e| Fail::usage(format!("a scene broke off: {e}")))?;
        outcome?;
        left -= usize::from(scenes.contains(&id));
    }
    Ok(())
}

fn welcome(common: &Common, hub: &str, cast: &Cast, operator: &Secret) {
    let you = &cast.you;
    let said = json!({ "hub": hub, "console": format!("{hub}/console"), "agent_id": you.id,
        "api_key": you.key.expose(), "operator_key": operator.expose() });
    out::say(common.json, &said, || {
        let strong = |text: &str| out::painted(out::STRONG, text);
        format!(
            "A hub of your own is running. It lives in a temporary folder and is gone when you stop it.\n\n  \
             open      {}\n  sign in   {}  as {}: read along, answer what is asked\n            {}  as the operator: see everything\n\n\
             Mei, Haruto, Lena and Sofia collect words that no other language has. They write to each other, meet in\n\
             a room, hire each other, and your own sessions set the book. Under Sessions a decision waits for you.\n\n\
             Ctrl-C stops it.",
            strong(&format!("{hub}/console")),
            strong(you.key.expose()),
            you.id,
            operator.expose(),
        )
    });
}
