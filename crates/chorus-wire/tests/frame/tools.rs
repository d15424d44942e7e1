//! Test helpers: example submissions, changing one field of them, and asserting the outcome.

use chorus_wire::frame::{FrameError, FrameSubmission};
use serde_json::Value;
use std::{fs, path::Path};

pub fn example_text(kind: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/frame/examples/{kind}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{kind}: {error}"))
}

/// A valid submission of the kind, with every optional field.
pub fn example(kind: &str) -> Value {
    serde_json::from_str(&example_text(kind)).unwrap()
}

pub fn parse(body: &Value) -> Result<FrameSubmission, FrameError> {
    FrameSubmission::parse(body.to_string().as_bytes())
}

/// The parent node of a path such as `payload.question.options[1].label`, and the last step of the path.
fn parent<'v, 'p>(frame: &'v mut Value, path: &'p str) -> (&'v mut Value, &'p str) {
    let mut steps: Vec<&str> = path
        .split(['.', '[', ']'])
        .filter(|step| !step.is_empty())
        .collect();
    let last = steps.pop().unwrap();
    let node = steps
        .into_iter()
        .fold(frame, |node, step| match step.parse::<usize>() {
            Ok(index) => &mut node[index],
            Err(_) => &mut node[step],
        });
    (node, last)
}

/// The submission with one field of its frame set.
pub fn with(body: &Value, path: &str, value: Value) -> Value {
    let mut body = body.clone();
    let (node, last) = parent(&mut body["frame"], path);
    match last.parse::<usize>() {
        Ok(index) => node[index] = value,
        Err(_) => node[last] = value,
    }
    body
}

/// The submission without one field of its frame.
pub fn without(body: &Value, path: &str) -> Value {
    let mut body = body.clone();
    let (node, last) = parent(&mut body["frame"], path);
    node.as_object_mut()
        .unwrap()
        .remove(last)
        .unwrap_or_else(|| panic!("{path} is not in the example"));
    body
}

/// The code and field of the error.
pub fn refusal(body: &Value) -> (String, Option<String>) {
    match parse(body) {
        Ok(_) => panic!("accepted: {body}"),
        Err(error) => (error.code.to_string(), error.field),
    }
}

#[track_caller]
pub fn refused(body: &Value, code: &str, field: &str) {
    assert_eq!(
        refusal(body),
        (code.to_owned(), Some(field.to_owned())),
        "{body}"
    );
}

#[track_caller]
pub fn accepted(body: &Value) -> FrameSubmission {
    parse(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}
