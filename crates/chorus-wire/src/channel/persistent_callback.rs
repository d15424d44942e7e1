//! `POST /channels/{id}/members/{name}/callback`: a callback that belongs to a member, not to one delivery.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A callback that does not expire. It is shown once: the hub stores only its hash. A further request replaces it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = PersistentCallback)]
pub struct PersistentCallback {
    #[schema(value_type = String, example = "https://hub.example.com/channels/ch_…/inbox/tok_…")]
    pub callback: Secret,
}
