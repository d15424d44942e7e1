//! `chorus verify --envelope`: lists every fault of an envelope.

use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, output};
use chorus_wire::envelope::Envelope;
use chorus_wire::limits;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;

/// Valid values of the other fields when one field is checked, so that one fault never hides another.
const VALID_FIELDS: [(&str, &str); 4] = [
    ("chorus_version", chorus_wire::CHORUS_VERSION),
    ("sender_id", "ada@chorus"),
    ("original_text", "Good morning!"),
    ("sender_culture", "en"),
];

pub fn verify_envelope(common: &CommonArgs, source: &str) -> Result<(), Fail> {
    let text = read_source(source)?;
    let outcome = check_envelope(&text);
    let output = match &outcome {
        Ok(()) => json!({ "valid": true }),
        Err(EnvelopeFault::Json(message)) => json!({ "valid": false, "faults": [message] }),
        Err(EnvelopeFault::Rules(faults)) => json!({ "valid": false, "faults": faults }),
    };
    output::print_result(common.json, &output, || match &outcome {
        Ok(()) => format!(
            "{} Valid Chorus envelope",
            output::paint_text(output::GOOD_STYLE, "✓")
        ),
        Err(EnvelopeFault::Json(message)) => format!(
            "{} Invalid JSON: {}",
            output::paint_text(output::BAD_STYLE, "✗"),
            output::escape_controls(message)
        ),
        Err(EnvelopeFault::Rules(faults)) => {
            let lines = faults
                .iter()
                .map(|fault| format!("\n  - {}", output::escape_controls(fault)));
            format!(
                "{} Invalid envelope:{}",
                output::paint_text(output::BAD_STYLE, "✗"),
                lines.collect::<String>()
            )
        }
    });
    outcome.map_err(|_| Fail::already_reported(ExitKind::Usage))
}

enum EnvelopeFault {
    Json(String),
    Rules(Vec<String>),
}

/// The envelope's text: standard input, a file, or the argument itself, which need not be valid JSON.
fn read_source(source: &str) -> Result<String, Fail> {
    if source != "-" && !is_file_name(source) {
        return Ok(source.to_owned());
    }
    let max_bytes = limits::BODY_BYTES as u64;
    let mut text = String::new();
    let outcome = match source {
        "-" => std::io::stdin()
            .lock()
            .take(max_bytes)
            .read_to_string(&mut text),
        path => std::fs::File::open(path)
            .and_then(|file| file.take(max_bytes).read_to_string(&mut text)),
    };
    outcome
        .map(|_| text)
        .map_err(|e| Fail::usage_error(format!("{source}: {e}")))
}

/// Whether the argument names a file: one that exists, or a text that looks like the name of one.
fn is_file_name(source: &str) -> bool {
    let is_json_start = source.trim_start().starts_with(['{', '[', '"']);
    let has_name_form = source.ends_with(".json") || source.contains(std::path::MAIN_SEPARATOR);
    !is_json_start && (Path::new(source).is_file() || has_name_form)
}

fn check_envelope(text: &str) -> Result<(), EnvelopeFault> {
    let value: Value =
        serde_json::from_str(text).map_err(|e| EnvelopeFault::Json(e.to_string()))?;
    let first_fault = match Envelope::parse(text) {
        Ok(_) => return Ok(()),
        Err(error) => error.message,
    };
    let Value::Object(fields) = value else {
        return Err(EnvelopeFault::Rules(vec![first_fault]));
    };
    let mut faults: Vec<String> = VALID_FIELDS
        .iter()
        .filter_map(|(name, _)| check_field(&fields, name))
        .collect();
    let others = fields
        .keys()
        .filter(|key| VALID_FIELDS.iter().all(|(name, _)| name != key));
    faults.extend(others.filter_map(|name| check_field(&fields, name)));
    if !faults.contains(&first_fault) {
        // A fault of the whole text, such as a repeated field.
        faults.push(first_fault);
    }
    Err(EnvelopeFault::Rules(faults))
}

/// The fault of one field.
fn check_field(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let mut candidate: Map<String, Value> = VALID_FIELDS
        .iter()
        .map(|(name, text)| ((*name).into(), json!(text)))
        .collect();
    match fields.get(name) {
        Some(value) => candidate.insert(name.into(), value.clone()),
        None => candidate.remove(name),
    };
    Envelope::parse(&Value::Object(candidate).to_string())
        .err()
        .map(|error| error.message)
}
