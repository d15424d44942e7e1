//! Every rule that is cited exists, and every link in a paper leads somewhere.

use crate::source::{Fault, Source};
use crate::{keep, proves};
use std::path::Path;

/// The lists of rules and the last number of each. R and D are looked up in docs/decisions.md, where they are written.
const RULES: [(&str, u32); 6] = [
    ("ENV", 24),
    ("TRN", 64),
    ("SKL", 38),
    ("CHN", 40),
    ("JOB", 32),
    ("FRM", 113),
];

fn decisions() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/decisions.md");
    std::fs::read_to_string(path).unwrap()
}

/// `LIST-nn` wherever it stands as a word of its own.
fn cited(line: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (dash, _) in line.match_indices('-') {
        let head = line[..dash]
            .rfind(|c: char| !c.is_ascii_uppercase())
            .map_or(0, |at| at + 1);
        // Not ASCII: the character before may be longer than a byte.
        let head = (head..=dash).find(|at| {
            line.is_char_boundary(*at) && line[*at..dash].chars().all(|c| c.is_ascii_uppercase())
        });
        let Some(head) = head else { continue };
        let number = &line[dash + 1..];
        let number = &number[..number
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(number.len())];
        let after = line[dash + 1 + number.len()..].chars().next();
        let before = line[..head].chars().next_back();
        let whole = |c: Option<char>| {
            !c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        if number.len() >= 2 && whole(after) && whole(before) {
            found.push((&line[head..dash], number));
        }
    }
    found
}

fn rules(source: &Source, decisions: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        for (list, number) in cited(line) {
            let exists = match list {
                "R" | "D" => decisions.contains(&format!("**{list}-{number}")),
                _ => match RULES.iter().find(|(name, _)| *name == list) {
                    Some((_, last)) => number.parse().is_ok_and(|n: u32| (1..=*last).contains(&n)),
                    None => true,
                },
            };
            if !exists {
                faults.push(source.fault(at + 1, format!("{list}-{number} is no rule")));
            }
        }
    }
    faults
}

/// Papers and sources cite; data files may hold anything.
fn cites(source: &Source) -> bool {
    source.is_rust() || source.path.ends_with(".md")
}

#[test]
fn every_cited_rule_exists() {
    let written = decisions();
    keep(|source| {
        if cites(source) {
            rules(source, &written)
        } else {
            Vec::new()
        }
    });
    let check = |source: &Source| rules(source, "- **R-25 Replay**");
    let no = |list: &str, number: u32| format!("// {list}-{number}");
    proves(check, "a.rs", &no("ENV", 25), "// ENV-24, TRN-01…64, R-25");
    proves(
        check,
        "a.rs",
        &no("R", 39),
        "// UTF-8, SHA-256, ISO-8859, ~R-",
    );
    proves(check, "a.rs", &no("…TRN", 65), "// BCP-47");
}

fn links(source: &Source) -> Vec<Fault> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = root.join(&source.path);
    let mut faults = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        for (_, rest) in line
            .match_indices("](")
            .map(|(at, _)| line.split_at(at + 2))
        {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains(':') || target.starts_with('/');
            if !elsewhere && !home.parent().unwrap_or(&root).join(target).exists() {
                faults.push(source.fault(at + 1, format!("the link to {target} leads nowhere")));
            }
        }
    }
    faults
}

#[test]
fn every_link_in_a_paper_leads_somewhere() {
    keep(links);
    proves(
        links,
        "docs/a.md",
        "[x](gone.md)",
        "[x](../Cargo.toml) [y](https://a.example) [z](#here)",
    );
}
