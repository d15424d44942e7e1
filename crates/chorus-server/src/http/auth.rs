//! From `Authorization: Bearer` to a `Principal`, once per request (TRN-24, law 3).

use crate::{app_state::AppState, query::QueryParams, reply::ApiError};
use axum::extract::FromRequestParts;
use chorus_hub::{Principal, identity};
use chorus_wire::{Code, Error};
use http::{HeaderMap, header, request::Parts};

/// What a request's credential came to; the front puts it beside the request, handlers take it from there.
#[derive(Clone)]
pub struct AuthResult(pub Result<Principal, Error>);

/// The key in the header, `None` without one; anything that is not one bearer key is an error, never "no key".
pub fn parse_bearer(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut found = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = found.next() else {
        return Ok(None);
    };
    let key = value.to_str().ok().and_then(|text| {
        let (scheme, key) = text.trim().split_once(' ')?;
        let key = key.trim();
        let good = scheme.eq_ignore_ascii_case("bearer")
            && !key.is_empty()
            && !key.contains([' ', '\t', ',']);
        good.then_some(key)
    });
    match (key, found.next()) {
        (Some(key), None) => Ok(Some(key)),
        (Some(_) | None, Some(_) | None) => Err(Code::Unauthorized.into()),
    }
}

/// Whether the hub would have to look up whose key it is.
pub fn needs_key_lookup(state: &AppState, headers: &HeaderMap) -> bool {
    parse_bearer(headers)
        .ok()
        .flatten()
        .is_some_and(|key| identity::needs_lookup(state.hub.identity(), key))
}

/// Asks the hub whose key it is.
pub async fn authenticate_request(state: &AppState, headers: &HeaderMap) -> AuthResult {
    AuthResult(match parse_bearer(headers) {
        Ok(key) => identity::authenticate(state.hub.identity(), key).await,
        Err(error) => Err(error),
    })
}

impl FromRequestParts<AppState> for AuthResult {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        match parts.extensions.remove::<AuthResult>() {
            Some(auth) => Ok(auth),
            None => Ok(authenticate_request(state, &parts.headers).await),
        }
    }
}

/// Who opens a stream: with a key, or with a single-use token in `?session=`. To be asked last, so that a mistake
/// elsewhere does not cost the token.
pub async fn authenticate_stream(
    state: &AppState,
    query: &QueryParams,
    auth: AuthResult,
) -> Result<Principal, Error> {
    // A key in a URL ends up in logs and histories, so it is not read even when a good one is beside it.
    if query.has("token") {
        return Err(Code::Deprecated.into());
    }
    match query.get_single("session")? {
        Some("") => Err(Error::validation("session must not be empty")),
        Some(token) => identity::authenticate_session(state.hub.identity(), token).await,
        None => auth.0,
    }
}

/// Who is asking; a credential that is not ours ends the request here.
pub struct MaybeAuth(pub Principal);

impl FromRequestParts<AppState> for MaybeAuth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let AuthResult(outcome) = AuthResult::from_request_parts(parts, state).await?;
        Ok(MaybeAuth(outcome?))
    }
}

/// Somebody with a key. Taken before the body is: a caller without one learns that, not what is wrong with its JSON (TRN-24).
pub struct RequireKey(pub Principal);

impl FromRequestParts<AppState> for RequireKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let MaybeAuth(principal) = MaybeAuth::from_request_parts(parts, state).await?;
        match principal {
            Principal::Anonymous => Err(Code::Unauthorized.into()),
            Principal::Agent(_) | Principal::Operator(_) => Ok(RequireKey(principal)),
        }
    }
}

/// An operator, for the same reason.
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

    fn read(values: &[&str]) -> Result<Option<String>, Code> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        parse_bearer(&headers)
            .map(|key| key.map(str::to_owned))
            .map_err(|e| e.code)
    }

    #[test]
    fn the_scheme_is_read_in_any_case() {
        for value in ["Bearer k1", "bearer k1", "BEARER   k1 "] {
            assert_eq!(read(&[value]), Ok(Some("k1".into())), "{value}");
        }
        assert_eq!(read(&[]), Ok(None));
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
            assert_eq!(read(&[value]), Err(Code::Unauthorized), "{value:?}");
        }
        assert_eq!(read(&["Bearer a", "Bearer b"]), Err(Code::Unauthorized));
    }
}
