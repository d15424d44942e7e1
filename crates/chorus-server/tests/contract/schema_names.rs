//! Schema names: two types with one name would be published as one schema, and one of the two would be wrong.

use std::collections::BTreeMap;
use std::{fs, path::Path};

/// The names that a source file publishes: of every type that derives `ToSchema`.
fn published_names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if !(line.trim_start().starts_with("#[derive(") && line.contains("ToSchema")) {
            continue;
        }
        let renamed = |line: &str| {
            let (_, rest) = line.split_once("#[schema(as = ")?;
            Some(rest.split([',', ')']).next()?.to_owned())
        };
        let mut published = None;
        for line in lines.by_ref() {
            published = published.or_else(|| renamed(line));
            if let Some(name) = defined_type(line) {
                names.push(published.unwrap_or(name));
                break;
            }
        }
    }
    names
}

/// The type that a line defines; a `string_enum!` has only its name and a brace.
fn defined_type(line: &str) -> Option<String> {
    let line = line.trim_start().trim_start_matches("pub ");
    let name = match line.split_once(' ')? {
        ("struct" | "enum", rest) => rest,
        (name, "{") => name,
        _ => return None,
    };
    let end = name
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(name.len());
    name.starts_with(|c: char| c.is_ascii_uppercase())
        .then(|| name[..end].to_owned())
}

fn collect_names(folder: &Path, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The tools have a document of their own.
        if path.is_dir() && !path.ends_with("mcp") {
            collect_names(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            for name in published_names(&fs::read_to_string(&path).unwrap()) {
                found
                    .entry(name)
                    .or_default()
                    .push(path.display().to_string());
            }
        }
    }
}

#[test]
fn every_schema_name_belongs_to_one_type() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for name in ["chorus-wire", "chorus-server"] {
        collect_names(&crates.join(name).join("src"), &mut found);
    }
    assert!(found.len() > 80, "only {} names were found", found.len());
    found.retain(|_, places| places.len() > 1);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_name_is_found_however_it_is_written() {
    let source = "#[derive(Clone, ToSchema)]\n#[schema(example = json!({\"a\": 1}))]\npub struct Job {\n}\n\
        #[derive(ToSchema)]\n#[schema(as = Row)]\nstruct Line {\n}\n    #[derive(ToSchema)]\n    JobStatus {\n";
    assert_eq!(published_names(source), ["Job", "Row", "JobStatus"]);
}
