//! The examples printed in the protocol documents, read from files shared by the workspace.

use serde_json::Value;

/// The JSON of one printed example, `document/section-what.ext`; of a printed request, its body.
pub fn example(name: &str) -> Value {
    let path = format!(
        "{}/../chorus-wire/tests/examples/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let body = if name.ends_with(".http") {
        &text[text.find('{').expect("a body")..]
    } else {
        &text
    };
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{path}: {e}"))
}
