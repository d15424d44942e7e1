//! Authenticates a request and takes it from the rate budget of its caller.

use super::app_state::AppState;
use super::auth::{self, AuthResult};
use super::rate_limit::{CallerId, RateLimiter, RemainingBudget};
use axum::extract::ConnectInfo;
use chorus_hub::Principal;
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

/// Refuses an address that has used up its guesses, before the secret in the path or header is looked up (D-20).
pub async fn check_guesses_left(state: &AppState, parts: &Parts) -> Result<(), Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(());
    };
    let client = client_address(&parts.extensions);
    rate_limiter
        .check_remaining(rate_limiter.caller_guessing_keys(client))
        .await
}

/// Charges a request with an unknown secret to the address of its client, as a request and as a guess.
pub async fn charge_wrong_secret(state: &AppState, parts: &Parts) -> Result<(), Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(());
    };
    let client = client_address(&parts.extensions);
    charge_guess(rate_limiter, client).await;
    rate_limiter
        .spend_request(rate_limiter.caller_of_address(client))
        .await
        .map(drop)
}

/// Only the charge matters: the next guess is refused.
async fn charge_guess(rate_limiter: &RateLimiter, client: IpAddr) {
    let _ = rate_limiter
        .spend_request(rate_limiter.caller_guessing_keys(client))
        .await;
}

/// Charges a probe of health or metrics to a generous budget of its own, so that probes are answered when other requests
/// of the address are refused.
pub async fn admit_probe(state: &AppState, client: IpAddr) -> Result<(), Error> {
    match &state.rate_limiter {
        Some(rate_limiter) => rate_limiter.spend_probe(client).await,
        None => Ok(()),
    }
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
    is_registration: bool,
    budget: &mut Option<RemainingBudget>,
) -> Result<AuthResult, Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(auth::authenticate_request(state, headers, peer).await);
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
    let auth = auth::authenticate_request(state, headers, peer).await;
    let caller = match &auth.outcome {
        Ok(principal) => rate_limiter.caller_of_principal(principal, peer),
        // A wrong key identifies no agent, so the request is charged to its address.
        Err(_) => {
            if needs_lookup {
                charge_guess(rate_limiter, peer).await;
            }
            rate_limiter.caller_of_address(peer)
        }
    };
    let mut remaining = rate_limiter.spend_request(caller).await;
    let principal = match &auth.outcome {
        Ok(principal) => Some(principal),
        // A registration with a dead key is one without a key, and takes from the same budget.
        Err(_) => is_registration.then_some(&Principal::Anonymous),
    };
    if let (Ok(_), Some(principal)) = (&remaining, principal)
        && let Err(refusal) = rate_limiter
            .spend_address(principal, peer, is_registration)
            .await
    {
        remaining = Err(refusal);
    }
    *budget = Some(
        *remaining
            .as_ref()
            .unwrap_or(&rate_limiter.exhausted_budget()),
    );
    remaining.map(|_| auth)
}
