//! The tools of a session: one file per command, and what they have in common in `voice`, `place` and `show`.

pub mod accord;
pub mod advise;
pub mod answer;
pub mod ask;
pub mod broadcast;
pub mod decide;
pub mod diagnose;
pub mod file_edit;
pub mod format;
pub mod frame_context;
pub mod git_tree;
pub mod grant;
pub mod handover;
pub mod intent;
pub mod lock;
pub mod locks;
pub mod org;
pub mod roster;
pub mod send_frame;
pub mod watch;
