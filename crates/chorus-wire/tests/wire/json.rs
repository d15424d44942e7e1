//! Strict JSON and its canonical form: equal values have equal canonical texts (R-27, R-38, failure 17).

use chorus_wire::contract::parse_root;
use chorus_wire::json::{decode_utf8, parse_value, to_canonical_json};
use chorus_wire::limits::JSON_DEPTH;
use proptest::prelude::*;
use serde_json::Value;

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| Value::from(f64::from(n))),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Another spelling of the same value: keys reordered, blanks added, strings escaped, 2 written as 2.0.
fn respell(value: &Value, turn: usize) -> String {
    let blank = [" ", "\n", "\t ", ""][turn % 4];
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            let key_count = keys.len().max(1);
            keys.rotate_left(turn % key_count);
            keys.reverse();
            let fields: Vec<String> = keys
                .into_iter()
                .map(|key| {
                    format!(
                        "{blank}{}{blank}:{}",
                        respell(&Value::from(key.as_str()), turn),
                        respell(&map[key], turn + 1)
                    )
                })
                .collect();
            format!("{{{}{blank}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| respell(item, turn + 1)).collect();
            format!("[{blank}{}]", items.join(&format!("{blank},")))
        }
        Value::String(text) => {
            let escaped: String = text
                .encode_utf16()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect();
            format!("\"{escaped}\"")
        }
        Value::Number(number) if number.as_i64().is_some_and(|n| n.abs() < 1_000_000) => {
            format!("{number}.0{blank}")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("{blank}{value}"),
    }
}

/// Equal as JSON: numbers are compared by value.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.is_f64(), b.is_f64()) {
            (false, false) => a == b,
            _ => a.as_f64() == b.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        (a, b) => a == b,
    }
}

proptest! {
    #[test]
    fn a_printed_value_parses_back(v in values()) {
        prop_assert_eq!(parse_value(&v.to_string()).unwrap(), v);
    }

    // failure 17
    #[test]
    fn key_order_blanks_and_escapes_do_not_change_the_value(v in values(), turn in 0usize..9) {
        let text = respell(&v, turn);
        let parsed = parse_value(&text).unwrap();
        prop_assert!(is_equal(&parsed, &v), "{}", text);
        prop_assert_eq!(to_canonical_json(&parsed), to_canonical_json(&v));
    }

    #[test]
    fn values_are_equal_exactly_if_their_canonical_texts_are(a in values(), b in values()) {
        prop_assert_eq!(to_canonical_json(&a) == to_canonical_json(&b), is_equal(&a, &b));
        prop_assert!(is_equal(&parse_value(&to_canonical_json(&a)).unwrap(), &a));
    }

    // R-38
    #[test]
    fn a_duplicate_key_is_refused_at_any_depth(key in "[a-z]{1,3}", v in values(), depth in 0usize..6) {
        let twice = format!("{{\"{key}\":1,\"other\":{v},\"{key}\":1}}");
        let text = format!("{}{twice}{}", "[{\"in\":".repeat(depth), "}]".repeat(depth));
        prop_assert!(parse_value(&text).unwrap_err().message.contains(&key));
    }

    /// The parser accepts what `serde_json` accepts, with the same value, but for duplicate keys and depth.
    #[test]
    fn it_agrees_with_another_parser(text in r#"([\[\]{}:,"\\u0-9dD8cCeE+.tfn -]|true|false|null|"a"|"b":){0,24}"#) {
        let theirs = serde_json::from_str::<Value>(&text);
        match parse_value(&text) {
            Ok(ours) => prop_assert_eq!(Some(ours), theirs.ok(), "{}", text),
            Err(error) => prop_assert!(theirs.is_err() || error.message.contains("twice"), "{}: {}", text, error),
        }
    }

    #[test]
    fn no_bytes_break_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(text) = decode_utf8(&bytes) {
            let _ = parse_value(text);
        }
    }
}

#[test]
fn nesting_is_limited() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested =
            |depth: usize| parse_value(&format!("{}1{}", open.repeat(depth), close.repeat(depth)));
        assert!(nested(JSON_DEPTH).is_ok());
        assert!(
            nested(JSON_DEPTH + 1)
                .unwrap_err()
                .message
                .contains("nested")
        );
        assert!(parse_value(&open.repeat(200_000)).is_err());
    }
}

#[test]
fn a_body_that_is_not_one_utf8_json_value_is_refused() {
    assert!(decode_utf8(b"\xff\xfe").is_err() && decode_utf8(b"\xed\xa0\x80").is_err());
    for invalid in [
        "",
        " ",
        "{",
        "{}{}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "nul",
        "NaN",
        "01",
        "+1",
        "1.",
        "\"\\x\"",
        "\"\u{1}\"",
        "// a\n1",
    ] {
        assert!(parse_value(invalid).is_err(), "{invalid}");
    }
    for other in ["null", "[]", "1", "\"a\"", "true"] {
        assert!(parse_root(other.as_bytes()).is_err(), "{other}");
    }
}
