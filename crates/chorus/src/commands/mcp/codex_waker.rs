//! Wakes the Codex thread that this process serves, by the queue of Codex (D-115).

use super::hub_link::HubLink;
use crate::commands::frame::frame_context::parse_ident;
use crate::commands::wake::host_watch::parent_mark;
use crate::commands::wake::method::WakeMethod;
use crate::commands::wake::schedule::SESSION_WAKES;
use crate::commands::wake::session_lock::SessionLock;
use crate::commands::wake::waker::MailWaker;
use std::sync::Arc;
use std::time::Duration;

/// How often to look whether a hook has named the thread, until it is known.
const THREAD_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait for another waker of the thread to end.
const LOCK_INTERVAL: Duration = Duration::from_secs(15);

/// Runs until the host ends.
pub async fn keep_waking(hub_link: Arc<HubLink>) {
    let mut threads = hub_link.threads.subscribe();
    loop {
        let known = threads.borrow_and_update().clone();
        let Some(thread) = known else {
            tokio::select! {
                _ = threads.changed() => {}
                () = find_hook_thread(&hub_link) => {}
            }
            continue;
        };
        tokio::select! {
            () = wake_thread(&hub_link, thread) => {}
            // Another thread calls this process now.
            _ = threads.changed() => {}
        }
    }
}

/// The host names its thread in its calls. Before the first one, our `SessionStart` hook names it, where the host process has
/// only that thread.
async fn find_hook_thread(hub_link: &HubLink) {
    let host = parent_mark();
    loop {
        let host = host.clone();
        let found = hub_link
            .with_progress(move |progress| progress.single_thread(&host).map(str::to_owned))
            .await
            .flatten();
        if let Some(thread) = found {
            hub_link.set_thread(&thread);
            return;
        }
        tokio::time::sleep(THREAD_INTERVAL).await;
    }
}

async fn wake_thread(hub_link: &HubLink, thread: String) {
    let lock = parse_ident(&thread)
        .ok()
        .and_then(|session| SessionLock::acquire(&session).ok().flatten());
    if lock.is_none() {
        tokio::time::sleep(LOCK_INTERVAL).await;
        return;
    }
    let waker = MailWaker {
        common: hub_link.common.clone(),
        session: thread.clone(),
        method: WakeMethod::Codex(thread),
        max_wakes: SESSION_WAKES,
        open_calls: hub_link.open_calls.clone(),
    };
    waker.run_until_woken().await;
}
