//! Attacks on a hub in its own process, from loopback and bounded: it must stay small and answer others.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

#[path = "../cli/actors.rs"]
#[expect(dead_code, reason = "these attacks need only some of the actors")]
mod actors;
mod frame_flood;
mod outbox_tarpit;
mod registration_flood;
mod silent_name_server;
mod slow_readers;
mod small_machine;
mod support;
mod support_compute;
mod support_frames;
mod webhook_tarpit;
