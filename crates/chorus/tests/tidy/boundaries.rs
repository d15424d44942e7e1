//! Invariants 1, 2 and 13: which crate may use which library, that the protocols never import one another, and that the ids
//! of rows have types.

use crate::source::{Fault, Source};
use crate::{keep, proves};

const PROTOCOLS: [&str; 4] = ["envelope", "channel", "market", "frame"];
const DRIVERS: [&str; 3] = ["rusqlite", "tokio_postgres", "deadpool_postgres"];

/// In this folder, none of these. A name alone is forbidden wherever it stands in a path.
const WALLS: [(&str, &[&str], &str); 4] = [
    (
        "crates/chorus-wire/src/",
        &[
            "tokio",
            "std::net",
            "std::fs",
            "std::io",
            "std::thread",
            "SystemTime",
            "futures_util",
            "reqwest",
            "hyper",
        ],
        "wire does no I/O and knows no clock (invariant 1)",
    ),
    (
        "crates/chorus-hub/src/",
        &[
            "axum",
            "hyper",
            "hyper_util",
            "tower",
            "utoipa_axum",
            "chorus_server",
        ],
        "the hub knows no HTTP server (invariant 1)",
    ),
    (
        "crates/chorus-server/src/",
        &["chorus_client"],
        "the server is not its own client (invariant 1)",
    ),
    (
        "crates/chorus-client/src/",
        &["chorus_hub", "chorus_server"],
        "the client is outside (invariant 1)",
    ),
];

/// These names, only there.
const ONLY: [(&[&str], &str, &str); 2] = [
    (
        &DRIVERS,
        "crates/chorus-hub/src/store/",
        "only hub/store knows a database (invariant 1)",
    ),
    (
        &["async_nats"],
        "crates/chorus-hub/src/cluster/nats.rs",
        "only hub/cluster/nats.rs knows NATS (invariant 1)",
    ),
];

fn matches(path: &str, forbidden: &str) -> bool {
    match forbidden.contains("::") {
        true => path == forbidden || path.starts_with(&format!("{forbidden}::")),
        false => path.split("::").any(|name| name == forbidden),
    }
}

fn walls(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !source.is_product() {
        return faults;
    }
    let barred = WALLS
        .iter()
        .filter(|(place, ..)| source.under(place))
        .map(|(_, names, why)| (*names, *why));
    let kept = ONLY
        .iter()
        .filter(|(_, place, _)| !source.under(place))
        .map(|(names, _, why)| (*names, *why));
    let rules: Vec<_> = barred.chain(kept).collect();
    for path in source
        .paths()
        .iter()
        .filter(|p| p.line < source.tests_from())
    {
        for (names, why) in &rules {
            if names.iter().any(|name| matches(&path.text, name)) {
                faults.push(source.fault(path.line, format!("{}: {why}", path.text)));
            }
        }
    }
    faults
}

#[test]
fn no_crate_uses_a_library_that_is_not_its_own() {
    keep(walls);
    let wire = "crates/chorus-wire/src/x.rs";
    proves(
        walls,
        wire,
        "use std::{fmt, fs::File};",
        "use std::fmt; // std::fs",
    );
    proves(
        walls,
        wire,
        "fn now() { std::time::SystemTime::now(); }",
        "use std::time::Duration;",
    );
    proves(
        walls,
        wire,
        "use tokio::sync::mpsc;",
        "#[cfg(test)]\nmod tests { use tokio::sync::mpsc; }",
    );
    proves(
        walls,
        "crates/chorus-hub/src/hub.rs",
        "use axum::Router;",
        "use reqwest::Client;",
    );
    proves(
        walls,
        "crates/chorus-server/src/a.rs",
        "use rusqlite as db;",
        "use axum::Router;",
    );
    proves(
        walls,
        "crates/chorus-hub/src/identity/a.rs",
        "use tokio_postgres::Row;",
        "use crate::store::Row;",
    );
    proves(
        walls,
        "crates/chorus-hub/src/cluster/mod.rs",
        "use async_nats::Client;",
        "mod nats;",
    );
    assert!(
        walls(&Source::new(
            "crates/chorus-hub/src/cluster/nats.rs",
            "use async_nats::Client;"
        ))
        .is_empty()
    );
    assert!(
        walls(&Source::new(
            "crates/chorus-hub/src/store/a.rs",
            "use rusqlite::Row;"
        ))
        .is_empty()
    );
}

