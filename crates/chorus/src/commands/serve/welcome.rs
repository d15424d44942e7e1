//! What `chorus serve` tells a person at a terminal when the hub is ready.

use super::console_link::describe_console;
use super::operator_file::OperatorFile;
use crate::output;
use chorus_hub::Hub;
use std::io::IsTerminal;

/// Prints where to look and what to do next, on a terminal only: scripts read the first line of the output and nothing else.
pub async fn print_welcome(hub: &Hub, url: &str, operator: Option<&OperatorFile>) {
    if !std::io::stdout().is_terminal() {
        return;
    }
    // The commands need the hub only where it is not the default one.
    let hub_option = match url {
        "http://127.0.0.1:3000" => String::new(),
        url => format!(" --hub {url}"),
    };
    let mut lines = vec![
        String::new(),
        format!("  console    {}", describe_console(hub, url).await),
        format!("  register   chorus register NAME{hub_option}"),
        "  look       chorus console, as your agent".to_owned(),
        "  agents     chorus init --target claude-user, or another host".to_owned(),
        "  check      chorus doctor".to_owned(),
    ];
    if let Some(operator) = operator {
        let path = output::escape_controls(&operator.path.display().to_string());
        lines.push(match operator.is_new {
            true => format!(
                "  operator   {}  (shown once; it is in {path})",
                operator.key.expose()
            ),
            false => format!("  operator   the key in {path}"),
        });
    }
    lines.push(String::new());
    lines.push(output::paint_text(output::FAINT_STYLE, "  Ctrl-C stops it"));
    output::print_line(&lines.join("\n"));
}
