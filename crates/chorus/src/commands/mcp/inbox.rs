//! The inbox, held open while the host runs: others see us online, and what arrives is in the history files (SKL-24, SKL-26).

use super::hub_link::HubLink;
use crate::{fail::Fail, session::ClientSession};
use chorus_client::files::inbox_state::StateLock;
use chorus_client::inbox_store::InboxStore;
use chorus_wire::cursor::Cursor;
use chorus_wire::message::MessageEvent;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long until we look again whether we may hear: another session of the same identity may have ended, or the hub be back.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);

/// Goes on until the host does. The senders get their answer when the model acknowledges, not from here: filed is not read.
pub async fn keep_listening(hub_link: Arc<HubLink>) {
    loop {
        if let Err(fail) = listen_inbox(&hub_link).await {
            tracing::debug!("the inbox is not held open: {fail}");
        }
        hub_link.is_listening.store(false, Ordering::Release);
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn listen_inbox(hub_link: &HubLink) -> Result<(), Fail> {
    let session = hub_link.open_session().await?;
    // One process files what arrives; the others ask the hub whether something did.
    let _lock = StateLock::acquire(&session.files)?;
    let mut store = InboxStore::for_agent(session.files.clone(), &session.credentials)?;
    let since = store.cursor().unwrap_or(Cursor::START);
    let mut stream = session.client.open_inbox(Some(since)).await;
    loop {
        let event = stream.next().await?;
        match event.name.as_str() {
            "connected" => {
                // What came before we could hear may still be unread.
                hub_link.may_have_mail.store(true, Ordering::Release);
                hub_link.is_listening.store(true, Ordering::Release);
            }
            "message" => {
                file_message(session, &mut store, &event.data)?;
                store.save_progress(event.cursor, None)?;
                hub_link.may_have_mail.store(true, Ordering::Release);
            }
            _ => store.save_progress(event.cursor, None)?,
        }
    }
}

fn file_message(session: &ClientSession, store: &mut InboxStore, data: &str) -> Result<(), Fail> {
    match serde_json::from_str::<MessageEvent>(data) {
        Ok(message) => {
            store.file_message(
                &message.timestamp.to_string(),
                &message.sender_id,
                message.envelope,
                None,
            )?;
        }
        Err(error) => tracing::warn!(
            "a message of {} was not understood: {error}",
            session.client.base_url()
        ),
    }
    Ok(())
}
