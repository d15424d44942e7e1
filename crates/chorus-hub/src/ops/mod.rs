//! Operations: health, readiness, activity, maintenance, backup and the export of traces.

mod activity;
mod backup;
mod copy_rotation;
mod health;
pub(crate) mod maintenance;
pub(crate) mod otlp;
pub(crate) mod recover_webhooks;

pub use activity::{list_activity, open_activity_stream};
pub use backup::{backup_data_dir, copy_to_postgres, forget_seal_key, mark_restored};
pub use copy_rotation::{DatedCopy, make_dated_copy};
pub use health::{ReadyMode, check_ready, count_pending_posts, read_health};
