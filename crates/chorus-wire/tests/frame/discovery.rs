//! The published schemas of frames match the checks.

use crate::rules::{FRAME, PAYLOADS, Rule};
use crate::tools::example;
use chorus_wire::frame::{FrameKind, describe_capabilities, payload_schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn names(value: &Value) -> BTreeSet<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_payload_is_published_with_its_fields_and_which_are_required() {
    let published = describe_capabilities();
    for (kind, rows) in PAYLOADS {
        let shape = &published["payloads"][kind];
        assert_eq!(shape, &payload_schema(FrameKind::parse(kind).unwrap()));
        let fields: BTreeSet<String> = shape["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(fields, rows.iter().map(|row| row.0.to_owned()).collect());
        let required = rows
            .iter()
            .filter(|row| row.1)
            .map(|row| row.0.to_owned())
            .collect();
        assert_eq!(names(&shape["required"]), required, "{kind}");
        assert_eq!(shape["additionalProperties"], json!(false));
        for (field, _, rule) in rows {
            let shape = &shape["properties"][field];
            match rule {
                Rule::Octets(min, max) => {
                    assert_eq!(
                        (&shape["x-max-octets"], &shape["minLength"]),
                        (&json!(max), &json!(min))
                    );
                }
                Rule::OneOf(texts) => {
                    assert_eq!(
                        names(&shape["enum"]),
                        texts.iter().map(|text| (*text).into()).collect()
                    )
                }
                Rule::Integer(min, max) => {
                    assert_eq!(
                        (&shape["minimum"], &shape["maximum"]),
                        (&json!(min), &json!(max))
                    );
                }
                Rule::Texts(min, _, max) => {
                    assert_eq!(
                        (&shape["minItems"], &shape["maxItems"]),
                        (&json!(min), &json!(256))
                    );
                    assert_eq!(shape["items"]["x-max-octets"], json!(max));
                }
                Rule::Bool => assert_eq!(shape["type"], "boolean"),
                Rule::Uuid4 => assert_eq!(shape["format"], "uuid"),
                Rule::Time => assert_eq!(shape["format"], "date-time"),
                Rule::Nested => assert_eq!(shape["type"], "object"),
                Rule::Handle
                | Rule::Sovereign
                | Rule::Drafter
                | Rule::Class
                | Rule::Scope
                | Rule::SameAsFrame => {
                    assert_eq!(shape["type"], "string");
                }
            }
        }
    }
    let mut frame: BTreeSet<String> = FRAME.iter().map(|row| row.0.to_owned()).collect();
    frame.extend(["envelope_version", "kind", "payload"].map(String::from));
    let fields: BTreeSet<String> = published["frame"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(fields, frame);
}

#[test]
fn kinds_scopes_axes_and_bounds_are_published() {
    let published = describe_capabilities();
    assert_eq!(published["envelope_version"], "1.0");
    assert_eq!(published["kinds"].as_array().unwrap().len(), 15);
    assert_eq!(
        published["scopes"].as_array().unwrap().len(),
        7,
        "one per form of the draft"
    );
    assert_eq!(
        published["filter_axes"],
        json!(["kind", "sender", "content_type", "tool", "org"])
    );
    assert_eq!(published["limits"]["frame_bytes"], json!(65_536));
    assert_eq!(published["limits"]["expansion"], json!(10_000));
    assert_eq!(published["limits"]["clock_skew_seconds"], json!(86_400));
}

// Clients rely on the published schema, so it must cover at least the examples.
#[test]
fn every_field_of_every_example_is_published() {
    for kind in FrameKind::ALL {
        let frame = &example(kind.as_str())["frame"];
        let shape = payload_schema(*kind);
        for (field, _) in frame["payload"].as_object().unwrap() {
            assert!(shape["properties"].get(field).is_some(), "{kind} {field}");
        }
    }
}
