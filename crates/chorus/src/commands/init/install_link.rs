//! Links that install the tools in an editor with one click (PLG-08).

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

/// The package that has the program for a machine without it.
const PACKAGE_NAME: &str = "chorushub";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LinkHost {
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
}

impl LinkHost {
    /// The link. A click works on machines without `chorus`, so npm fetches it there.
    pub fn format_link(self) -> String {
        match self {
            LinkHost::Cursor => {
                let config = BASE64_STANDARD.encode(server_entry().to_string());
                format!(
                    "cursor://anysphere.cursor-deeplink/mcp/install?name=chorus&config={}",
                    percent_encode(&config)
                )
            }
            LinkHost::Vscode => {
                let mut entry = server_entry();
                entry["name"] = json!("chorus");
                format!("vscode:mcp/install?{}", percent_encode(&entry.to_string()))
            }
        }
    }
}

/// It keeps running without credentials, and its tools then say what to run.
fn server_entry() -> Value {
    json!({ "command": "npx", "args": ["-y", PACKAGE_NAME, "mcp", "--from", "plugin"] })
}

/// Encodes everything but the unreserved characters of RFC 3986.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
