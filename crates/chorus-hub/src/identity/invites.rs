//! Registration invite codes (lesson 9): made, listed and revoked by operators, spent by registrations.

use crate::{Hub, Principal, Result};
use chorus_wire::{reply::Invite, time::Micros};

/// The body of `POST /invites`.
#[derive(Clone, Debug)]
pub struct NewInvite {
    pub label: String,
    pub max_uses: Option<u64>,
    pub expires_at: Option<Micros>,
}

pub async fn create(_who: &Principal, _hub: &Hub, _new: NewInvite) -> Result<Invite> {
    todo!()
}

pub async fn list(_who: &Principal, _hub: &Hub) -> Result<Vec<Invite>> {
    todo!()
}

/// The invite as it is now, revoked; unknown ids are `ERR_NOT_FOUND`.
pub async fn revoke(_who: &Principal, _hub: &Hub, _id: &str) -> Result<Invite> {
    todo!()
}
