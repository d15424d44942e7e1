//! The extractors of path parameters.

use super::{api_error::ApiError, app_state::AppState};
use axum::extract::{FromRequestParts, Path};
use chorus_wire::Error;
use http::request::Parts;

/// The parameter of a path that has one.
pub struct PathParam(pub String);

impl FromRequestParts<AppState> for PathParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(segment)| Self(segment))
            .map_err(|e| Error::validation(e.body_text()).into())
    }
}

/// The parameters of a path that has two.
pub struct PathParamPair(pub String, pub String);

impl FromRequestParts<AppState> for PathParamPair {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        path.map(|Path((first, second))| Self(first, second))
            .map_err(|e| Error::validation(e.body_text()).into())
    }
}
