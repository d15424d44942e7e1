//! `POST /register` and `POST /agents`: an agent comes, by itself or by an operator (TRN-01…07, TRN-28…31, R-10, R-11).

use crate::auth::{Asked, Operator};
use crate::reply::{self, Answer, Form, Refused};
use crate::{body::Whole, doors::Doors};
use axum::extract::State;
use bytes::Bytes;
use chorus_hub::identity;
use chorus_wire::reply::{Failure, MarketRegistered, Registered, Success};
use chorus_wire::{Result, register, register::Registration};
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(register))
        .routes(routes!(register_for))
}

/// A registration, in the form with a card or in the market's; both may be mixed.
#[derive(ToSchema)]
#[schema(example = json!({"agent_id": "my-agent@chorus",
    "agent_card": {"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]}}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/register.rs reads it"
)]
struct RegistrationBody {
    /// `name@host`; in the market's form also a UUID or another id.
    agent_id: String,
    agent_card: Option<serde_json::Map<String, serde_json::Value>>,
    /// Where messages are posted to; without it they wait for the inbox.
    endpoint: Option<String>,
    /// Needed on hubs that ask for one.
    invite_code: Option<String>,
    agent_name: Option<String>,
    owner_id: Option<String>,
    api_endpoint: Option<String>,
    skills: Option<Vec<serde_json::Value>>,
}

/// Register yourself; with your current key, update and get a new one
#[utoipa::path(post, path = "/register", tag = "identity", request_body = RegistrationBody, security((), ("agent_key" = [])),
    responses((status = 201, body = Success<Registered>, description = "New; the key is shown this once. A request in the market's form is answered bare, with status, agent_id, reputation_score and api_key"),
        (status = 200, body = Success<Registered>, description = "Updated, with a new key; the old one is dead"),
        (status = 401, body = Failure), (status = 403, body = Failure, description = "An invite code is missing or spent, or the owner is another's"),
        (status = 409, body = Failure, description = "The name is taken")))]
async fn register(State(doors): State<Doors>, asked: Asked, Whole(body): Whole) -> Answer {
    // Only a refusal needs to know how the body was meant when it could not be read.
    let form = || {
        if register::looks_like_market(&body) {
            Form::Market
        } else {
            Form::Wrapped
        }
    };
    let answered = registered(&doors, asked, &body).await;
    answered.map_err(|error| Refused::new(error, form()))?
}

async fn registered(doors: &Doors, Asked(who): Asked, body: &Bytes) -> Result<Answer> {
    let who = who?;
    let request = Registration::parse(body)?;
    let bare = request.is_market_form();
    let (new, registered) = identity::register(&who, &doors.hub, request).await?;
    Ok(if bare {
        reply::bare(status(new), &market(registered))
    } else {
        reply::wrapped(doors, status(new), registered)
    })
}

fn status(new: bool) -> StatusCode {
    if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

/// The jobs document's reply.
fn market(registered: Registered) -> MarketRegistered {
    MarketRegistered {
        status: registered.status.unwrap_or_else(|| "registered".into()),
        agent_id: registered.agent_id,
        reputation_score: registered.reputation_score.unwrap_or(50.0),
        api_key: registered.api_key,
    }
}

/// A registration by an operator.
#[derive(ToSchema)]
#[schema(example = json!({"agent_id": "alice@chorus.example", "endpoint": "https://alice.example/receive",
    "agent_card": {"card_version": "0.3", "user_culture": "zh-CN", "supported_languages": ["zh-CN", "en"]}}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/register.rs reads it"
)]
struct OperatorRegistrationBody {
    agent_id: String,
    endpoint: String,
    agent_card: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Register or update an agent as an operator
#[utoipa::path(post, path = "/agents", tag = "identity", request_body = OperatorRegistrationBody, security(("operator_key" = [])),
    responses((status = 201, body = Success<Registered>), (status = 200, body = Success<Registered>, description = "Updated"),
        (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn register_for(
    State(doors): State<Doors>,
    Operator(who): Operator,
    Whole(body): Whole,
) -> Answer {
    let request = Registration::parse_operator(&body)?;
    let (new, registered) = identity::register_for(&who, &doors.hub, request).await?;
    reply::wrapped(&doors, status(new), registered)
}
