//! Authenticates `Authorization: Bearer` once per request and gives handlers the `Principal` (TRN-24, invariant 3).

use super::route_scopes::RequiredScope;
use super::{admission, api_error::ApiError, app_state::AppState, query::QueryParams};
use axum::extract::FromRequestParts;
use chorus_hub::identity::IdempotencyKey;
use chorus_hub::{Principal, identity};
use chorus_wire::{Error, ErrorCode, secret::Secret};
use http::{HeaderMap, header, request::Parts};
use std::net::IpAddr;

/// The outcome of authentication, with the scope that the route needs. The front stores it in the request's extensions;
/// handlers take it from there.
#[derive(Clone)]
pub struct AuthResult {
    pub outcome: Result<Principal, Error>,
    /// Already checked for the key in the header; a session token is checked when it is redeemed.
    pub required_scope: RequiredScope,
}

impl AuthResult {
    /// Checks the scopes of the key.
    pub fn with_scope(self, required_scope: RequiredScope) -> Self {
        let outcome = self.outcome.and_then(|principal| {
            required_scope.check(&principal)?;
            Ok(principal)
        });
        Self {
            outcome,
            required_scope,
        }
    }
}

/// The key in the header, `None` without a header. A malformed credential is an error, never taken for none.
pub fn parse_bearer(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut found = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = found.next() else {
        return Ok(None);
    };
    let key = value.to_str().ok().and_then(|text| {
        let (scheme, key) = text.trim().split_once(' ')?;
        let key = key.trim();
        let is_valid = scheme.eq_ignore_ascii_case("bearer")
            && !key.is_empty()
            && !key.contains([' ', '\t', ',']);
        is_valid.then_some(key)
    });
    match (key, found.next()) {
        (Some(key), None) => Ok(Some(key)),
        (Some(_) | None, Some(_) | None) => Err(ErrorCode::Unauthorized.into()),
    }
}

/// Whether the key is not cached, so that authentication reads the store.
pub fn needs_key_lookup(state: &AppState, headers: &HeaderMap) -> bool {
    parse_bearer(headers)
        .ok()
        .flatten()
        .is_some_and(|key| identity::needs_lookup(state.hub.identity(), key))
}

/// Resolves the key to its principal.
pub async fn authenticate_request(
    state: &AppState,
    headers: &HeaderMap,
    client: IpAddr,
) -> AuthResult {
    let outcome = match parse_bearer(headers) {
        Ok(key) => identity::authenticate(state.hub.identity(), key, Some(client)).await,
        Err(error) => Err(error),
    };
    AuthResult {
        outcome,
        required_scope: RequiredScope::Any,
    }
}

impl FromRequestParts<AppState> for AuthResult {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        match parts.extensions.remove::<AuthResult>() {
            Some(auth) => Ok(auth),
            None => {
                let client = admission::client_address(&parts.extensions);
                Ok(authenticate_request(state, &parts.headers, client).await)
            }
        }
    }
}

/// The credential of a request that opens a stream: a key, or a single-use token in `?session=`. Extracted before the
/// other parameters are checked: a client without a credential gets a 401, whatever else is wrong with its request.
pub struct StreamCredential {
    auth: AuthResult,
    session_token: Option<String>,
}

/// The client that opens a stream.
pub struct StreamOpener {
    pub principal: Principal,
    /// With which a client without a key may open the stream again.
    pub resume_token: Option<Secret>,
}

impl FromRequestParts<AppState> for StreamCredential {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let query = QueryParams::from_request_parts(parts, state).await?;
        let auth = AuthResult::from_request_parts(parts, state).await?;
        let session_token = match query.get_single("session")? {
            Some("") => {
                return Err(Error::invalid_field("session", "session must not be empty").into());
            }
            Some(token) => Some(token.to_owned()),
            None => {
                reject_anonymous(auth.outcome.clone()?)?;
                None
            }
        };
        Ok(Self {
            auth,
            session_token,
        })
    }
}

