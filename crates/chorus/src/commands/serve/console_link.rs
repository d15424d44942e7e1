//! How a person at a terminal opens the console of a hub that has just started.

use crate::commands::console::format_link;
use chorus_hub::{Hub, identity};

/// The console's address: a single-use link for the operator if there is one, which is a secret and for terminals only.
pub async fn describe_console(hub: &Hub, url: &str) -> String {
    match identity::create_operator_link(hub.identity()).await {
        Ok(Some(link)) => format!(
            "{}  (signs the operator in once, within {} minutes)",
            format_link(url, &link.link_token),
            link.expires_in_seconds / 60,
        ),
        Ok(None) => format!("{url}  (chorus console signs you in)"),
        Err(error) => {
            tracing::warn!(%error, "no link to the console could be made");
            url.to_owned()
        }
    }
}
