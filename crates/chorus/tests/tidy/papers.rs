//! ARCHITECTURE.md is a map: every path it names exists, and every module of every crate is named in it.

use crate::source::{self, Fault, Source};
use crate::{keep, proves};
use std::collections::BTreeSet;
use std::path::Path;

const MAP: &str = "ARCHITECTURE.md";
/// How the map abbreviates the folder of a crate's sources: `hub/store/log.rs`.
const CRATES: [(&str, &str); 4] = [
    ("wire/", "crates/chorus-wire/src/"),
    ("hub/", "crates/chorus-hub/src/"),
    ("server/", "crates/chorus-server/src/"),
    ("client/", "crates/chorus-client/src/"),
];

/// The words in backticks that are written as paths: with a slash or the end of a source file, and no placeholder.
fn named_paths(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let plain =
            !word.contains([' ', '<', '*', '{', '…', ':', '(']) && !word.starts_with(['/', '-']);
        plain && (word.ends_with(".rs") || word.ends_with(".md") || word.ends_with('/'))
    };
    quoted.filter(is_path).collect()
}

fn exists(path: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let whole = CRATES
        .iter()
        .find_map(|(short, folder)| Some(format!("{folder}{}", path.strip_prefix(short)?)));
    root.join(path).exists() || whole.is_some_and(|whole| root.join(whole).exists())
}

fn missing_paths(source: &Source) -> Vec<Fault> {
    if source.path != MAP {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        for path in named_paths(line).into_iter().filter(|path| !exists(path)) {
            faults.push(source.fault(at + 1, format!("{path} does not exist")));
        }
    }
    faults
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    keep(missing_paths);
    proves(
        missing_paths,
        MAP,
        "see `hub/store/gone.rs`",
        "see `hub/store/log.rs`, `docs/`, `GET /agents/{id}` and `x.rs in prose`",
    );
}

/// The top-level modules of the hub and the server.
fn modules(tree: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in tree {
        for folder in ["crates/chorus-hub/src/", "crates/chorus-server/src/"] {
            if let Some(inside) = source.path.strip_prefix(folder) {
                let module = inside.split('/').next().unwrap_or_default();
                if !matches!(module, "lib.rs" | "main.rs") {
                    found.insert(module.to_owned());
                }
            }
        }
    }
    found
}

fn unnamed_modules(map: &str, modules: &BTreeSet<String>) -> Vec<String> {
    let words: BTreeSet<&str> = map
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')))
        .map(|word| word.trim_end_matches(['.', '/']))
        .collect();
    let is_named = |module: &&String| words.contains(module.as_str());
    modules
        .iter()
        .filter(|module| !is_named(module))
        .cloned()
        .collect()
}

#[test]
fn every_module_is_named_in_the_architecture() {
    let tree = source::tree();
    let map = tree.iter().find(|source| source.path == MAP).unwrap();
    let modules = modules(&tree);
    assert!(modules.len() > 15, "only {modules:?} were found");
    let unnamed = unnamed_modules(&map.text, &modules);
    assert!(unnamed.is_empty(), "not in {MAP}: {unnamed:?}");
    let two = BTreeSet::from(["store".to_owned(), "clock.rs".to_owned()]);
    assert_eq!(unnamed_modules("`store/` and more", &two), ["clock.rs"]);
    assert!(unnamed_modules("hub/store/ beside clock.rs.", &two).is_empty());
}
