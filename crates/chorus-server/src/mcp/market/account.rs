//! `market_balance` and `market_transfer`: the credits of the caller's owner, and payments to others.

use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market;
use chorus_wire::contract::characters;
use chorus_wire::credits::Credits;
use chorus_wire::market::transfer::{CreditTransfer, OwnerAccount};
use chorus_wire::{Error, ErrorCode, limits, wire_object};

pub fn account_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "market_balance",
            "See credits",
            ToolKind::ReadOnly,
            BALANCE_DESCRIPTION,
            get_balance,
        ),
        ToolDefinition::new(
            "market_transfer",
            "Pay credits",
            ToolKind::Sends,
            TRANSFER_DESCRIPTION,
            transfer_credits,
        ),
    ]
}

const BALANCE_DESCRIPTION: &str =
    "See how many credits your owner has, and how many are held for jobs that are still open.";

wire_object! {
    /// `market_balance`
    MarketBalanceArgs, refuses unknown => {
        /// Your key's owner without it.
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

const TRANSFER_DESCRIPTION: &str = "Pay credits of your owner to another owner. Jobs hired with market_hire are paid by the hub: do not pay them again.";

wire_object! {
    /// `market_transfer`
    MarketTransferArgs, refuses unknown => {
        /// Who is paid.
        required to_owner: String = CreditTransfer::SHAPE.check_of("to_owner");
        /// In credits.
        required amount: Credits = CreditTransfer::SHAPE.check_of("amount");
        /// The job that it pays for, if any.
        nullable job_id: String = CreditTransfer::SHAPE.check_of("job_id");
        /// A UUID of yours: a repeated call pays once.
        nullable transfer_id: String = CreditTransfer::SHAPE.check_of("transfer_id");
    }
}

async fn transfer_credits(
    call: ToolCall,
    args: MarketTransferArgs,
) -> Result<ToolOutput<OwnerAccount>, ToolError> {
    let hub = &call.state.hub;
    let account = market::get_account(&call.principal, hub, None).await?;
    if account.owner_id == args.to_owner {
        let message = "to_owner must be another than your own";
        return Err(Error::invalid_field("to_owner", message).into());
    }
    let transfer = CreditTransfer {
        transfer_id: args
            .transfer_id
            .unwrap_or_else(|| chorus_hub::random::new_id().to_string()),
        from_owner: account.owner_id,
        to_owner: args.to_owner,
        amount: args.amount,
        job_id: args.job_id,
        timestamp_utc: None,
    };
    let fields = [
        (ErrorCode::NotFound, "to_owner"),
        (ErrorCode::TransferFailed, "amount"),
        (ErrorCode::JobSettled, "job_id"),
        (ErrorCode::TransferConflict, "transfer_id"),
    ];
    let summary = format!("paid {} to {}", transfer.amount, transfer.to_owner);
    market::transfer_credits(&call.principal, hub, transfer)
        .await
        .map_err(|error| ToolError::from_hub_error(error, &fields))?;
    let account = market::get_account(&call.principal, hub, None).await?;
    Ok(ToolOutput::new(summary, account))
}
