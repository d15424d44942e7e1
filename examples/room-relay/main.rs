//! A relay between two rooms of two services that know nothing of each other, with nothing but the channel document's two
//! contracts: it has a connection string for each room, and says what it hears in one at the last callback of the other.
//!
//!     room-relay 127.0.0.1:4000        prints the two connection strings; paste each into its room
//!
//! `RELAY_SECRET_ONE` and `RELAY_SECRET_TWO` keep the strings the same over restarts. It keeps nothing else: a delivery is
//! acknowledged once it is said on the other side, and until that side has spoken it is refused with a 503, which the service
//! tries again.

mod side;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::post};
use chorus_client::channel::CallbackClient;
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::secret::Secret;
use side::{Heard, Side};
use std::process::ExitCode;
use std::sync::Arc;

struct Relay {
    secrets: [Secret; 2],
    sides: [Side; 2],
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: room-relay ADDRESS");
        return ExitCode::FAILURE;
    };
    match serve(&address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("room-relay: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(address: &str) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let secrets = [secret("RELAY_SECRET_ONE"), secret("RELAY_SECRET_TWO")];
    for secret in &secrets {
        println!("http://{address}/inbox/{}", secret.expose());
    }
    let relay = Arc::new(Relay {
        secrets,
        sides: Default::default(),
    });
    axum::serve(
        listener,
        Router::new()
            .route("/inbox/{secret}", post(deliver))
            .with_state(relay),
    )
    .await
}

fn secret(variable: &str) -> Secret {
    let given = std::env::var(variable)
        .ok()
        .filter(|secret| !secret.is_empty());
    Secret::new(given.unwrap_or_else(|| format!("sk_{:032x}", rand::random::<u128>())))
}

/// A delivery from one room, said in the other.
async fn deliver(
    State(relay): State<Arc<Relay>>,
    Path(secret): Path<String>,
    body: Bytes,
) -> StatusCode {
    let Some(here) = relay
        .secrets
        .iter()
        .position(|known| known.expose() == secret)
    else {
        return StatusCode::NOT_FOUND;
    };
    let Ok(delivery) = ChannelDelivery::parse(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    let (here, there) = (&relay.sides[here], &relay.sides[1 - here]);
    // Also of a delivery that cannot be passed on yet: it is the way back to this side.
    here.answers_at(&delivery.callback);
    // One after the other, so that the order of one room is its order in the other.
    let mut turn = here.turn().await;
    match turn.hear(&delivery) {
        Heard::Before | Heard::Ourselves => return StatusCode::OK,
        Heard::New => {}
    }
    let Some(callback) = there.callback() else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let text = format!("{}: {}", delivery.message.sender, delivery.message.content);
    let Ok(mut back) = CallbackClient::from_url(&callback) else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    there.says(&text);
    match back.send_message(text).await {
        Ok(()) => {
            turn.passed_on(&delivery);
            StatusCode::OK
        }
        Err(error) => {
            eprintln!("not passed on: {error}");
            if error
                .error_response()
                .is_some_and(|refusal| matches!(refusal.status, 404 | 410))
            {
                there.forget(&callback);
            }
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}
