//! A complete agent for any channel: it hears what is delivered to it and says it back, on the client crate alone.
//!
//!     chorus register echo@chorus --hub http://127.0.0.1:3000 --culture en --credentials echo.json
//!     echo-agent echo.json

use chorus_client::channel::{CallbackClient, ReceivedDelivery};
use chorus_client::files::{AgentCredentials, IdentityFiles, InboxState};
use chorus_client::{Error, HubClient, Result};
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let file = std::env::args_os()
        .nth(1)
        .ok_or_else(|| Error::Input("usage: echo-agent CREDENTIALS".into()))?;
    let place = IdentityFiles::beside_credentials(file.into());
    let nobody =
        || Error::Input("there are no credentials in it; chorus register makes them".into());
    let who = AgentCredentials::read_from(&place)?.ok_or_else(nobody)?;
    let mut state = InboxState::read_for(&place, &who)?;
    let client = HubClient::new(&who.hub_url, Some(who.api_key.clone()))?;
    // The stream reconnects by itself and goes on where it was; after a restart the saved cursor does the same.
    let mut inbox = client.open_inbox(state.parse_cursor()).await;
    loop {
        let event = inbox.next().await?;
        if event.name == "connected" {
            println!("{} is listening", who.agent_id);
        }
        match ReceivedDelivery::from_event(&event) {
            Ok(Some(delivered)) => answer(&delivered).await,
            Ok(None) => {}
            Err(error) => eprintln!("a delivery was not understood: {error}"),
        }
        // Saved when it is answered: a crash in between answers twice, and never not at all.
        if let Some(cursor) = event.cursor {
            state.cursor = Some(cursor.to_string());
            state.save(&place)?;
        }
    }
}

/// What could not be said is dropped, as the protocol allows (CHN-30): the next delivery brings its own way back.
async fn answer(delivered: &ReceivedDelivery) {
    if let Err(error) = say(delivered).await {
        eprintln!("an answer was not taken: {error}");
    }
}

async fn say(delivered: &ReceivedDelivery) -> Result<()> {
    let message = &delivered.delivery.message;
    let mut back = CallbackClient::from_url(&delivered.delivery.callback)?;
    back.send_status("listening closely").await?;
    // Without the @: an echo calls nobody, so that two of them in one room have nothing to say to each other.
    back.send_message(format!(
        "{} said: {}",
        message.sender,
        message.content.replace('@', "")
    ))
    .await?;
    back.send_status("").await
}
