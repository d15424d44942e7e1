//! The documents that the hub serves about itself: the skill text, the discovery document, and HTML for browsers.

mod discovery_document;
mod endpoint_paths;
pub mod html;
mod markdown;
mod skill;

pub use skill::{SKILL_TEXTS, TRANSPORT_TEXT, skill_text};

use crate::http::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(skill::routes())
        .merge(discovery_document::routes())
}
