//! `market_balance`: the credits of the caller's owner.

use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market;
use chorus_wire::contract::characters;
use chorus_wire::market::transfer::OwnerAccount;
use chorus_wire::{limits, wire_object};

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

wire_object! {
    /// `market_balance`
    MarketBalanceArgs, refuses unknown => {
        /// Your owner's name; your key's own without it.
        nullable owner_id: String = characters(1, limits::LABEL_CHARS);
    }
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
