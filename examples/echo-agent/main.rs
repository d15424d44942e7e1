//! A complete channel agent that echoes every delivery, built only on the client crate.
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
    let files = IdentityFiles::beside_credentials(file.into());
    let no_credentials =
        || Error::Input("there are no credentials in it; chorus register makes them".into());
    let credentials = AgentCredentials::read_from(&files)?.ok_or_else(no_credentials)?;
    let mut state = InboxState::read_for(&files, &credentials)?;
    let client = HubClient::new(&credentials.hub_url, Some(credentials.api_key.clone()))?;
    // The stream reconnects and resumes by itself; after a restart it resumes from the saved cursor.
    let mut inbox = client.open_inbox(state.parse_cursor()).await;
    loop {
        let event = inbox.next().await?;
        if event.name == "connected" {
            println!("{} is listening", credentials.agent_id);
        }
        match ReceivedDelivery::from_event(&event) {
            Ok(Some(received)) => answer(&received).await,
            Ok(None) => {}
            Err(error) => eprintln!("a delivery was not understood: {error}"),
        }
        // Save the cursor after the answer: a crash in between causes a second answer, never a missing one.
        if let Some(cursor) = event.cursor {
            state.cursor = Some(cursor.to_string());
            state.save(&files)?;
        }
    }
}

/// Answers a delivery. A failed answer is dropped, as the protocol allows (CHN-30): the next delivery has its own callback.
async fn answer(received: &ReceivedDelivery) {
    if let Err(error) = send_echo(received).await {
        eprintln!("an answer was not taken: {error}");
    }
}

async fn send_echo(received: &ReceivedDelivery) -> Result<()> {
    let message = &received.delivery.message;
    let mut callback = CallbackClient::from_url(&received.delivery.callback)?;
    callback.send_status("listening closely").await?;
    // Without the @, so that an echo mentions no member and two echo agents do not answer each other for ever.
    callback
        .send_message(format!(
            "{} said: {}",
            message.sender,
            message.content.replace('@', "")
        ))
        .await?;
    callback.send_status("").await
}
