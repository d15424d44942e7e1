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
        if let Some(at) = status.acknowledged_at.or(status.delivered_at) {
            text.push_str(&format!(
                ", {} {}",
                status.status,
                output::whole_seconds(&at.to_string())
            ));
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
