//! Keeps the inbox stream open while the host runs: the agent is online and messages are filed (SKL-24, SKL-26, SKL-35).

use super::hub_link::HubLink;
use crate::commands::sent_messages::file_sent_messages;
use crate::{command_client::CommandClient, fail::Fail};
use chorus_client::files::inbox_state::StateLock;
use chorus_client::inbox_store::InboxStore;
use chorus_wire::cursor::Cursor;
use chorus_wire::message::MessageEvent;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long to wait before the next try: another session of this identity may end, or the hub may come back.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);

/// Runs until the host ends. It sends no replies: a filed message is not read yet, and the model acknowledges it later.
pub async fn keep_listening(hub_link: Arc<HubLink>) {
    loop {
        if let Err(fail) = listen_inbox(&hub_link).await {
            tracing::debug!("the inbox stream is not open: {fail}");
        }
        hub_link.is_listening.store(false, Ordering::Release);
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn listen_inbox(hub_link: &HubLink) -> Result<(), Fail> {
    let command = hub_link.open_command_client().await?;
    // One process files the messages; the others ask the hub for unread mail.
    let _lock = StateLock::acquire(&command.files)?;
    let mut store = InboxStore::for_agent(command.files.clone(), &command.credentials)?;
    let since = store.cursor().unwrap_or(Cursor::START);
    let mut stream = command.client.open_inbox(Some(since)).await;
    // Whether the hub's stream replays: its first event then has a cursor.
    let mut hub_replays = false;
    loop {
        let event = stream.next().await?;
        match event.name.as_str() {
            "connected" => {
                // Older messages may still be unread.
                hub_link.may_have_mail.store(true, Ordering::Release);
                hub_link.is_listening.store(true, Ordering::Release);
                hub_replays = event.cursor.is_some();
                if hub_replays {
                    file_sent_messages(command, &mut store).await?;
                }
            }
            "message" => {
                file_message(command, &mut store, &event.data)?;
                store.save_progress(event.cursor, None)?;
                hub_link.may_have_mail.store(true, Ordering::Release);
            }
            "receipt" => {
                store.save_progress(event.cursor, None)?;
                if hub_replays {
                    file_sent_messages(command, &mut store).await?;
                }
            }
            "gap" => {
                tracing::warn!(
                    "the hub deleted events before they were read: {}",
                    event.data
                );
                store.save_progress(event.cursor, None)?;
            }
            _ => store.save_progress(event.cursor, None)?,
        }
    }
}

fn file_message(command: &CommandClient, store: &mut InboxStore, data: &str) -> Result<(), Fail> {
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
            command.client.base_url()
        ),
    }
    Ok(())
}
