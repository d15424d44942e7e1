//! `chorus status`: where a message stands.

use crate::{cli::Common, fail::Fail, out, session::Session};

#[derive(Debug, clap::Args)]
pub struct Args {
    trace_id: String,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let session = Session::open(common)?;
    let standing = session.client.standing(&args.trace_id).await?;
    out::say(common.json, &standing, || {
        let mut text = format!(
            "{} from {} to {}, sent {}",
            out::painted(out::STRONG, &standing.status),
            out::harmless(&standing.sender_id),
            out::harmless(&standing.receiver_id),
            out::seconds(&standing.sent_at.to_string()),
        );
        if let Some(at) = standing.acknowledged_at.or(standing.delivered_at) {
            text.push_str(&format!(
                ", {} {}",
                standing.status,
                out::seconds(&at.to_string())
            ));
        }
        if let Some(response) = &standing.receiver_response {
            text.push_str(&format!(
                "\nreceiver: {}",
                out::harmless(&response.to_string())
            ));
        }
        if let Some(code) = &standing.error_code {
            let detail = standing.detail.as_deref().unwrap_or_default();
            text.push_str(&format!(
                "\n{}: {}",
                out::harmless(code),
                out::harmless(detail)
            ));
        }
        text
    });
    Ok(())
}
