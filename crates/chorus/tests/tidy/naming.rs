//! How plainly the code is named: shares of one-word names, type names used twice, packed lets, vague pronouns.
//! Only the thresholds are kept here; docs/glossary.md has the words.

use crate::source::{self, Source};
use std::collections::HashMap;

/// Per cent of functions whose name is a single word. Std-like verbs on an obvious receiver are fine, so it is not zero.
const ONE_WORD_FUNCTIONS: usize = 15;
/// Per cent of types whose name is a single word: the nouns of the glossary.
const ONE_WORD_TYPES: usize = 5;
/// Lines that speak of an unnamed party where client, sender, receiver, operator or hub is meant. Quoted examples have some.
const VAGUE_LINES: usize = 16;

const VAGUE: &str = "whoever somebody nobody anybody everybody whomever";
/// Names that the standard library or a trait prescribes.
const PRESCRIBED: [&str; 15] = [
    "new", "fmt", "drop", "from", "into", "clone", "default", "next", "poll", "eq", "cmp", "hash",
    "deref", "len", "main",
];
const TYPE_WORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

#[derive(Default)]
struct NamingReport {
    functions: Vec<String>,
    /// Of each crate.
    types: HashMap<String, Vec<String>>,
    packed_lets: usize,
    vague_lines: usize,
}

/// The name that a line defines after one of these words, skipping visibility and qualifiers.
fn defined_name<'a>(line: &'a str, words: &[&str]) -> Option<&'a str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(scoped) = rest.strip_prefix("pub(") {
            rest = scoped.split_once(')')?.1.trim_start();
            continue;
        }
        let (word, after) = rest.split_once(' ')?;
        if words.contains(&word) {
            let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            return Some(&after[..end.unwrap_or(after.len())]).filter(|name| !name.is_empty());
        }
        if !matches!(word, "pub" | "default" | "const" | "async" | "unsafe") {
            return None;
        }
        rest = after.trim_start();
    }
}

/// `let (a, mut b) = (`, on one line or several.
fn count_packed_lets(code: &str) -> usize {
    let packs = code.match_indices("let (").filter(|(at, _)| {
        let rest = &code[at + "let (".len()..];
        let Some((names, after)) = rest.split_once(')') else {
            return false;
        };
        let plain = names
            .split(',')
            .filter(|name| !name.trim().is_empty())
            .all(|name| {
                let name = name.trim().trim_start_matches("mut ");
                name.chars().all(|c| c.is_alphanumeric() || c == '_')
            });
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        plain && names.contains(',') && value.is_some_and(|value| value.starts_with('('))
    });
    packs.count()
}

fn is_vague(line: &str) -> bool {
    let lower = line.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    lower.contains("someone else")
        || words
            .into_iter()
            .any(|word| VAGUE.split(' ').any(|vague| vague == word))
}

impl NamingReport {
    fn add(&mut self, source: &Source) {
        if [".rs", ".md", ".js"]
            .iter()
            .any(|end| source.path.ends_with(end))
        {
            self.vague_lines += source.text.lines().filter(|line| is_vague(line)).count();
        }
        let is_test = source.path.contains("/tests/") || source.path.ends_with("tests.rs");
        if !source.is_product() || is_test {
            return;
        }
        let crate_name = source.path.split("/src/").next().unwrap_or_default();
        let shipped: Vec<&str> = source.code.lines().take(source.tests_from() - 1).collect();
        for line in &shipped {
            if let Some(name) = defined_name(line, &["fn"])
                && !PRESCRIBED.contains(&name)
            {
                self.functions.push(name.to_owned());
            }
            // An associated type is named by its trait.
            let associated = line.starts_with(' ') && line.trim_start().starts_with("type ");
            if let Some(name) = defined_name(line, &TYPE_WORDS)
                && !associated
                && name != "Args"
            {
                self.types
                    .entry(crate_name.to_owned())
                    .or_default()
                    .push(name.to_owned());
            }
        }
        self.packed_lets += count_packed_lets(&shipped.join("\n"));
    }

    fn one_word_functions(&self) -> usize {
        let one_word = self
            .functions
            .iter()
            .filter(|name| !name.trim_matches('_').contains('_'));
        100 * one_word.count() / self.functions.len().max(1)
    }

    fn one_word_types(&self) -> usize {
        let all: Vec<&String> = self.types.values().flatten().collect();
        let one_word = all
            .iter()
            .filter(|name| name.chars().filter(char::is_ascii_uppercase).count() == 1);
        100 * one_word.count() / all.len().max(1)
    }

    fn reused_types(&self) -> Vec<String> {
        let mut reused = Vec::new();
        for (crate_name, names) in &self.types {
            for (at, name) in names.iter().enumerate() {
                if names[..at].contains(name) {
                    reused.push(format!("{crate_name}: {name}"));
                }
            }
        }
        reused
    }
}

fn report_of(sources: &[Source]) -> NamingReport {
    let mut report = NamingReport::default();
    sources.iter().for_each(|source| report.add(source));
    report
}

#[test]
fn names_stay_plain() {
    let report = report_of(&source::tree());
    assert!(
        report.functions.len() > 1000,
        "only {} functions were found",
        report.functions.len()
    );
    let functions = report.one_word_functions();
    assert!(
        functions <= ONE_WORD_FUNCTIONS,
        "{functions} % of functions have one-word names"
    );
    let types = report.one_word_types();
    assert!(
        types <= ONE_WORD_TYPES,
        "{types} % of types have one-word names"
    );
    let reused = report.reused_types();
    assert!(reused.is_empty(), "types that share a name: {reused:#?}");
    // `let (a, b) = (x, y)`: two statements that pretend to be one.
    assert_eq!(report.packed_lets, 0, "packed lets");
    assert!(
        report.vague_lines <= VAGUE_LINES,
        "{} vague lines",
        report.vague_lines
    );
}

#[test]
fn a_planted_name_is_counted() {
    let text = "//! A file that somebody wrote.\npub(crate) async fn told() {}\nfn close_job() {}\n\
        struct Room;\nenum JobState {}\nimpl Iterator for Room { fn next() {} }\n\
        fn pack_them() { let (a, mut b) = (1, 2); let (c, d) = split(); }\n\
        #[cfg(test)]\nmod tests { fn held() {} struct Room; }";
    let report = report_of(&[Source::new("crates/a/src/b.rs", text)]);
    assert_eq!(report.functions, ["told", "close_job", "pack_them"]);
    assert_eq!(report.one_word_functions(), 33);
    assert_eq!(report.one_word_types(), 50);
    assert_eq!(report.packed_lets, 1);
    assert_eq!(report.vague_lines, 1);
    let twice = [
        Source::new("crates/a/src/b.rs", "struct Room;"),
        Source::new("crates/a/src/c.rs", "pub struct Room;"),
        Source::new("crates/z/src/c.rs", "struct Room;"),
    ];
    assert_eq!(report_of(&twice).reused_types(), ["crates/a: Room"]);
}