impl StreamCredential {
    /// Call it after all other checks, so that a mistake elsewhere does not consume the token.
    pub async fn redeem(self, state: &AppState) -> Result<StreamOpener, Error> {
        let Some(token) = self.session_token else {
            return Ok(StreamOpener {
                principal: self.auth.outcome?,
                resume_token: None,
            });
        };
        let (principal, resume_token) =
            identity::open_session(state.hub.identity(), &token).await?;
        self.auth.required_scope.check(&principal)?;
        Ok(StreamOpener {
            principal,
            resume_token: Some(resume_token),
        })
    }
}

fn reject_anonymous(principal: Principal) -> Result<Principal, Error> {
    match principal {
        Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(_) | Principal::Operator(_) => Ok(principal),
    }
}

/// The principal of a request that rotates a key. One whose answer was lost comes again with the key that it has replaced
///
pub async fn authenticate_rotation(
    state: &AppState,
    auth: AuthResult,
    headers: &HeaderMap,
    idempotency_key: Option<&IdempotencyKey>,
) -> Result<Principal, Error> {
    match (auth.outcome, parse_bearer(headers)?, idempotency_key) {
        (Err(error), Some(key), Some(request)) if error.code == ErrorCode::Unauthorized => {
            identity::authenticate_replaced_key(state.hub.identity(), key, request).await
        }
        (outcome, _, _) => outcome,
    }
}

/// On a route that needs no key, a key that is not valid any more counts as none. A malformed credential is refused.
pub fn ignore_dead_key(
    outcome: Result<Principal, Error>,
    headers: &HeaderMap,
) -> Result<Principal, Error> {
    match outcome {
        Err(error) if error.code == ErrorCode::Unauthorized && parse_bearer(headers)?.is_some() => {
            Ok(Principal::Anonymous)
        }
        outcome => outcome,
    }
}

/// The principal of a request that any client may make. A dead key counts as none.
pub struct OptionalKey(pub Principal);

impl FromRequestParts<AppState> for OptionalKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let auth = AuthResult::from_request_parts(parts, state).await?;
        Ok(Self(ignore_dead_key(auth.outcome, &parts.headers)?))
    }
}

/// The principal of a request, which may be anonymous; an invalid credential is refused.
pub struct MaybeAuth(pub Principal);

impl FromRequestParts<AppState> for MaybeAuth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let auth = AuthResult::from_request_parts(parts, state).await?;
        Ok(MaybeAuth(auth.outcome?))
    }
}

/// A principal with a key. Extracted before the body, so that a client without a key gets a 401 and not a JSON error
/// (TRN-24).
pub struct RequireKey(pub Principal);

impl FromRequestParts<AppState> for RequireKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let MaybeAuth(principal) = MaybeAuth::from_request_parts(parts, state).await?;
        Ok(RequireKey(reject_anonymous(principal)?))
    }
}

/// An operator, extracted before the body for the same reason.
pub struct RequireOperator(pub Principal);

impl FromRequestParts<AppState> for RequireOperator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let MaybeAuth(principal) = MaybeAuth::from_request_parts(parts, state).await?;
        principal.require_operator()?;
        Ok(RequireOperator(principal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn parse(values: &[&str]) -> Result<Option<String>, ErrorCode> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        parse_bearer(&headers)
            .map(|key| key.map(str::to_owned))
            .map_err(|e| e.code)
    }

    #[test]
    fn the_scheme_is_case_insensitive() {
        for value in ["Bearer k1", "bearer k1", "BEARER   k1 "] {
            assert_eq!(parse(&[value]), Ok(Some("k1".into())), "{value}");
        }
        assert_eq!(parse(&[]), Ok(None));
    }

    /// TRN-24
    #[test]
    fn a_garbled_credential_is_never_taken_for_none() {
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "k1",
            "Basic k1",
            "Bearer a b",
            "Bearer a,b",
            "Bearer\u{e9} k",
        ] {
            assert_eq!(parse(&[value]), Err(ErrorCode::Unauthorized), "{value:?}");
        }
        assert_eq!(
            parse(&["Bearer a", "Bearer b"]),
            Err(ErrorCode::Unauthorized)
        );
    }
}
