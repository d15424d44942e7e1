//! Parses amounts and JSON input from the command line.

use crate::fail::Fail;
use chorus_wire::credits::Credits;
use serde_json::Value;
use std::io::Read;

/// Parses an amount such as `0.15`.
pub fn parse_amount(text: &str) -> Result<Credits, String> {
    Credits::parse("an amount", text).map_err(|e| e.message)
}

/// Parses a price or a budget: an amount, or 0 for a free skill.
pub fn parse_price(text: &str) -> Result<Credits, String> {
    Credits::parse_price("an amount", text).map_err(|e| e.message)
}

/// Parses JSON: the argument itself, a file with `@FILE`, or standard input with `-`.
pub fn read_input(text: &str) -> Result<Value, Fail> {
    let json_text = match text.strip_prefix('@') {
        Some(file) => read_file(file)?,
        None if text == "-" => {
            let mut json_text = String::new();
            let read_error = |e| Fail::usage_error(format!("standard input: {e}"));
            std::io::stdin()
                .read_to_string(&mut json_text)
                .map_err(read_error)?;
            json_text
        }
        None => text.to_owned(),
    };
    chorus_wire::json::parse_value(&json_text)
        .map_err(|e| Fail::usage_error(format!("the input: {}", e.message)))
}

pub fn read_file(file: &str) -> Result<String, Fail> {
    std::fs::read_to_string(file).map_err(|e| Fail::usage_error(format!("{file}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_amounts_are_parsed_and_others_refused() {
        assert_eq!(parse_amount("0.15").unwrap().to_hundredths(), 15);
        for bad in ["0", "-1", "0.001", "1e3", "x", ""] {
            assert!(parse_amount(bad).is_err(), "{bad}");
        }
    }
}
