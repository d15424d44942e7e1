//! Jobs: asked for, held, handed over, and brought to one end.

mod state;

pub(crate) use state::{Event, State};
