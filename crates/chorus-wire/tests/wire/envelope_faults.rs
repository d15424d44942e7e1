//! Every field of the envelope: missing, null, of another type, at its limit, beyond it, duplicate, unknown (ENV-01…09,
//! ENV-23, R-20, R-38).

use chorus_wire::ErrorCode;
use chorus_wire::envelope::Envelope;

struct Field {
    name: &'static str,
    required: bool,
    sample: &'static str,
    accepted: Vec<String>,
    refused: Vec<String>,
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// A text of `count` code points: one of four bytes, combining marks and letters. Its counts of bytes and graphemes differ.
fn code_points(count: usize) -> String {
    quoted(&"🎼e\u{301}".chars().cycle().take(count).collect::<String>())
}

fn quoted_all(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| quoted(text)).collect()
}

fn names() -> [Field; 2] {
    let longest = format!("{}@{}", "a".repeat(64), "b".repeat(63));
    let malformed = [
        "", "a", "@", "a@", "@b", "a@b@c", "a b@c", "a@b/c", "á@b", "~a", " a@b", "a@b\n", "a:1@b",
    ];
    let too_long = format!("{longest}c");
    [
        Field {
            name: "chorus_version",
            required: true,
            sample: r#""0.4""#,
            accepted: quoted_all(&["0.4"]),
            refused: quoted_all(&["", "0.3", "0.5", "0.40", "0.4 ", "1"]),
        },
        Field {
            name: "sender_id",
            required: true,
            sample: r#""alice@chorus""#,
            accepted: quoted_all(&["a@b", "A.b_c-9@X.y-z_0", &longest, "-@.", "_@_"]),
            refused: quoted_all(&[&malformed[..], &[&too_long]].concat()),
        },
    ]
}

fn texts() -> [Field; 3] {
    [
        Field {
            name: "original_text",
            required: true,
            sample: r#""hello""#,
            accepted: vec![
                code_points(1),
                code_points(10_000),
                quoted("\u{0}"),
                quoted(" "),
            ],
            refused: vec![
                code_points(0),
                code_points(10_001),
                quoted(&"a".repeat(10_001)),
            ],
        },
        Field {
            name: "cultural_context",
            required: false,
            sample: r#""an invitation among friends""#,
            accepted: vec![code_points(10), code_points(500)],
            refused: vec![code_points(0), code_points(9), code_points(501)],
        },
        Field {
            name: "conversation_id",
            required: false,
            sample: r#""c1""#,
            accepted: vec![code_points(0), code_points(1), code_points(64)],
            refused: vec![code_points(65), quoted(&"a".repeat(65))],
        },
    ]
}

fn tag_and_turn() -> [Field; 2] {
    let too_long = format!("en-{}", ["abcdefgh"; 8].join("-"));
    let malformed = [
        "",
        "e",
        "english",
        "x-a",
        "en_US",
        "zh-",
        "-zh",
        "日本",
        "en ",
        " en",
        "i-klingon",
        &too_long,
    ];
    let numbers = [
        "0",
        "-1",
        "1.5",
        "\"1\"",
        "1e400",
        "9223372036854775808",
        "1e30",
        "-0.0",
        "1e-1",
    ];
    [
        Field {
            name: "sender_culture",
            required: true,
            sample: r#""zh-CN""#,
            accepted: quoted_all(&[
                "en",
                "yue",
                "EN-us",
                "zh-Hant-TW",
                "es-419",
                "zh-cmn-Hans-CN",
                "en-x-a",
            ]),
            refused: quoted_all(&malformed),
        },
        Field {
            name: "turn_number",
            required: false,
            sample: "7",
            accepted: ["1", "2.0", "3e2", "9223372036854775807"]
                .map(str::to_owned)
                .to_vec(),
            refused: numbers.map(str::to_owned).to_vec(),
        },
    ]
}

fn fields() -> Vec<Field> {
    names()
        .into_iter()
        .chain(texts())
        .chain(tag_and_turn())
        .collect()
}

