//! The text that receivers get: the frame as submitted, on one line (R-42).

use crate::rules::PAYLOADS;
use crate::tools::{example, example_text};
use chorus_wire::frame::{Frame, FrameSubmission};
use proptest::prelude::*;
use serde_json::Value;

fn submission_of(frame: &str) -> String {
    format!("{{\"frame\" : {frame} }}")
}

#[test]
fn a_frame_on_one_line_is_kept_byte_for_byte() {
    for (kind, _) in PAYLOADS {
        let frame = example(kind)["frame"].to_string();
        // Blanks, escapes and key order stay as the sender wrote them.
        let frame = frame
            .replacen("\"kind\":", " \"\\u006bind\"\t:  ", 1)
            .replace("~alice", "~\\u0061lice");
        let frame = frame.replacen('{', "{ ", 1);
        let read = FrameSubmission::parse(submission_of(&frame).as_bytes())
            .unwrap()
            .frame;
        assert_eq!(read.submitted_json(), frame);
        assert_eq!(read.kind().as_str(), kind);
        assert_eq!(
            Frame::parse(&format!("\n {frame} \r\n"))
                .unwrap()
                .submitted_json(),
            frame
        );
    }
}

#[test]
fn a_frame_on_several_lines_loses_only_its_blanks() {
    let spaced = r#"{ "advisory_text" : "a \" b \\ c\n d\u000a \\\" e" ,
        "branch": "two  blanks" }"#;
    let tight = r#"{"advisory_text":"a \" b \\ c\n d\u000a \\\" e","branch":"two  blanks"}"#;
    let frame = example("agent_advisory")["frame"].to_string();
    let payload = example("agent_advisory")["frame"]["payload"].to_string();
    let read = |payload_text: &str| {
        let frame = frame.replace(&payload, payload_text);
        FrameSubmission::parse(submission_of(&frame).as_bytes())
            .unwrap()
            .frame
    };
    assert_eq!(
        read(spaced).submitted_json(),
        frame.replace(&payload, tight)
    );
    assert_eq!(
        read(&spaced.replace('\n', "\r")).submitted_json(),
        frame.replace(&payload, tight)
    );
    for (kind, _) in PAYLOADS {
        let read = FrameSubmission::parse(example_text(kind).as_bytes())
            .unwrap()
            .frame;
        assert!(!read.submitted_json().contains(['\n', '\r']));
        assert_eq!(
            serde_json::from_str::<Value>(read.submitted_json()).unwrap(),
            example(kind)["frame"]
        );
    }
}

proptest! {
    // R-42: with any blanks, the kept text is one line and parses back to the same frame
    #[test]
    fn the_kept_text_parses_back_to_the_same_frame(
        blanks in prop::collection::vec("[ \t\r\n]{0,3}", 40),
        query in "\\PC{1,40}",
    ) {
        let mut value = example("agent_query");
        value["frame"]["payload"]["query_text"] = Value::String(format!("{query} \" \\ , : {{"));
        let mut next_blank = blanks.iter().cycle();
        let mut text = String::new();
        let mut in_string = false;
        let mut escaped = false;
        for c in value.to_string().chars() {
            let is_token = !in_string && matches!(c, '{' | '}' | '[' | ']' | ',' | ':');
            let blank = if is_token { next_blank.next().map_or("", String::as_str) } else { "" };
            text.push_str(blank);
            text.push(c);
            text.push_str(blank);
            in_string ^= c == '"' && !escaped;
            escaped = in_string && c == '\\' && !escaped;
        }
        let read = FrameSubmission::parse(text.as_bytes()).unwrap().frame;
        prop_assert!(!read.submitted_json().contains(['\n', '\r']));
        let again = Frame::parse(read.submitted_json()).unwrap();
        prop_assert_eq!(again.submitted_json(), read.submitted_json());
        prop_assert_eq!(again, read);
    }
}
