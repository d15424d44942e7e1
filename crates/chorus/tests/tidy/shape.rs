//! The shape of files: how long, how they open, what they may be called, and nothing left unfinished in them.

use crate::source::{Fault, Source};
use crate::{keep, proves};

const LINES: usize = 500;

fn length(source: &Source) -> Vec<Fault> {
    let lines = source.text.lines().count();
    if !source.is_rust() || lines <= LINES {
        if source.is_rust() && lines > LINES * 4 / 5 {
            println!(
                "near the limit of {LINES} lines: {} has {lines}",
                source.path
            );
        }
        return Vec::new();
    }
    vec![source.fault(
        lines,
        format!("{lines} lines, more than {LINES}: it is two modules"),
    )]
}

#[test]
fn no_file_is_longer_than_500_lines() {
    keep(length);
    proves(
        length,
        "a.rs",
        &"x\n".repeat(LINES + 1),
        &"x\n".repeat(LINES),
    );
}

fn opening(source: &Source) -> Vec<Fault> {
    let opens = source.text.starts_with("//! ");
    if !source.is_rust() || opens {
        Vec::new()
    } else {
        vec![source.fault(1, "does not open with a //! sentence")]
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    keep(opening);
    proves(
        opening,
        "a.rs",
        "use std::fmt;",
        "//! What it is for.\nuse std::fmt;",
    );
}

fn names(source: &Source) -> Vec<Fault> {
    const EMPTY: [&str; 8] = [
        "util", "utils", "common", "helper", "helpers", "misc", "shared", "types",
    ];
    // An SDK's modules are named as its language does it.
    let named_by_us = if source.under("sdk/") {
        ""
    } else {
        source.path.as_str()
    };
    let stems = named_by_us
        .split('/')
        .map(|name| name.split('.').next().unwrap_or(name));
    stems
        .filter(|stem| EMPTY.contains(stem))
        .map(|stem| source.fault(1, format!("{stem} is no name for a module")))
        .collect()
}

#[test]
fn no_module_has_a_name_that_says_nothing() {
    keep(names);
    for path in [
        "crates/a/src/util.rs",
        "crates/common/src/lib.rs",
        "docs/misc.md",
    ] {
        assert_eq!(names(&Source::new(path, "")).len(), 1, "{path}");
    }
    assert!(names(&Source::new("crates/a/src/utility_bills.rs", "")).is_empty());
}

fn unfinished(source: &Source) -> Vec<Fault> {
    const MARKS: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];
    let mut faults = Vec::new();
    for (line, text) in source.code.lines().enumerate() {
        let marks = MARKS.iter().filter(|mark| text.contains(**mark));
        faults.extend(marks.map(|mark| source.fault(line + 1, format!("{mark} is left"))));
    }
    faults
}

#[test]
fn nothing_is_left_unfinished() {
    keep(unfinished);
    proves(
        unfinished,
        "a.rs",
        "fn a() { todo!() }",
        "// todo!() is not used\nfn a() { \"dbg!\"; }",
    );
    proves(
        unfinished,
        "a.rs",
        "#[test]\n#[ignore]\nfn a() {}",
        "#[test]\nfn a() {}",
    );
}

/// A lint that is silenced says why, where it is silenced.
fn silenced(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for word in ["[allow(", "[expect("] {
        for (at, _) in source.code.match_indices(word) {
            let attribute = source.code[at..].split(']').next().unwrap_or_default();
            if !attribute.contains("reason") {
                let line = source.code[..at].matches('\n').count() + 1;
                faults.push(source.fault(line, "a lint is silenced without a reason"));
            }
        }
    }
    faults
}

#[test]
fn no_lint_is_silenced_without_a_reason() {
    keep(silenced);
    proves(
        silenced,
        "a.rs",
        "#![allow(dead_code)]",
        "#[expect(dead_code, reason = \"why\")]\nfn a() {}",
    );
}

/// A pause is fine inside the bounded wait for an event; such a function is called `eventually`, `within` or `await_…`.
fn waits_for_an_event(source: &Source, line: usize) -> bool {
    let above: Vec<&str> = source.code.lines().take(line).collect();
    let name = above
        .iter()
        .rev()
        .find_map(|text| text.split_once("fn ").map(|(_, rest)| rest));
    name.is_some_and(|name| {
        ["eventually", "within", "await_"]
            .iter()
            .any(|word| name.starts_with(word))
    })
}

fn sleeps(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for path in source
        .paths()
        .iter()
        .filter(|p| p.line >= source.tests_from())
    {
        if path.text.split("::").any(|name| name == "sleep")
            && !waits_for_an_event(source, path.line)
        {
            faults.push(source.fault(
                path.line,
                "a test that sleeps: wait for the event, or move the clock",
            ));
        }
    }
    faults
}

#[test]
fn no_test_sleeps() {
    keep(sleeps);
    let good = "use tokio::time::timeout;\nfn a() { clock.advance(x); \"sleep\"; }";
    proves(
        sleeps,
        "crates/a/tests/b.rs",
        "use tokio::time::{sleep, timeout};",
        good,
    );
    proves(
        sleeps,
        "crates/a/src/b.rs",
        "#[cfg(test)]\nmod t { fn a() { std::thread::sleep(x); } }",
        good,
    );
    let poll = "async fn eventually() { loop { sleep(ms).await; } }";
    proves(
        sleeps,
        "crates/a/tests/b.rs",
        &format!("{poll}\nfn story() {{ sleep(second); }}"),
        poll,
    );
    assert!(
        sleeps(&Source::new(
            "crates/a/src/b.rs",
            "fn a() { tokio::time::sleep(x); }"
        ))
        .is_empty()
    );
}

/// The places of one machine, in pieces so that this file does not name them.
const MACHINE: [(&str, &str); 4] = [
    ("/wo", "rk/"),
    ("/ho", "me/"),
    ("/ro", "ot/"),
    ("/Us", "ers/"),
];

fn machine_paths(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (line, text) in source.text.lines().enumerate() {
        for (head, tail) in MACHINE {
            let place = format!("{head}{tail}");
            let starts = text.match_indices(&place).any(|(at, _)| {
                // Inside a longer path or a URL it is a route, not a directory.
                !text[..at].ends_with(|c: char| {
                    c.is_alphanumeric() || matches!(c, '}' | '~' | '.' | '-' | '_' | '/')
                })
            });
            if starts {
                faults.push(source.fault(line + 1, format!("{place} is a place on one machine")));
            }
        }
    }
    faults
}

#[test]
fn nothing_names_a_place_on_one_machine() {
    keep(machine_paths);
    let bad = format!("see {}{}main", MACHINE[0].0, MACHINE[0].1);
    proves(
        machine_paths,
        "README.md",
        &bad,
        "see https://a.example/work/main and bench/work/x",
    );
}

fn limits(source: &Source) -> Vec<Fault> {
    if source.path != "crates/chorus-wire/src/limits.rs" {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let consts = lines
        .iter()
        .enumerate()
        .filter(|(_, text)| text.starts_with("pub const "));
    let bare = consts.filter(|(at, _)| *at == 0 || !lines[at - 1].starts_with("/// "));
    bare.map(|(at, _)| source.fault(at + 1, "a limit without its reason (invariant 6)"))
        .collect()
}

#[test]
fn every_limit_has_its_reason() {
    keep(limits);
    let path = "crates/chorus-wire/src/limits.rs";
    proves(
        limits,
        path,
        "/// Why.\npub const A: u8 = 1;\npub const B: u8 = 2;",
        "/// Why.\npub const A: u8 = 1;",
    );
}
