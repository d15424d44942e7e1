//! `market_offer`: offer a skill, change the offer or withdraw it.

use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market::skills;
use chorus_wire::contract::FieldCheck;
use chorus_wire::credits::Credits;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::{Error, wire_object};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

pub fn offer_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![ToolDefinition::new(
        "market_offer",
        "Offer a skill",
        ToolKind::Idempotent,
        OFFER_DESCRIPTION,
        offer_skill,
    )]
}

const OFFER_DESCRIPTION: &str = "Offer a skill for hire, or withdraw it. Jobs come to your inbox; report each with \
    market_result. The schemas are JSON Schema, or {\"field\": \"type\"}.";

wire_object! {
    /// `market_offer`
    MarketOfferArgs, refuses unknown => {
        /// The skill's name.
        required skill_name: String = SkillOffer::SHAPE.check_of("skill_name");
        /// The price of a job, 0 for free. Needed unless you withdraw.
        nullable cost_per_call: Credits = SkillOffer::SHAPE.check_of("cost_per_call");
        /// What it does.
        nullable description: String = SkillOffer::SHAPE.check_of("description");
        /// The input it takes.
        nullable input_schema: Value = SkillOffer::SHAPE.check_of("input_schema");
        /// The output it gives.
        nullable output_schema: Value = SkillOffer::SHAPE.check_of("output_schema");
        /// true: end the offer.
        nullable withdraw: bool = FieldCheck::Bool;
    }
}

/// The state of the offer.
#[derive(Serialize, ToSchema)]
struct OfferState {
    skill_name: String,
    offered: bool,
}

async fn offer_skill(
    call: ToolCall,
    args: MarketOfferArgs,
) -> Result<ToolOutput<OfferState>, ToolError> {
    let hub = &call.state.hub;
    let skill_name = args.skill_name;
    let offered = args.withdraw != Some(true);
    if offered {
        let cost_per_call = args.cost_per_call.ok_or_else(|| {
            Error::invalid_field(
                "cost_per_call",
                "cost_per_call must be the price of one job",
            )
        })?;
        let offer = SkillOffer {
            skill_name: skill_name.clone(),
            description: args.description,
            cost_per_call,
            input_schema: args.input_schema,
            output_schema: args.output_schema,
        };
        skills::put_skill(&call.principal, hub, offer.without_empty_schemas()).await?;
    } else {
        skills::withdraw_skill(&call.principal, hub, &skill_name).await?;
    }
    let verb = if offered { "offered" } else { "withdrawn" };
    Ok(ToolOutput::new(
        format!("{skill_name} is {verb}"),
        OfferState {
            skill_name,
            offered,
        },
    ))
}
