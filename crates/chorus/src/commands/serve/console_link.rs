//! Prints how to open the console when a hub starts on a terminal.

use crate::commands::console::format_link;
use crate::output;
use chorus_hub::{Hub, identity};
use std::io::IsTerminal;

/// Prints a single-use link for the operator, if there is one. Only on a terminal: the output of a service is kept in a log,
/// and a link is a secret.
pub async fn print_console_link(hub: &Hub, url: &str) {
    if !std::io::stdout().is_terminal() {
        return;
    }
    match identity::create_operator_link(hub.identity()).await {
        Ok(Some(link)) => output::print_line(&format!(
            "console, signed in as the operator (once, within {} minutes):\n  {}",
            link.expires_in_seconds / 60,
            format_link(url, &link.link_token)
        )),
        Ok(None) => output::print_line(&format!(
            "console: {url}/console, signed in by chorus console"
        )),
        Err(error) => tracing::warn!(%error, "no link to the console could be made"),
    }
}
