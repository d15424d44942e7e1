//! The demo's agents: four of four cultures, and Ada, the user's own.

use super::{DemoPace, channel, market, messages};
use crate::fail::{ExitKind, Fail};
use chorus_client::HubClient;
use chorus_client::event_stream::{EventStream, StreamEvent};
use chorus_client::identity::RegistrationRequest;
use chorus_wire::{identity::Handle, secret::Secret};
use serde_json::Value;
use std::sync::Arc;
use tokio::task::JoinSet;

pub struct DemoAgent {
    pub id: String,
    pub handle: Handle,
    pub culture: &'static str,
    pub key: Secret,
    pub client: HubClient,
}

pub struct DemoCast {
    /// Ada, the agent whose key the user gets.
    pub you: Arc<DemoAgent>,
    pub mei: Arc<DemoAgent>,
    pub haruto: Arc<DemoAgent>,
    pub lena: Arc<DemoAgent>,
    pub sofia: Arc<DemoAgent>,
}

impl DemoAgent {
    /// The name part of its address.
    pub fn short_name(&self) -> &str {
        self.id.split('@').next().unwrap_or_default()
    }
}

impl DemoCast {
    pub async fn register_all(hub: &str) -> Result<Self, Fail> {
        Ok(Self {
            you: register_agent(hub, "ada", "en", &["en"]).await?,
            mei: register_agent(hub, "mei", "zh-CN", &["zh-CN", "en"]).await?,
            haruto: register_agent(hub, "haruto", "ja", &["ja", "en"]).await?,
            lena: register_agent(hub, "lena", "de", &["de", "en"]).await?,
            sofia: register_agent(hub, "sofia", "pt-BR", &["pt-BR", "en"]).await?,
        })
    }

    /// Starts the inboxes of the four agents. Ada's inbox is not read, so that the last message waits for the user.
    pub async fn serve_inboxes(
        &self,
        pace: DemoPace,
        tasks: &mut JoinSet<Result<(), Fail>>,
    ) -> Result<(), Fail> {
        for actor in [&self.mei, &self.haruto, &self.lena, &self.sofia] {
            let mut inbox = actor.client.open_inbox(None).await;
            while inbox.next().await?.name != "connected" {}
            tasks.spawn(serve_inbox(actor.clone(), inbox, pace));
        }
        Ok(())
    }
}

async fn register_agent(
    hub: &str,
    name: &str,
    culture: &'static str,
    languages: &[&str],
) -> Result<Arc<DemoAgent>, Fail> {
    let request = RegistrationRequest {
        agent_id: format!("{name}@chorus"),
        culture: culture.to_owned(),
        languages: languages
            .iter()
            .map(|&language| language.to_owned())
            .collect(),
        endpoint_secret: None,
        endpoint: None,
        invite_code: None,
        owner_id: None,
        api_endpoint: None,
    };
    let protocol_error = |problem: &str| {
        Fail::new(
            ExitKind::Transport,
            "NOT_UNDERSTOOD",
            format!("the demo's hub {problem}"),
        )
    };
    let registered = HubClient::new(hub, None)?.register_agent(&request).await?;
    let key = registered
        .api_key
        .ok_or_else(|| protocol_error("gave no key"))?;
    let handle =
        Handle::parse(&format!("~{name}")).ok_or_else(|| protocol_error("knows no such handle"))?;
    let client = HubClient::new(hub, Some(key.clone()))?;
    Ok(Arc::new(DemoAgent {
        id: request.agent_id,
        handle,
        culture,
        key,
        client,
    }))
}

/// Reads an inbox: replies to messages, does jobs and answers channel deliveries.
async fn serve_inbox(
    agent: Arc<DemoAgent>,
    mut inbox: EventStream,
    pace: DemoPace,
) -> Result<(), Fail> {
    loop {
        let StreamEvent { name, data, .. } = inbox.next().await?;
        let event: Value = serde_json::from_str(&data).unwrap_or_default();
        match name.as_str() {
            "message" => messages::answer_message(&agent, &event).await?,
            "job" => market::work_on_job(&agent, &event, pace).await?,
            "channel" => channel::answer_delivery(&agent, &event, pace).await?,
            _ => {}
        }
    }
}
