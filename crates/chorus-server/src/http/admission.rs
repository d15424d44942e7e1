//! Authenticates a request and takes it from the rate budget of its caller.

use super::app_state::AppState;
use super::auth::{self, AuthResult};
use super::rate_limit::{CallerId, RemainingBudget};
use axum::extract::ConnectInfo;
use chorus_wire::Error;
use http::{Extensions, HeaderMap, request::Parts};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The client's address, which differs from the peer's behind a trusted proxy (D-92).
#[derive(Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

pub fn client_address(extensions: &Extensions) -> IpAddr {
    extensions.get::<ClientAddress>().map_or_else(
        || peer_address(extensions),
        |ClientAddress(address)| *address,
    )
}

/// The address at the other end of the connection.
pub fn peer_address(extensions: &Extensions) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(addr)| {
        addr.ip()
    })
}

/// Charges a request with an unknown secret to the address of its client.
pub async fn spend_address_budget(state: &AppState, parts: &Parts) -> Result<(), Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(());
    };
    rate_limiter
        .spend_request(rate_limiter.caller_of_address(client_address(&parts.extensions)))
        .await
        .map(drop)
}

/// Charges a request to the caller that the secret in its path identified.
pub async fn spend_caller_budget(
    state: &AppState,
    caller: CallerId,
) -> Result<Option<RemainingBudget>, Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(None);
    };
    rate_limiter.spend_request(caller).await.map(Some)
}

/// Authenticates a request and charges it to its caller. `budget` is set for the rate-limit headers, also on refusal.
pub async fn admit_request(
    state: &AppState,
    headers: &HeaderMap,
    peer: IpAddr,
    budget: &mut Option<RemainingBudget>,
) -> Result<AuthResult, Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(auth::authenticate_request(state, headers).await);
    };
    // Each guessed key costs a read of the store: an address that has used up its guesses is refused before the look-up.
    let needs_lookup = auth::needs_key_lookup(state, headers);
    if needs_lookup {
        let allowed = rate_limiter
            .check_remaining(rate_limiter.caller_guessing_keys(peer))
            .await;
        if allowed.is_err() {
            *budget = Some(rate_limiter.exhausted_budget());
        }
        allowed?;
    }
    let auth = auth::authenticate_request(state, headers).await;
    let caller = match &auth.0 {
        Ok(principal) => rate_limiter.caller_of_principal(principal, peer),
        // A wrong key identifies no agent, so the request is charged to its address.
        Err(_) => {
            if needs_lookup {
                // Only the charge matters here; the next guess is refused.
                let _ = rate_limiter
                    .spend_request(rate_limiter.caller_guessing_keys(peer))
                    .await;
            }
            rate_limiter.caller_of_address(peer)
        }
    };
    let remaining = rate_limiter.spend_request(caller).await;
    *budget = Some(
        *remaining
            .as_ref()
            .unwrap_or(&rate_limiter.exhausted_budget()),
    );
    remaining.map(|_| auth)
}
