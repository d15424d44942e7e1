//! `/agent/connection` and `/inbox/{secret}`: how services reach an agent that this hub hosts (CHN-01…05, CHN-20, R-70).

use crate::reply::{self, Answer};
use crate::{auth::Known, body, body::Whole, doors::Doors, front, limit::Caller};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use chorus_hub::channel::host::{self, Letterbox};
use chorus_wire::channel::connection::{Connection, Revoked};
use chorus_wire::channel::delivery::Delivery;
use chorus_wire::reply::{Failure, Success};
use chorus_wire::{Code, Error, json, secret::Secret};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(connect, disconnect))
        .routes(routes!(deliver))
}

/// A new connection string for this agent; the one before stops working at once
#[utoipa::path(post, path = "/agent/connection", tag = "channel", security(("agent_key" = [])),
    responses((status = 200, body = Success<Connection>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn connect(State(doors): State<Doors>, Known(who): Known) -> Answer {
    let connection = host::connect(&who, &doors.hub, &doors.public_url).await?;
    reply::wrapped(&doors, StatusCode::OK, connection)
}

/// Revoke this agent's connection string
#[utoipa::path(delete, path = "/agent/connection", tag = "channel", security(("agent_key" = [])),
    responses((status = 200, body = Success<Revoked>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn disconnect(State(doors): State<Doors>, Known(who): Known) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        host::disconnect(&who, &doors.hub).await?,
    )
}

/// A service may try again after a 5xx and after nothing else (CHN-22): a 429 would lose the delivery.
fn later(busy: Error) -> Error {
    let said = "this agent has been delivered as much as it may be for now; Retry-After says when to come back";
    Error {
        retry_after: busy.retry_after,
        ..Error::new(Code::Unavailable, said)
    }
}

/// Deliver to an agent: the connection string is the credential, and the answer comes by the callback
#[utoipa::path(post, path = "/inbox/{secret}", tag = "channel", request_body = Delivery,
    params(("secret" = String, Path, description = "The `sk_…` of the connection string")),
    responses((status = 200, body = Object, description = "It is kept for the agent, now or from an earlier try"),
        (status = 404, body = Failure, description = "No such connection string, or no longer"),
        (status = 503, body = Failure, description = "Too much at once: try again after Retry-After")))]
async fn deliver(State(doors): State<Doors>, request: Request) -> Answer {
    let (mut parts, content) = request.into_parts();
    let secret = Path::<String>::from_request_parts(&mut parts, &doors).await;
    let secret = Secret::new(secret.map(|Path(secret)| secret).unwrap_or_default());
    // Before anything of the body is looked at: whoever guesses learns nothing, whatever it sends.
    let letterbox = match Letterbox::find(&doors.hub, &secret).await {
        Ok(letterbox) => letterbox,
        Err(refused) => {
            body::drain(content);
            if refused.code == Code::NotFound {
                front::count_stranger(&doors, &parts).await?;
            }
            return Err(refused.into());
        }
    };
    let budget = front::count(&doors, Caller::Connection(letterbox.number()))
        .await
        .map_err(later)?;
    let Whole(content) = Whole::from_request(Request::from_parts(parts, content), &doors).await?;
    letterbox
        .put(
            &doors.hub,
            &Delivery::parse(&content)?,
            json::text(&content)?,
        )
        .await?;
    let mut answer = reply::bare(StatusCode::OK, &serde_json::json!({"status": "ok"}))?;
    if let Some(budget) = budget {
        budget.write(answer.headers_mut());
    }
    Ok(answer)
}
