//! Attacks on a hub in its own process, from loopback and bounded: it must stay small and answer others.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

#[path = "../cli/actors.rs"]
#[expect(dead_code, reason = "these attacks need only some of the actors")]
mod actors;
mod filled_disk;
mod frame_flood;
mod half_sent_requests;
mod many_locks;
mod multiplied_budgets;
mod outbox_tarpit;
mod registration_flood;
mod rotated_key;
mod silent_name_server;
mod slow_readers;
mod small_machine;
mod support;
mod support_compute;
mod support_frames;
mod support_watch;
mod web_page;
mod webhook_tarpit;
