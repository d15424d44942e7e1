//! From `Authorization: Bearer` to a `Principal`, once per request (TRN-24, law 3).

use crate::{doors::Doors, query::Query, reply::Refused};
use axum::extract::FromRequestParts;
use chorus_hub::{Principal, identity};
use chorus_wire::{Code, Error};
use http::{HeaderMap, header, request::Parts};

/// What a request's credential came to; the front puts it beside the request, handlers take it from there.
#[derive(Clone)]
pub struct Asked(pub Result<Principal, Error>);

/// The key in the header, `None` without one; anything that is not one bearer key is an error, never "no key".
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Error> {
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
pub fn needs_look_up(doors: &Doors, headers: &HeaderMap) -> bool {
    bearer(headers)
        .ok()
        .flatten()
        .is_some_and(|key| identity::needs_look_up(&doors.hub, key))
}

/// Asks the hub whose key it is.
pub async fn ask(doors: &Doors, headers: &HeaderMap) -> Asked {
    Asked(match bearer(headers) {
        Ok(key) => identity::authenticate(&doors.hub, key).await,
        Err(refusal) => Err(refusal),
    })
}

impl FromRequestParts<Doors> for Asked {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Refused> {
        match parts.extensions.remove::<Asked>() {
            Some(asked) => Ok(asked),
            None => Ok(ask(doors, &parts.headers).await),
        }
    }
}

/// Who opens a stream: with a key, or with a single-use token in `?session=`. To be asked last, so that a mistake
/// elsewhere does not cost the token.
pub async fn reader(doors: &Doors, query: &Query, asked: Asked) -> Result<Principal, Error> {
    // A key in a URL ends up in logs and histories, so it is not read even when a good one is beside it.
    if query.has("token") {
        return Err(Code::Deprecated.into());
    }
    match query.one("session")? {
        Some("") => Err(Error::validation("session must not be empty")),
        Some(token) => identity::authenticate_session(&doors.hub, token).await,
        None => asked.0,
    }
}

/// Who is asking; a credential that is not ours ends the request here.
pub struct Who(pub Principal);

impl FromRequestParts<Doors> for Who {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Refused> {
        let Asked(outcome) = Asked::from_request_parts(parts, doors).await?;
        Ok(Who(outcome?))
    }
}

/// Somebody with a key. Taken before the body is: a caller without one learns that, not what is wrong with its JSON (TRN-24).
pub struct Known(pub Principal);

impl FromRequestParts<Doors> for Known {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Refused> {
        let Who(who) = Who::from_request_parts(parts, doors).await?;
        match who {
            Principal::Anyone => Err(Code::Unauthorized.into()),
            Principal::Agent(_) | Principal::Operator(_) => Ok(Known(who)),
        }
    }
}

/// An operator, for the same reason.
pub struct Operator(pub Principal);

impl FromRequestParts<Doors> for Operator {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Refused> {
        let Who(who) = Who::from_request_parts(parts, doors).await?;
        who.operator()?;
        Ok(Operator(who))
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
        bearer(&headers)
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
