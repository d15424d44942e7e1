//! The commands of a page and what it says that they print.

/// A command in a page, with the lines that the page prints below it.
pub struct Step {
    pub command: String,
    pub printed: Vec<String>,
}

/// The commands in the `console` blocks of a text: `$ ` starts a command, `> ` continues it, the other lines are its output.
pub fn parse_steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (
                line.strip_prefix("$ "),
                line.strip_prefix("> "),
                steps.last_mut(),
            ) {
                (Some(command), _, _) => steps.push(Step {
                    command: command.into(),
                    printed: vec![],
                }),
                (None, Some(more), Some(step)) => {
                    step.command = format!("{}\n{more}", step.command)
                }
                (None, None, Some(step)) => step.printed.push(line.into()),
                (None, _, None) => panic!("output before any command: {line}"),
            },
        }
    }
    steps
}

/// The languages of the fenced blocks of a text, in order.
pub fn fence_languages(text: &str) -> Vec<&str> {
    let fences = text.lines().filter_map(|line| line.strip_prefix("```"));
    fences.step_by(2).collect()
}

/// Replaces ids and times, which differ from run to run, by placeholders.
fn normalize_line(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let word = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)))
            .unwrap_or(rest.len());
        if word == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let is_remaining_time = rest[word..].starts_with(" left");
        out.push_str(&match is_remaining_time {
            true => "<time>".to_owned(),
            false => normalize_word(&rest[..word]),
        });
        rest = &rest[word..];
    }
    out.trim_end().to_owned()
}

fn normalize_word(word: &str) -> String {
    let bare = word.trim_end_matches([':', '.']);
    let shape: String = bare
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let uuid = bare.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && bare.split('-').all(hex);
    let normalized = if uuid {
        "<id>"
    } else if shape.starts_with("0000-00-00T00:00:00") {
        "<time>"
    } else if shape == "00:00:00" {
        "<clock>"
    } else {
        bare
    };
    format!("{normalized}{}", &word[bare.len()..])
}

/// Whether `line` matches the page, where each `…` matches any text.
pub fn lines_match(expected: &str, line: &str) -> bool {
    let expected = normalize_line(expected);
    let line = normalize_line(line);
    let parts: Vec<&str> = expected.split('…').collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return false;
    };
    if parts.len() == 1 {
        return expected == line;
    }
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether the output matches; a line that is only `…` matches any number of lines.
fn output_matches(expected: &[String], printed: &[String]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((line, rest)), _) if line == "…" => {
            (0..=printed.len()).any(|skipped| output_matches(rest, &printed[skipped..]))
        }
        (Some((line, rest)), Some((first, others))) => {
            lines_match(line, first) && output_matches(rest, others)
        }
        _ => false,
    }
}

pub fn check_output(step: &Step, printed: &[String]) {
    assert!(
        output_matches(&step.printed, printed),
        "$ {}\n--- page ---\n{}\n--- printed ---\n{}",
        step.command,
        step.printed.join("\n"),
        printed.join("\n")
    );
}

#[test]
fn ids_and_times_are_not_compared_and_everything_else_is() {
    let a = "10:31:07 0198f2c4-7a41-7c1e-8000-000000000001 at 2026-03-20T10:00:00.000123Z queued";
    let b = "23:59:59 01990000-0000-7000-8000-00000000abcd at 2027-01-01T00:00:00.9Z queued";
    assert!(lines_match(a, b));
    assert!(!lines_match(a, &b.replace("queued", "delivered")));
    assert!(lines_match(
        "kept in …/alice.json",
        "kept in /tmp/x/alice.json"
    ));
    assert!(!lines_match(
        "kept in …/alice.json",
        "kept in /tmp/x/bob.json"
    ));
    assert!(lines_match("{\"data\":…", "{\"data\":1}"));
    assert!(!lines_match("{\"data\":…", "{\"error\":1}"));
    assert!(lines_match(
        "for 5m00s, 4m59s left",
        "for 5m00s, 4m57s left"
    ));
    assert!(!lines_match(
        "for 5m00s, 4m59s left",
        "for 9m00s, 4m59s left"
    ));
    assert!(lines_match("a … c … e", "a b c d e"));
    assert!(!lines_match("a … c … e", "a b d e"));
}

#[test]
fn a_line_of_dots_stands_for_any_number_of_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(output_matches(&lines("a\n…\nd"), &lines("a\nb\nc\nd")));
    assert!(output_matches(&lines("a\n…"), &lines("a")));
    assert!(!output_matches(&lines("a\n…\nd"), &lines("a\nb")));
    assert!(!output_matches(&lines("a"), &lines("a\nb")));
}