/// Whether a text in quotes is a statement for a database.
fn is_sql(quote: &str) -> bool {
    let text = quote
        .trim_start_matches(['r', 'b', '#', '"'])
        .to_lowercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts = [
        ("select ", " from "),
        ("with ", " as ("),
        ("insert ", "into "),
        ("update ", " set "),
        ("delete from ", ""),
        ("create ", " table "),
        ("create ", " index "),
        ("create table ", ""),
        ("create index ", ""),
        ("alter table ", ""),
        ("drop table ", ""),
        ("pragma ", ""),
        ("begin immediate", ""),
    ];
    starts
        .iter()
        .any(|(start, rest)| text.starts_with(start) && text.contains(rest))
}

fn sql(source: &Source) -> Vec<Fault> {
    if !source.is_product() || source.under("crates/chorus-hub/src/store/") {
        return Vec::new();
    }
    let written = source
        .quotes
        .iter()
        .filter(|q| q.line < source.tests_from() && is_sql(&q.text));
    written
        .map(|q| source.fault(q.line, "SQL; only hub/store writes it (invariant 1)"))
        .collect()
}

#[test]
fn only_the_store_writes_sql() {
    keep(sql);
    let server = "crates/chorus-server/src/a.rs";
    proves(
        sql,
        server,
        r#"let q = "SELECT id\n FROM log";"#,
        r#"let q = "selected from the log";"#,
    );
    proves(
        sql,
        server,
        "let q = r#\"  update keys\n set hash = $1\"#;",
        r#"let q = "update the keys";"#,
    );
    proves(
        sql,
        "crates/chorus-hub/src/envelope/a.rs",
        r#"x("delete from log")"#,
        r#"x("delete me")"#,
    );
    assert!(
        sql(&Source::new(
            "crates/chorus-hub/src/store/log.rs",
            r#"x("delete from log")"#
        ))
        .is_empty()
    );
}

/// What has an id of its own type; a number with such a name is one that lost it.
const ROWS: [&str; 13] = [
    "agent",
    "owner",
    "payer",
    "payee",
    "channel",
    "member",
    "org",
    "job",
    "subject",
    "actor",
    "seq",
    "account",
    "principal",
];

fn raw_ids(source: &Source) -> Vec<Fault> {
    if !source.is_product() || !source.under("crates/chorus-hub/src/") {
        return Vec::new();
    }
    let lines = source.code.lines().zip(1..);
    let found = lines.filter(|(line, number)| {
        *number < source.tests_from()
            && line.split(", ").any(|part| {
                let Some((name, kind)) = part.split_once(": ") else {
                    return false;
                };
                let name = name.rsplit([' ', '(']).next().unwrap_or_default();
                let name = name.strip_suffix("_id").unwrap_or(name);
                let kind = kind
                    .trim_start_matches("Option<")
                    .trim_start_matches("Vec<");
                kind.starts_with("i64") && ROWS.contains(&name)
            })
    });
    found
        .map(|(_, line)| source.fault(line, "an id as a number; it has a type (invariant 13)"))
        .collect()
}

#[test]
fn ids_of_rows_have_types() {
    keep(raw_ids);
    let rule = "crates/chorus-hub/src/market/a.rs";
    proves(
        raw_ids,
        rule,
        "fn pay(tx: &Tx, owner: i64) {}",
        "fn pay(tx: &Tx, owner: OwnerId, cost: i64) {}",
    );
    proves(
        raw_ids,
        rule,
        "    pub agent_id: Option<i64>,",
        "    pub agent_id: AgentId,",
    );
}

/// The module that a file is, as names below its crate: `src/frame/kind.rs` is `frame`, `kind`.
fn module(path: &str) -> Option<Vec<&str>> {
    let (_, inside) = path.split_once("/src/")?;
    let mut names: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    if matches!(names.last(), Some(&("mod" | "lib" | "main"))) {
        names.pop();
    }
    Some(names)
}

