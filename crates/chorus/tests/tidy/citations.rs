//! Every rule that is cited exists, and every link in a paper leads somewhere.

use crate::source::{Fault, Source};
use crate::{keep, proves};
use std::{collections::HashSet, path::Path};

/// The lists whose numbers code and papers cite. Each item begins a line of its own: `- **R-25 …` in docs/protocol,
/// `### D-04 …` in docs/decisions.
const LISTS: [&str; 17] = [
    "ENV", "TRN", "SKL", "CHN", "JOB", "FRM", "R", "D", "WAK", "PLG", "PKG", "REL", "SDK", "PY",
    "TS", "INT", "OPS",
];
/// What the numbers of lessons learnt from public servers are called.
const LESSONS: [&str; 2] = ["lesson", "failure"];

/// Every numbered item of docs/protocol and docs/decisions, as `R-25` or `failure 26`.
fn numbered_items<'a>(papers: impl Iterator<Item = &'a str>) -> HashSet<String> {
    let mut items = HashSet::new();
    for line in papers.flat_map(str::lines) {
        let item = line
            .strip_prefix("- **")
            .or_else(|| line.strip_prefix("### "));
        let Some(item) = item else { continue };
        let end = item.find(['*', '.']).unwrap_or(item.len());
        let words: Vec<&str> = item[..end].split(' ').collect();
        items.insert(words[0].to_owned());
        if words.len() > 1 && LESSONS.contains(&words[0]) {
            items.insert(format!("{} {}", words[0], words[1]));
        }
    }
    items
}

fn written_items() -> HashSet<String> {
    let tree = crate::source::tree();
    let papers = tree
        .iter()
        .filter(|source| source.under("docs/protocol/") || source.under("docs/decisions/"));
    numbered_items(papers.map(|source| source.text.as_str()))
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

/// `lesson 3`, `failures 21–23`: every number after the word, as `lesson 3`.
fn cited_lessons(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lower = line.to_lowercase();
    for word in LESSONS {
        for (at, _) in lower.match_indices(word) {
            let rest = lower[at + word.len()..].trim_start_matches('s');
            let Some(rest) = rest.strip_prefix(' ') else {
                continue;
            };
            let mut number = String::new();
            for c in rest.chars() {
                match c {
                    '0'..='9' => number.push(c),
                    ' ' | ',' | '–' | '…' if !number.is_empty() => {
                        found.push(format!("{word} {}", std::mem::take(&mut number)));
                    }
                    _ => break,
                }
            }
            if !number.is_empty() {
                found.push(format!("{word} {number}"));
            }
        }
    }
    found
}

fn unresolved_citations(source: &Source, items: &HashSet<String>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        let rules = cited(line)
            .into_iter()
            .filter(|(list, _)| LISTS.contains(list));
        let rules = rules.map(|(list, number)| format!("{list}-{number}"));
        for item in rules.chain(cited_lessons(line)) {
            if !items.contains(&item) {
                let text = format!("{item} is no item of docs/protocol or docs/decisions");
                faults.push(source.fault(at + 1, text));
            }
        }
    }
    faults
}

/// Papers and sources cite; data files may hold anything.
fn cites(source: &Source) -> bool {
    [".rs", ".md", ".py", ".ts"]
        .iter()
        .any(|ending| source.path.ends_with(ending))
}

#[test]
fn every_cited_rule_exists() {
    let items = written_items();
    keep(|source| {
        if cites(source) {
            unresolved_citations(source, &items)
        } else {
            Vec::new()
        }
    });
    let papers = "- **R-25 Replay.** x\n- **ENV-24** x\n### D-04 One writer\n- **failure 26** x";
    let items = numbered_items(std::iter::once(papers));
    let check = |source: &Source| unresolved_citations(source, &items);
    let no = |list: &str, number: u32| format!("// {list}-{number}");
    proves(check, "a.rs", &no("ENV", 25), "// ENV-24, R-25, D-04");
    proves(
        check,
        "a.rs",
        &no("R", 39),
        "// UTF-8, SHA-256, ISO-8859, ~R-",
    );
    proves(check, "a.rs", &no("…TRN", 65), "// BCP-47");
    proves(
        check,
        "a.rs",
        &format!("// (failure {})", 27),
        "// (failure 26), a failure of 2 hubs",
    );
    for list in ["WAK", "PLG", "PKG", "REL", "SDK", "PY", "TS", "INT", "OPS"] {
        proves(check, "a.py", &no(list, 99), "# no number");
    }
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
