//! The doors of the market; each file mounts its own routes.

mod accounts;
mod audit;
mod economy;
mod transfer;

use crate::doors::Doors;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .merge(transfer::routes())
        .merge(accounts::routes())
        .merge(audit::routes())
        .merge(economy::routes())
}
