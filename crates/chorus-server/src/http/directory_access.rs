//! Who may read the directory: any client of an open hub, and clients with a key where registration needs an invite.

use super::auth::{MaybeAuth, OptionalKey};
use super::{api_error::ApiError, app_state::AppState};
use axum::extract::FromRequestParts;
use chorus_hub::{Principal, identity::invites};
use chorus_wire::{Error, ErrorCode};
use http::request::Parts;

const CLOSED_MESSAGE: &str =
    "This hub shows its agents only to clients with a key: Authorization: Bearer <api_key>.";

/// The principal of a request that may read the directory, the skills and the totals of the market.
pub struct DirectoryAccess(pub Principal);

impl FromRequestParts<AppState> for DirectoryAccess {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let MaybeAuth(principal) = MaybeAuth::from_request_parts(parts, state).await?;
        Ok(Self(check_access(state, principal).await?))
    }
}

/// The principal of a request for a list of the directory. A client that still sends a key which has ended gets the list as any
/// other client does; the record of one agent refuses such a key, so that an agent can find out.
pub struct DirectoryListAccess(pub Principal);

impl FromRequestParts<AppState> for DirectoryListAccess {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let OptionalKey(principal) = OptionalKey::from_request_parts(parts, state).await?;
        Ok(Self(check_access(state, principal).await?))
    }
}

async fn check_access(state: &AppState, principal: Principal) -> Result<Principal, Error> {
    match principal {
        Principal::Anonymous => check_open_directory(state).await?,
        Principal::Agent(_) | Principal::Operator(_) => {}
    }
    Ok(principal)
}

/// Refuses a client without a key on a hub that requires invites.
pub async fn check_open_directory(state: &AppState) -> Result<(), Error> {
    if invites::is_invite_gated(state.hub.identity()).await? {
        return Err(Error::new(ErrorCode::Unauthorized, CLOSED_MESSAGE));
    }
    Ok(())
}
