//! `chorus reply`: sends the receiver's reply to a message that came by stream (SKL-16, R-34).

use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_wire::message::ReceiverReply;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    trace_id: String,
    status: ReplyStatus,
    /// The error code, for `error`: INVALID_ENVELOPE, UNSUPPORTED_VERSION or ADAPTATION_FAILED
    #[arg(long, required_if_eq("status", "error"))]
    code: Option<String>,
    /// What was wrong, for `error`
    #[arg(long)]
    detail: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ReplyStatus {
    Ok,
    Error,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let reply = match args.status {
        ReplyStatus::Ok if args.code.is_some() || args.detail.is_some() => {
            return Err(Fail::usage_error("--code and --detail belong to an error"));
        }
        ReplyStatus::Ok => ReceiverReply::ok(),
        ReplyStatus::Error => ReceiverReply {
            status: "error".into(),
            error_code: args.code,
            detail: args.detail,
        },
    };
    let command = CommandClient::open(common)?;
    command.client.send_response(&args.trace_id, &reply).await?;
    let output = json!({ "trace_id": args.trace_id, "response": reply });
    output::print_result(common.json, &output, || {
        format!(
            "acknowledged {} with {}",
            output::escape_controls(&args.trace_id),
            reply.status
        )
    });
    Ok(())
}
