//! Who is asking: principals, their names, their keys, and how they come and go.

pub mod invites;

use crate::{Hub, Result};
use chorus_wire::register::Registration;
use chorus_wire::reply::{AgentRecord, Deleted, DirectoryRow, InviteCard, Registered, SessionToken};
use std::sync::Arc;

/// Who is asking. Made by [`authenticate`] and [`authenticate_session`] and nothing else (law 3).
#[derive(Clone, Debug)]
pub enum Principal {
    /// Nobody in particular.
    Anyone,
    Agent(Arc<Agent>),
    Operator,
}

/// A registered agent: one row, up to three names.
#[derive(Debug)]
pub struct Agent {
    pub id: i64,
    pub agent_id: String,
}

/// A slice of a listing: at most `limit` rows after `after` (an `agent_id`).
#[derive(Clone, Debug)]
pub struct Page {
    pub limit: usize,
    pub after: Option<String>,
}

/// No credential is `Anyone`; one that is not ours is an error (TRN-24).
pub async fn authenticate(_hub: &Hub, _key: Option<&str>) -> Result<Principal> {
    todo!()
}

/// Spends a single-use `cs_` token.
pub async fn authenticate_session(_hub: &Hub, _token: &str) -> Result<Principal> {
    todo!()
}

/// `POST /agent/session`
pub async fn open_session(_who: &Principal, _hub: &Hub) -> Result<SessionToken> {
    todo!()
}

/// `POST /register`; true when the agent is new (201), false when it was updated (200).
pub async fn register(_who: &Principal, _hub: &Hub, _request: Registration) -> Result<(bool, Registered)> {
    todo!()
}

/// `POST /agents`; true when the agent is new (201), false when it was updated (200).
pub async fn register_for(_who: &Principal, _hub: &Hub, _request: Registration) -> Result<(bool, Registered)> {
    todo!()
}

/// `DELETE /agents/{id}`
pub async fn unregister(_who: &Principal, _hub: &Hub, _name: &str) -> Result<Deleted> {
    todo!()
}

/// `GET /agents/{id}`
pub async fn record(_who: &Principal, _hub: &Hub, _name: &str) -> Result<AgentRecord> {
    todo!()
}

/// `GET /agents`
pub async fn records(_who: &Principal, _hub: &Hub, _page: Page) -> Result<Vec<AgentRecord>> {
    todo!()
}

/// `GET /discover`
pub async fn directory(_who: &Principal, _hub: &Hub, _page: Page) -> Result<Vec<DirectoryRow>> {
    todo!()
}

/// `GET /invite/{id}`; `hub_url` is what the instructions print.
pub async fn invite_card(_who: &Principal, _hub: &Hub, _name: &str, _hub_url: &str) -> Result<InviteCard> {
    todo!()
}