fn meeting(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    let Some(module) = module(&source.path) else {
        return faults;
    };
    let Some(protocol) = module.iter().find(|name| PROTOCOLS.contains(name)) else {
        return faults;
    };
    for path in source.paths() {
        let names: Vec<&str> = path.text.split("::").collect();
        let ups = names.iter().take_while(|name| **name == "super").count();
        let whole: Vec<&str> = match names[0] {
            "crate" => names[1..].to_vec(),
            "super" => [&module[..module.len().saturating_sub(ups)], &names[ups..]].concat(),
            name if name.starts_with("chorus_") => names[1..].to_vec(),
            _ => continue,
        };
        let other = whole
            .iter()
            .take(module.len())
            .find(|name| PROTOCOLS.contains(name) && *name != protocol);
        if let Some(other) = other {
            faults.push(source.fault(
                path.line,
                format!(
                    "{protocol} imports {other}: protocols meet in the layers below (invariant 2)"
                ),
            ));
        }
    }
    faults
}

#[test]
fn the_four_protocols_never_import_one_another() {
    keep(meeting);
    let file = "crates/chorus-hub/src/envelope/send.rs";
    proves(
        meeting,
        file,
        "use crate::{store, frame::FrameKind};",
        "use crate::{store, delivery::StreamFeed};",
    );
    proves(
        meeting,
        file,
        "use super::super::channel::Channel;",
        "use super::history::Page;",
    );
    proves(
        meeting,
        file,
        "fn a() { chorus_wire::market::job(); }",
        "fn a() { chorus_wire::envelope::job(); }",
    );
    proves(
        meeting,
        "crates/chorus-server/src/channel.rs",
        "use super::envelope::x;",
        "use super::reply::x;",
    );
    assert!(
        meeting(&Source::new(
            "crates/chorus-hub/src/hub.rs",
            "use crate::{envelope, frame};"
        ))
        .is_empty()
    );
}

/// What a crate may depend on says the same as the walls above.
fn manifests(source: &Source) -> Vec<Fault> {
    let Some(crate_name) = source
        .path
        .strip_prefix("crates/")
        .and_then(|p| p.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    let home = format!("crates/{crate_name}/src/");
    let product = source
        .text
        .split("[dev-dependencies]")
        .next()
        .unwrap_or_default();
    let mut faults = Vec::new();
    if !source.text.contains("[lints]\nworkspace = true") {
        faults.push(source.fault(
            1,
            "the workspace's lints are not switched on (invariants 9 and 10)",
        ));
    }
    for (line, text) in product.lines().enumerate() {
        let name = text
            .split(['.', ' ', '='])
            .next()
            .unwrap_or_default()
            .replace('-', "_");
        let barred = WALLS
            .iter()
            .filter(|w| w.0 == home)
            .any(|w| w.1.contains(&name.as_str()));
        let driven = ONLY
            .iter()
            .any(|(names, place, _)| names.contains(&name.as_str()) && !place.starts_with(&home));
        if barred || driven {
            faults.push(source.fault(
                line + 1,
                format!("{crate_name} may not depend on {name} (invariant 1)"),
            ));
        }
    }
    faults
}

#[test]
fn no_crate_depends_on_what_it_may_not_know() {
    keep(manifests);
    let good = "[lints]\nworkspace = true\n[dependencies]\nserde = \"1\"\n[dev-dependencies]\ntokio = \"1\"\n";
    let wire = "crates/chorus-wire/Cargo.toml";
    proves(manifests, wire, &good.replace("serde =", "tokio ="), good);
    proves(manifests, wire, &good.replace("workspace = true", ""), good);
    proves(
        manifests,
        "crates/chorus-server/Cargo.toml",
        &good.replace("serde =", "tokio-postgres ="),
        good,
    );
}

/// The hash of a secret is compared in constant time, so that the time of a refusal tells nothing about it (R-74).
fn secret_comparisons(source: &Source) -> Vec<Fault> {
    if !source.under("crates/chorus-hub/src/store/") {
        return Vec::new();
    }
    let lines = source.code.lines().enumerate();
    lines
        .filter(|(_, line)| line.contains("stored_hash") && !line.contains("let stored_hash"))
        .filter(|(_, line)| !line.contains(".ct_eq("))
        .map(|(line, _)| source.fault(line + 1, "a hash is compared without ct_eq (R-74)"))
        .collect()
}

#[test]
fn hashes_of_secrets_are_compared_in_constant_time() {
    keep(secret_comparisons);
    proves(
        secret_comparisons,
        "crates/chorus-hub/src/store/tokens.rs",
        "let is_equal = stored_hash == hash.as_slice();",
        "let is_equal = bool::from(stored_hash.ct_eq(hash.as_slice()));",
    );
}
