//! `chorus status`: prints the delivery state of a message.

use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};

#[derive(Debug, clap::Args)]
pub struct Args {
    trace_id: String,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    let status = session.client.fetch_message_status(&args.trace_id).await?;
    output::print_result(common.json, &status, || {
        let mut text = format!(
            "{} from {} to {}, sent {}",
            output::paint_text(output::STRONG_STYLE, &status.status),
            output::escape_controls(&status.sender_id),
            output::escape_controls(&status.receiver_id),
            output::whole_seconds(&status.sent_at.to_string()),
        );
        let facts = [
            ("delivered", status.delivered_at),
            ("shown", status.shown_at),
            ("acknowledged", status.acknowledged_at),
        ];
        for (fact, at) in facts {
            if let Some(at) = at {
                let at = at.to_string();
                text.push_str(&format!(", {fact} {}", output::whole_seconds(&at)));
            }
        }
        if let Some(response) = &status.receiver_response {
            text.push_str(&format!(
                "\nreceiver: {}",
                output::escape_controls(&response.to_string())
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
