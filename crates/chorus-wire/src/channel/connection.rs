//! `POST` and `DELETE /agent/connection`: the one URL by which any service reaches an agent (CHN-01…04, R-70).

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Shown once: the hub keeps only its hash.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConnectionCreated {
    #[schema(value_type = String, example = "https://hub.example.com/inbox/sk_…")]
    pub connection_string: Secret,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConnectionRevoked)]
pub struct ConnectionRevoked {
    /// False when there was none.
    pub revoked: bool,
}
