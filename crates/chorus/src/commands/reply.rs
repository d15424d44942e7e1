//! `chorus reply`: the receiver's answer to a message that came by stream (SKL-16, R-34).

use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_wire::message::ReceiverReply;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    trace_id: String,
    status: Status,
    /// Why not, for `error`: INVALID_ENVELOPE, UNSUPPORTED_VERSION or ADAPTATION_FAILED
    #[arg(long, required_if_eq("status", "error"))]
    code: Option<String>,
    /// What was wrong, for `error`
    #[arg(long)]
    detail: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Status {
    Ok,
    Error,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let reply = match args.status {
        Status::Ok if args.code.is_some() || args.detail.is_some() => {
            return Err(Fail::usage("--code and --detail belong to an error"));
        }
        Status::Ok => ReceiverReply::ok(),
        Status::Error => ReceiverReply {
            status: "error".into(),
            error_code: args.code,
            detail: args.detail,
        },
    };
    let session = Session::open(common)?;
    session.client.respond(&args.trace_id, &reply).await?;
    let said = json!({ "trace_id": args.trace_id, "response": reply });
    out::say(common.json, &said, || {
        format!(
            "answered {} with {}",
            out::harmless(&args.trace_id),
            reply.status
        )
    });
    Ok(())
}
