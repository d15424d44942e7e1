//! Jobs: asked for, held, handed over, and brought to one end.

mod dispatch;
mod finish;
mod request;
mod standing;
mod state;

pub use finish::{cancel, result};
pub use request::request;
pub use standing::{list, standing};
pub(crate) use state::{Event, State};

use crate::store::{Txn, jobs};
use crate::{Hub, Result};

/// What time brings: jobs past their deadline end, jobs that nobody handed over are handed over.
pub(crate) async fn pass(hub: &Hub) -> Result<()> {
    finish::sweep(hub).await?;
    dispatch::sweep(hub).await
}

/// One step of a job that does not end it; false when it has gone on meanwhile.
async fn advance(txn: &mut Txn<'_>, id: i64, from: State, event: Event) -> Result<bool> {
    let Some(to) = from.after(event) else {
        return Ok(false);
    };
    let moved = jobs::step(&txn.tx, id, from, to).await?;
    if moved {
        *txn.counts.market.jobs.of(from) -= 1;
        *txn.counts.market.jobs.of(to) += 1;
    }
    Ok(moved)
}
