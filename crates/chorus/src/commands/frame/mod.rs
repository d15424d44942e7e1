//! The frame commands, one file each; `frame_context`, `git_tree` and `format` are shared.

pub mod accord;
pub mod advise;
pub mod answer;
pub mod ask;
pub mod broadcast;
mod collect_answers;
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
mod watch_filter;
