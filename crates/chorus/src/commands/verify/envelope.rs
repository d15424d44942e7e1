//! Every fault of an envelope, each in one line.

use crate::fail::{Exit, Fail};
use crate::{cli::Common, out};
use chorus_wire::envelope::Envelope;
use chorus_wire::limits;
use serde_json::{Map, Value, json};
use std::io::Read;

/// Each field beside others that are good, so that one fault never hides another.
const GOOD: [(&str, &str); 4] = [
    ("chorus_version", chorus_wire::CHORUS_VERSION),
    ("sender_id", "ada@chorus"),
    ("original_text", "Good morning!"),
    ("sender_culture", "en"),
];

pub fn run(common: &Common, source: &str) -> Result<(), Fail> {
    let text = read(source)?;
    let verdict = judge(&text);
    let said = match &verdict {
        Ok(()) => json!({ "valid": true }),
        Err(Fault::Json(why)) => json!({ "valid": false, "faults": [why] }),
        Err(Fault::Rules(faults)) => json!({ "valid": false, "faults": faults }),
    };
    out::say(common.json, &said, || match &verdict {
        Ok(()) => format!("{} Valid Chorus envelope", out::painted(out::GOOD, "✓")),
        Err(Fault::Json(why)) => format!(
            "{} Invalid JSON: {}",
            out::painted(out::BAD, "✗"),
            out::harmless(why)
        ),
        Err(Fault::Rules(faults)) => {
            let lines = faults
                .iter()
                .map(|fault| format!("\n  - {}", out::harmless(fault)));
            format!(
                "{} Invalid envelope:{}",
                out::painted(out::BAD, "✗"),
                lines.collect::<String>()
            )
        }
    });
    verdict.map_err(|_| Fail::told(Exit::Usage))
}

enum Fault {
    Json(String),
    Rules(Vec<String>),
}

/// JSON begins with a brace; no file's name that anybody types does.
fn read(source: &str) -> Result<String, Fail> {
    if source.trim_start().starts_with('{') {
        return Ok(source.to_owned());
    }
    let most = limits::BODY_BYTES as u64;
    let mut text = String::new();
    let outcome = match source {
        "-" => std::io::stdin().lock().take(most).read_to_string(&mut text),
        path => {
            std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text))
        }
    };
    outcome
        .map(|_| text)
        .map_err(|e| Fail::usage(format!("{source}: {e}")))
}

fn judge(text: &str) -> Result<(), Fault> {
    let value: Value = serde_json::from_str(text).map_err(|e| Fault::Json(e.to_string()))?;
    let whole = match Envelope::parse(text) {
        Ok(_) => return Ok(()),
        Err(error) => error.message,
    };
    let Value::Object(fields) = value else {
        return Err(Fault::Rules(vec![whole]));
    };
    let mut faults: Vec<String> = GOOD
        .iter()
        .filter_map(|(name, _)| alone(&fields, name))
        .collect();
    let others = fields
        .keys()
        .filter(|key| GOOD.iter().all(|(name, _)| name != key));
    faults.extend(others.filter_map(|name| alone(&fields, name)));
    if !faults.contains(&whole) {
        // What only the whole text shows, such as a field given twice.
        faults.push(whole);
    }
    Err(Fault::Rules(faults))
}

/// What is wrong with one field.
fn alone(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let mut other: Map<String, Value> = GOOD
        .iter()
        .map(|(name, text)| ((*name).into(), json!(text)))
        .collect();
    match fields.get(name) {
        Some(value) => other.insert(name.into(), value.clone()),
        None => other.remove(name),
    };
    Envelope::parse(&Value::Object(other).to_string())
        .err()
        .map(|error| error.message)
}
