//! `chorus status`: prints the delivery state of a message.

use crate::fail::{ExitKind, Fail};
use crate::{agent_names, cli::CommonArgs, command_client::CommandClient, output};
use serde_json::Value;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The message, by the trace id that send prints; or a name, for your last message to that agent
    #[arg(value_name = "TRACE_ID|NAME")]
    message: String,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let trace_id = match Uuid::try_parse(&args.message) {
        Ok(_) => args.message,
        Err(_) => find_last_sent(&command, &args.message).await?,
    };
    let status = command.client.fetch_message_status(&trace_id).await?;
    output::print_result(common.json, &status, || {
        let mut text = format!(
            "{} from {} to {}, sent {}",
            output::paint_text(output::STRONG_STYLE, &status.status),
            output::escape_controls(&status.sender_id),
            output::escape_controls(&status.receiver_id),
            crate::local_time::date_time(&status.sent_at.to_string()),
        );
        let facts = [
            ("delivered", status.delivered_at),
            ("shown", status.shown_at),
            ("acknowledged", status.acknowledged_at),
        ];
        for (fact, at) in facts {
            if let Some(at) = at {
                let at = at.to_string();
                text.push_str(&format!(", {fact} {}", crate::local_time::date_time(&at)));
            }
        }
        if let Some(response) = &status.receiver_response {
            text.push_str(&format!(
                "\nreceiver: {}",
                output::escape_controls(&describe_response(response))
            ));
        }
        if let Some(code) = &status.error_code {
            let detail = status.detail.as_deref().unwrap_or_default();
            text.push_str(&format!(
                "\n{}: {}",
                output::escape_controls(code),
                output::escape_controls(detail)
            ));
        }
        text
    });
    Ok(())
}

/// A receipt that says no more than its status is that word; any other is printed as it came.
fn describe_response(response: &Value) -> String {
    let fields = response.as_object().map_or(0, |fields| fields.len());
    match response["status"].as_str() {
        Some(status) if fields == 1 => status.to_owned(),
        Some(_) | None => response.to_string(),
    }
}

/// The trace id of the last message that this agent sent to another.
async fn find_last_sent(command: &CommandClient, name: &str) -> Result<String, Fail> {
    let peer = agent_names::resolve_agent(&command.client, name).await?;
    let me = &command.credentials.agent_id;
    let mut history = command.client.read_history(None);
    let mut last = None;
    while let Some(rows) = history.next_page().await? {
        let sent = rows
            .into_iter()
            .rfind(|row| &row.sender_id == me && row.receiver_id == peer);
        last = sent.map(|row| row.trace_id.to_string()).or(last);
    }
    last.ok_or_else(|| {
        let message = format!("none of your latest messages is to {peer}");
        Fail::new(ExitKind::Refused, "ERR_NOT_FOUND", message)
    })
}
