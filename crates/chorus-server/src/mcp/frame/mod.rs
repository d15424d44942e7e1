//! The tools of frames: what one session tells the others of its handle, its organisation or its accords (FRM-96).

mod ask;
mod claim;
mod held;
mod live;
mod say;
mod speaker;

use super::call::Call;
use super::tool::Verb;

pub fn verbs() -> Vec<Verb<Call>> {
    [say::verbs(), claim::verbs(), ask::verbs(), live::verbs()]
        .into_iter()
        .flatten()
        .collect()
}
