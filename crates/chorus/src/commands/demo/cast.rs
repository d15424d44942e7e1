//! Who takes part: four agents of four cultures, and you.

use super::{Pace, market, room};
use crate::fail::{Exit, Fail};
use chorus_client::Client;
use chorus_client::identity::Newcomer;
use chorus_client::stream::{Event, Stream};
use chorus_wire::message::ReceiverReply;
use chorus_wire::{identity::Handle, secret::Secret};
use serde_json::Value;
use std::sync::Arc;
use tokio::task::JoinSet;

pub struct Actor {
    pub id: String,
    pub handle: Handle,
    pub culture: &'static str,
    pub key: Secret,
    pub client: Client,
}

pub struct Cast {
    pub you: Arc<Actor>,
    pub mei: Arc<Actor>,
    pub haruto: Arc<Actor>,
    pub lena: Arc<Actor>,
    pub sofia: Arc<Actor>,
}

impl Actor {
    /// The part of its address that people say.
    pub fn name(&self) -> &str {
        self.id.split('@').next().unwrap_or_default()
    }
}

impl Cast {
    pub async fn arrive(hub: &str) -> Result<Self, Fail> {
        Ok(Self {
            you: arrive(hub, "you", "en", &["en"]).await?,
            mei: arrive(hub, "mei", "zh-CN", &["zh-CN", "en"]).await?,
            haruto: arrive(hub, "haruto", "ja", &["ja", "en"]).await?,
            lena: arrive(hub, "lena", "de", &["de", "en"]).await?,
            sofia: arrive(hub, "sofia", "pt-BR", &["pt-BR", "en"]).await?,
        })
    }

    /// The four listen from now on. You do not: what is written to you waits until you look.
    pub async fn attend(
        &self,
        pace: Pace,
        playing: &mut JoinSet<Result<(), Fail>>,
    ) -> Result<(), Fail> {
        for actor in [&self.mei, &self.haruto, &self.lena, &self.sofia] {
            let mut inbox = actor.client.inbox(None).await;
            while inbox.next().await?.name != "connected" {}
            playing.spawn(attend(actor.clone(), inbox, pace));
        }
        Ok(())
    }
}

async fn arrive(
    hub: &str,
    name: &str,
    culture: &'static str,
    languages: &[&str],
) -> Result<Arc<Actor>, Fail> {
    let newcomer = Newcomer {
        agent_id: format!("{name}@chorus"),
        culture: culture.to_owned(),
        languages: languages
            .iter()
            .map(|&language| language.to_owned())
            .collect(),
        endpoint: None,
        invite_code: None,
    };
    let odd = |what: &str| {
        Fail::new(
            Exit::Transport,
            "NOT_UNDERSTOOD",
            format!("the demo's hub {what}"),
        )
    };
    let registered = Client::new(hub, None)?.register(&newcomer).await?;
    let key = registered.api_key.ok_or_else(|| odd("gave no key"))?;
    let handle = Handle::parse(&format!("~{name}")).ok_or_else(|| odd("knows no such handle"))?;
    let client = Client::new(hub, Some(key.clone()))?;
    Ok(Arc::new(Actor {
        id: newcomer.agent_id,
        handle,
        culture,
        key,
        client,
    }))
}

/// Hears what comes: a message is answered for, a job is done, a question in the room is answered.
async fn attend(me: Arc<Actor>, mut inbox: Stream, pace: Pace) -> Result<(), Fail> {
    loop {
        let Event { name, data, .. } = inbox.next().await?;
        let said: Value = serde_json::from_str(&data).unwrap_or_default();
        match name.as_str() {
            "message" => {
                let trace_id = said["trace_id"].as_str().unwrap_or_default();
                me.client.respond(trace_id, &ReceiverReply::ok()).await?;
            }
            "job" => market::work(&me, &said, pace).await?,
            "channel" => room::answer(&me, &said, pace).await?,
            _ => {}
        }
    }
}