/// A valid envelope with the field `name` replaced by `replacement`, a list of keys and values.
fn envelope(name: &str, replacement: &[(&str, &str)]) -> String {
    let mut parts = Vec::new();
    for field in fields() {
        if field.name == name {
            parts.extend(
                replacement
                    .iter()
                    .map(|(key, value)| format!("\"{key}\":{value}")),
            );
        } else {
            parts.push(format!("\"{}\":{}", field.name, field.sample));
        }
    }
    format!("{{{}}}", parts.join(","))
}

fn refused(text: &str, expected: &str) {
    let error = Envelope::parse(text).expect_err(text);
    assert_eq!(error.code, ErrorCode::Validation);
    assert!(
        error.message.contains(expected),
        "{} should contain {expected}",
        error.message
    );
}

fn accepted(text: &str) {
    if let Err(error) = Envelope::parse(text) {
        panic!("{error}: {text}");
    }
}

#[test]
fn a_missing_field_is_refused_by_name_unless_it_is_optional() {
    for field in fields() {
        let without = envelope(field.name, &[]);
        if field.required {
            refused(&without, field.name);
        } else {
            accepted(&without);
        }
    }
}

// R-38
#[test]
fn null_and_other_types_are_refused_by_name() {
    for field in fields() {
        for value in [
            "null",
            "true",
            "false",
            "-1",
            "1.5",
            "[]",
            "{}",
            "[\"en\"]",
            "{\"a\":[1,{}]}",
        ] {
            let path = field.name;
            refused(&envelope(field.name, &[(field.name, value)]), path);
        }
    }
}

// ENV-23: lengths are code points
#[test]
fn values_at_their_limits_are_accepted_and_beyond_them_refused_by_name() {
    for field in fields() {
        for value in &field.accepted {
            accepted(&envelope(field.name, &[(field.name, value)]));
        }
        for value in &field.refused {
            let text = envelope(field.name, &[(field.name, value)]);
            // A number that overflows is already invalid JSON.
            let expected = if value == "1e400" { "JSON" } else { field.name };
            refused(&text, expected);
        }
    }
}

// R-38: two parsers would disagree about which value counts
#[test]
fn a_field_given_twice_is_refused_by_name_even_with_the_same_value() {
    for field in fields() {
        let twice = [(field.name, field.sample), (field.name, field.sample)];
        refused(&envelope(field.name, &twice), field.name);
        // The same key, written with an escape.
        let escaped = format!(
            "\\u{:04x}{}",
            u32::from(field.name.as_bytes()[0]),
            &field.name[1..]
        );
        refused(
            &envelope(
                field.name,
                &[(field.name, field.sample), (&escaped, field.sample)],
            ),
            field.name,
        );
    }
}

// R-20, ENV-09
#[test]
fn an_unknown_field_is_refused_by_name() {
    for field in fields() {
        for unknown in [
            "receiver_id",
            "Sender_id",
            "sender_id ",
            "",
            "personality",
            "chorus_version\\u0000",
        ] {
            let text = envelope(field.name, &[(field.name, field.sample), (unknown, "1")]);
            refused(&text, "is not a field of this object");
        }
    }
}

#[test]
fn a_text_that_is_not_one_json_object_is_refused() {
    let valid = envelope("", &[]);
    accepted(&valid);
    accepted(&format!(" \n\t{valid}\r\n"));
    for text in [
        "",
        " ",
        "null",
        "[]",
        "\"envelope\"",
        "1",
        "{",
        "{}",
        "{\"chorus_version\":\"0.4\"",
        "\u{feff}{}",
    ] {
        assert_eq!(
            Envelope::parse(text).expect_err(text).code,
            ErrorCode::Validation
        );
    }
    for text in [
        format!("{valid}{valid}"),
        format!("{valid},"),
        format!("[{valid}]"),
        valid.replace('"', "'"),
    ] {
        assert_eq!(
            Envelope::parse(&text).expect_err(&text).code,
            ErrorCode::Validation
        );
    }
    refused(
        &envelope("original_text", &[("original_text", "\"\\ud800\"")]),
        "JSON",
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Envelope::parse(&envelope("original_text", &[("original_text", &deep)])).is_err());
}
