//! The inbox, held open while the host runs: others see us online, and what arrives is in the history files (SKL-24, SKL-26).

use super::link::Link;
use crate::{fail::Fail, session::Session};
use chorus_client::desk::Desk;
use chorus_client::files::state::Turn;
use chorus_wire::cursor::Cursor;
use chorus_wire::message::MessageEvent;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long until we look again whether we may hear: another session of the same identity may have ended, or the hub be back.
const AGAIN: Duration = Duration::from_secs(15);

/// Goes on until the host does. The senders get their answer when the model acknowledges, not from here: filed is not read.
pub async fn keep(link: Arc<Link>) {
    loop {
        if let Err(fail) = hear(&link).await {
            tracing::debug!("the inbox is not held open: {fail}");
        }
        link.hears.store(false, Ordering::Release);
        tokio::time::sleep(AGAIN).await;
    }
}

async fn hear(link: &Link) -> Result<(), Fail> {
    let session = link.session().await?;
    // One process files what arrives; the others ask the hub whether something did.
    let _turn = Turn::take(&session.place)?;
    let mut desk = Desk::of(session.place.clone(), &session.who)?;
    let since = desk.cursor().unwrap_or(Cursor::START);
    let mut stream = session.client.inbox(Some(since)).await;
    loop {
        let event = stream.next().await?;
        match event.name.as_str() {
            "connected" => {
                // What came before we could hear may still be unread.
                link.mail.store(true, Ordering::Release);
                link.hears.store(true, Ordering::Release);
            }
            "message" => {
                file(session, &mut desk, &event.data)?;
                desk.reached(event.cursor, None)?;
                link.mail.store(true, Ordering::Release);
            }
            _ => desk.reached(event.cursor, None)?,
        }
    }
}

fn file(session: &Session, desk: &mut Desk, data: &str) -> Result<(), Fail> {
    match serde_json::from_str::<MessageEvent>(data) {
        Ok(message) => {
            desk.file(
                &message.timestamp.to_string(),
                &message.sender_id,
                message.envelope,
                None,
            )?;
        }
        Err(error) => tracing::warn!(
            "a message of {} was not understood: {error}",
            session.client.base()
        ),
    }
    Ok(())
}
