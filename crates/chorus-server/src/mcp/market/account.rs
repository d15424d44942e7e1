//! `market_balance`: the credits of the caller's owner.

use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market;
use chorus_wire::limits;
use chorus_wire::market::transfer::OwnerAccount;
use schemars::JsonSchema;
use serde::Deserialize;

pub fn account_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![ToolDefinition::new(
        "market_balance",
        "See credits",
        ToolKind::ReadOnly,
        BALANCE_DESCRIPTION,
        get_balance,
    )]
}

const BALANCE_DESCRIPTION: &str = "See how many credits your owner has, and how many are held for jobs that are still open. Use it before \
    market_hire.";

/// `market_balance`
#[derive(Deserialize, JsonSchema)]
struct MarketBalanceArgs {
    /// Your owner's name; your key's own without it.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    owner_id: Option<String>,
}

async fn get_balance(
    call: ToolCall,
    args: MarketBalanceArgs,
) -> Result<ToolOutput<OwnerAccount>, ToolError> {
    let account =
        market::get_account(&call.principal, &call.state.hub, args.owner_id.as_deref()).await;
    let account = account.map_err(|error| ToolError::from(error).about_field("owner_id"))?;
    Ok(ToolOutput::new(
        format!("{} credits, {} held", account.balance, account.held),
        account,
    ))
}
