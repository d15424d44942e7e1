//! The routes of the market: skills, jobs, credits, reputation and the ledger.

mod accounts;
mod audit;
mod board;
mod economy;
mod heartbeat;
mod jobs;
mod reputation;
mod skills;
mod transfer;

use crate::http::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(jobs::routes())
        .merge(board::routes())
        .merge(transfer::routes())
        .merge(accounts::routes())
        .merge(audit::routes())
        .merge(economy::routes())
        .merge(skills::routes())
        .merge(heartbeat::routes())
        .merge(reputation::routes())
}
