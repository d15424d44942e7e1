//! Checks that the compiler cannot make, by reading the sources: layers, names, citations, papers and file sizes.
#![expect(
    clippy::unwrap_used,
    reason = "a source that cannot be read is a failure"
)]

mod boundaries;
mod citations;
mod modules;
mod naming;
mod papers;
mod shape;
mod source;

use source::{Fault, Source};

/// Runs one check over the whole tree and lists every fault at once.
fn keep(check: impl Fn(&Source) -> Vec<Fault>) {
    let tree = source::tree();
    assert!(
        tree.len() > 30,
        "only {} files were found, so nothing was checked",
        tree.len()
    );
    let faults: Vec<Fault> = tree.iter().flat_map(check).collect();
    let list: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(
        list.is_empty(),
        "{} faults:\n{}",
        list.len(),
        list.join("\n")
    );
}

/// Proves that a check can fail: it finds something in `bad` and nothing in `good`.
fn proves(check: impl Fn(&Source) -> Vec<Fault>, path: &str, bad: &str, good: &str) {
    assert!(
        !check(&Source::new(path, bad)).is_empty(),
        "nothing found in {path}: {bad}"
    );
    let found = check(&Source::new(path, good));
    assert!(found.is_empty(), "found in {path}: {}", found[0]);
}
