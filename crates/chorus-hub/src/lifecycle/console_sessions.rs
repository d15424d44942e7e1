//! Console sessions: signing in and out, and what ends with a session on the hub that ends it.

use super::keys::apply_ended_keys;
use crate::Result;
use crate::context::HubContext;
use crate::frame::Frames;
use crate::identity;
use crate::store::session_tokens;
use chorus_wire::reply::{ConsoleSession, ConsoleSessionEnded};
use chorus_wire::secret::Secret;

/// Max sessions that one transaction ends, so that it stays short.
const EXPIRED_SESSIONS_PER_STEP: i64 = 100;

/// `POST /console/session`: spends the link. The oldest session of a key that has too many ends.
pub async fn open_console_session(
    hub: &HubContext,
    frames: &Frames,
    link_token: &Secret,
) -> Result<ConsoleSession> {
    let (session, replaced) = identity::sign_in_to_console(hub.identity(), link_token).await?;
    apply_ended_keys(hub, frames, &replaced);
    Ok(session)
}

/// `DELETE /console/session`: ends the session with its streams and tokens.
pub async fn end_console_session(
    hub: &HubContext,
    frames: &Frames,
    credential: Option<&str>,
) -> Result<ConsoleSessionEnded> {
    let (reply, ended) = identity::sign_out_of_console(hub.identity(), credential).await?;
    apply_ended_keys(hub, frames, &ended);
    Ok(reply)
}

/// Ends the sessions whose time is over. They are refused from that time on; this ends the streams that they opened.
pub(crate) async fn end_expired_sessions(hub: &HubContext, frames: &Frames) -> Result<()> {
    loop {
        let now = hub.clock().now();
        let due = hub
            .store()
            .read(async move |tx| Ok(session_tokens::list_expired_sessions(tx, now, 1).await?))
            .await?;
        if due.is_empty() {
            return Ok(());
        }
        let ended = hub
            .store()
            .write(async move |txn| {
                let limit = EXPIRED_SESSIONS_PER_STEP;
                let due = session_tokens::list_expired_sessions(&txn.tx, now, limit).await?;
                identity::end_sessions(txn, &due).await
            })
            .await?;
        apply_ended_keys(hub, frames, &ended);
    }
}
