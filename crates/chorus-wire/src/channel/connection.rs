//! `POST` and `DELETE /agent/connection`: the URL by which any service delivers to an agent (CHN-01…04, R-70).

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The URL by which services deliver to the agent. It is shown once: the hub stores only its hash.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConnectionCreated {
    #[schema(value_type = String, example = "https://hub.example.com/inbox/sk_…")]
    pub connection_string: Secret,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConnectionRevoked)]
pub struct ConnectionRevoked {
    /// False if there was none.
    pub revoked: bool,
}
