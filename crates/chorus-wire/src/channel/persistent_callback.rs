//! `POST /channels/{id}/members/{name}/callback`: a callback that answers nothing in particular.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Shown once: the hub keeps only its hash, and asking again makes another.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = StandingCallback)]
pub struct PersistentCallback {
    #[schema(value_type = String, example = "https://hub.example.com/channels/ch_…/inbox/tok_…")]
    pub callback: Secret,
}
