//! Amounts and JSON as people type them.

use crate::fail::Fail;
use chorus_wire::market::credits::Credits;
use serde_json::Value;
use std::io::Read;

/// `0.15`
pub fn parse_amount(text: &str) -> Result<Credits, String> {
    Credits::parse("an amount", text).map_err(|e| e.message)
}

/// JSON as it stands, from a file with `@FILE`, or from standard input with `-`.
pub fn read_input(text: &str) -> Result<Value, Fail> {
    let read = match text.strip_prefix('@') {
        Some(file) => read_file(file)?,
        None if text == "-" => {
            let mut read = String::new();
            let wrong = |e| Fail::usage_error(format!("standard input: {e}"));
            std::io::stdin().read_to_string(&mut read).map_err(wrong)?;
            read
        }
        None => text.to_owned(),
    };
    chorus_wire::json::parse_value(&read)
        .map_err(|e| Fail::usage_error(format!("the input: {}", e.message)))
}

pub fn read_file(file: &str) -> Result<String, Fail> {
    std::fs::read_to_string(file).map_err(|e| Fail::usage_error(format!("{file}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_typed() {
        assert_eq!(parse_amount("0.15").unwrap().to_hundredths(), 15);
        for bad in ["0", "-1", "0.001", "1e3", "x", ""] {
            assert!(parse_amount(bad).is_err(), "{bad}");
        }
    }
}
