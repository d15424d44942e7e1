//! A relay between two channels of two independent services. It has a connection string for each channel, and posts each
//! delivery of one channel to the last callback of the other.
//!
//!     channel-relay 127.0.0.1:4000        prints the two connection strings; paste each into its channel
//!
//! `RELAY_SECRET_ONE` and `RELAY_SECRET_TWO` keep the connection strings the same after a restart. The relay stores nothing
//! else: it acknowledges a delivery after posting it on the other side. Without a callback of the other side it answers 503,
//! and the service retries.

mod side;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::post};
use chorus_client::channel::CallbackClient;
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::secret::Secret;
use side::{ChannelSide, DeliveryKind};
use std::process::ExitCode;
use std::sync::Arc;

struct Relay {
    secrets: [Secret; 2],
    sides: [ChannelSide; 2],
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: channel-relay ADDRESS");
        return ExitCode::FAILURE;
    };
    match serve(&address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("channel-relay: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(address: &str) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let secrets = [
        read_or_create_secret("RELAY_SECRET_ONE"),
        read_or_create_secret("RELAY_SECRET_TWO"),
    ];
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

fn read_or_create_secret(variable: &str) -> Secret {
    let given = std::env::var(variable)
        .ok()
        .filter(|secret| !secret.is_empty());
    Secret::new(given.unwrap_or_else(|| format!("sk_{:032x}", rand::random::<u128>())))
}

/// Relays a delivery from one channel to the other.
async fn deliver(
    State(relay): State<Arc<Relay>>,
    Path(secret): Path<String>,
    body: Bytes,
) -> StatusCode {
    let Some(index) = relay
        .secrets
        .iter()
        .position(|known| known.expose() == secret)
    else {
        return StatusCode::NOT_FOUND;
    };
    let Ok(delivery) = ChannelDelivery::parse(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    let source = &relay.sides[index];
    let target = &relay.sides[1 - index];
    // Also save the callback of a delivery that cannot be relayed yet: the other side needs it.
    source.save_callback(&delivery.callback);
    // One delivery at a time, so that both channels have the same order.
    let mut turn = source.lock_relayed().await;
    match turn.classify(&delivery) {
        DeliveryKind::AlreadyRelayed | DeliveryKind::OwnEcho => return StatusCode::OK,
        DeliveryKind::New => {}
    }
    let Some(callback) = target.callback() else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let text = format!("{}: {}", delivery.message.sender, delivery.message.content);
    let Ok(mut callback_client) = CallbackClient::from_url(&callback) else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    target.record_sent(&text);
    match callback_client.send_message(text).await {
        Ok(()) => {
            turn.record_relayed(&delivery);
            StatusCode::OK
        }
        Err(error) => {
            eprintln!("not passed on: {error}");
            if error
                .error_response()
                .is_some_and(|refusal| matches!(refusal.status, 404 | 410))
            {
                target.drop_callback(&callback);
            }
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}
