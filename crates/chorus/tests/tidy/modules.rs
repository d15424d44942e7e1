//! Which module of a crate may use which other: an explicit table, so that a new edge is a decision and no cycle can grow.

use crate::source::{Fault, Source};
use crate::{keep, proves};

type EdgeTable = &'static [(&'static str, &'static [&'static str])];

/// The modules of `chorus-hub` and what each may import, in the order of the layers in ARCHITECTURE.md.
const HUB: EdgeTable = &[
    ("clock", &[]),
    ("clock_watch", &["clock"]),
    ("random", &[]),
    ("bus", &[]),
    ("simulation", &["bus"]),
    ("limits", &[]),
    ("pem", &[]),
    ("stream_end", &[]),
    ("start_error", &[]),
    ("memory_bounds", &["limits"]),
    ("telemetry", &["clock", "limits", "random"]),
    (
        "settings",
        &[
            "clock",
            "limits",
            "memory_bounds",
            "simulation",
            "telemetry",
        ],
    ),
    ("seal", &["clock", "limits", "random", "start_error"]),
    (
        "store",
        &[
            "clock",
            "clock_watch",
            "limits",
            "memory_bounds",
            "pem",
            "random",
            "seal",
            "simulation",
            "start_error",
            "stream_end",
            "telemetry",
        ],
    ),
    (
        "identity",
        &[
            "clock",
            "limits",
            "random",
            "settings",
            "start_error",
            "store",
            "stream_end",
        ],
    ),
    (
        "delivery",
        &[
            "clock",
            "clock_watch",
            "identity",
            "limits",
            "random",
            "seal",
            "settings",
            "simulation",
            "store",
            "stream_end",
            "telemetry",
        ],
    ),
    (
        "cluster",
        &[
            "bus",
            "clock",
            "delivery",
            "identity",
            "limits",
            "pem",
            "random",
            "seal",
            "settings",
            "store",
            "stream_end",
        ],
    ),
    (
        "context",
        &[
            "clock",
            "clock_watch",
            "cluster",
            "delivery",
            "identity",
            "limits",
            "seal",
            "settings",
            "start_error",
            "store",
            "stream_end",
            "telemetry",
        ],
    ),
    (
        "idempotent_request",
        &["context", "identity", "random", "store"],
    ),
    ("envelope", PROTOCOL),
    ("channel", PROTOCOL),
    ("market", PROTOCOL),
    ("frame", PROTOCOL),
    ("lifecycle", ABOVE_PROTOCOLS),
    ("ops", OPERATIONS),
    ("hub", COMPOSITION),
];

/// A protocol may use every layer below and no other protocol.
const PROTOCOL: &[&str] = &[
    "clock",
    "clock_watch",
    "cluster",
    "context",
    "delivery",
    "identity",
    "limits",
    "seal",
    "random",
    "settings",
    "store",
    "stream_end",
    "telemetry",
];
const ABOVE_PROTOCOLS: &[&str] = &[
    "channel",
    "clock",
    "context",
    "delivery",
    "envelope",
    "frame",
    "identity",
    "limits",
    "market",
    "seal",
    "random",
    "settings",
    "start_error",
    "store",
    "stream_end",
];
const OPERATIONS: &[&str] = &[
    "channel",
    "clock",
    "context",
    "delivery",
    "envelope",
    "frame",
    "identity",
    "lifecycle",
    "limits",
    "market",
    "seal",
    "random",
    "settings",
    "start_error",
    "store",
    "stream_end",
    "telemetry",
];
const COMPOSITION: &[&str] = &[
    "channel",
    "clock",
    "clock_watch",
    "cluster",
    "context",
    "delivery",
    "envelope",
    "frame",
    "identity",
    "lifecycle",
    "limits",
    "market",
    "ops",
    "seal",
    "settings",
    "start_error",
    "store",
    "stream_end",
    "telemetry",
];

/// The modules of `chorus-server`: `http` knows no protocol, and no protocol knows another.
const SERVER: EdgeTable = &[
    ("http", &[]),
    ("acme", &["http"]),
    ("pages", &["http"]),
    ("console", &["http", "pages"]),
    ("openapi", &["http"]),
    ("schemas", &["http"]),
    ("ops", &["http"]),
    ("identity", &["console", "http", "pages"]),
    ("envelope", &["http"]),
    ("channel", &["http"]),
    ("market", &["http"]),
    ("frame", &["http"]),
    ("discover", &["http", "identity"]),
    ("mcp", &["http", "pages"]),
    (
        "router",
        &[
            "channel", "console", "discover", "envelope", "frame", "http", "identity", "market",
            "mcp", "openapi", "ops", "pages", "schemas",
        ],
    ),
    ("settings", &["acme", "http", "router"]),
];

/// The modules of `chorus-wire`: the protocols build on the shared grammars and never on one another.
const WIRE: EdgeTable = &[
    ("cursor", &["time"]),
    ("error", &[]),
    ("limits", &[]),
    ("secret", &[]),
    ("time", &[]),
    ("string_enum", &[]),
    ("credits", &["limits"]),
    ("contract", &["credits", "limits", "secret", "time"]),
    ("identity", &["contract", "limits"]),
    ("list_page", &["limits"]),
    (
        "contact",
        &["contract", "identity", "limits", "string_enum", "time"],
    ),
    ("json", &["contract"]),
    ("sse", &["cursor"]),
    ("event_chunk", &["cursor", "limits", "sse"]),
    ("console", &["contract"]),
    ("invite", &["contract", "limits", "time"]),
    ("agent_card", &["contract", "identity", "limits"]),
    (
        "agent_key",
        &["contract", "limits", "secret", "string_enum", "time"],
    ),
    ("envelope", &["contract", "identity", "limits"]),
    (
        "message",
        &["contract", "envelope", "identity", "limits", "time"],
    ),
    (
        "channel",
        &[
            "contract",
            "identity",
            "limits",
            "secret",
            "string_enum",
            "time",
        ],
    ),
    (
        "market",
        &[
            "contract",
            "credits",
            "identity",
            "json",
            "limits",
            "string_enum",
            "time",
        ],
    ),
    (
        "frame",
        &[
            "contract",
            "error",
            "identity",
            "limits",
            "string_enum",
            "time",
        ],
    ),
    (
        "registration",
        &[
            "agent_card",
            "channel",
            "contract",
            "identity",
            "limits",
            "market",
            "secret",
        ],
    ),
    ("usage", &["error", "limits", "string_enum"]),
    ("reach", &["error", "string_enum"]),
    ("reply", &["agent_card", "reach", "secret", "time"]),
    (
        "schemas",
        &[
            "agent_card",
            "agent_key",
            "channel",
            "console",
            "contact",
            "contract",
            "envelope",
            "frame",
            "invite",
            "market",
            "message",
            "registration",
        ],
    ),
];

/// What the top-level modules of `source` import, with the line.
fn imported_modules(source: &Source, home: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for path in source
        .paths()
        .iter()
        .filter(|path| path.line < source.tests_from())
    {
        let mut names = path.text.split("::");
        if names.next() == Some("crate")
            && let Some(module) = names.next()
            && module != home
            && module.starts_with(|c: char| c.is_ascii_lowercase())
        {
            found.push((path.line, module.to_owned()));
        }
    }
    found
}

/// The top-level module that a file belongs to.
fn home_module<'a>(source: &'a Source, folder: &str) -> Option<&'a str> {
    let inside = source.path.strip_prefix(folder)?;
    let home = inside.split('/').next()?.trim_end_matches(".rs");
    let is_test = inside.ends_with("tests.rs") || inside.contains("/tests/");
    (!is_test && !matches!(home, "lib" | "main")).then_some(home)
}

fn forbidden_edges(source: &Source, folder: &str, table: &[(&str, &[&str])]) -> Vec<Fault> {
    let Some(home) = home_module(source, folder) else {
        return Vec::new();
    };
    let Some((_, allowed)) = table.iter().find(|(module, _)| *module == home) else {
        return vec![source.fault(1, format!("{home} is in no row of the table of modules"))];
    };
    let edges = imported_modules(source, home).into_iter();
    edges
        .filter(|(_, module)| table.iter().any(|(known, _)| known == module))
        .filter(|(_, module)| !allowed.contains(&module.as_str()))
        .map(|(line, module)| source.fault(line, format!("{home} may not import {module}")))
        .collect()
}

/// A table whose rows can be put into an order in which each uses only earlier ones has no cycle.
fn find_cycle<'a>(table: &[(&'a str, &[&str])]) -> Option<Vec<&'a str>> {
    let mut left: Vec<&(&str, &[&str])> = table.iter().collect();
    loop {
        let waiting: Vec<&str> = left.iter().map(|(module, _)| *module).collect();
        let before = left.len();
        left.retain(|(_, uses)| uses.iter().any(|module| waiting.contains(module)));
        if left.is_empty() {
            return None;
        }
        if left.len() == before {
            return Some(left.iter().map(|(module, _)| *module).collect());
        }
    }
}

#[test]
fn modules_use_only_the_layers_below_them() {
    for (folder, table) in [
        ("crates/chorus-hub/src/", HUB),
        ("crates/chorus-server/src/", SERVER),
        ("crates/chorus-wire/src/", WIRE),
    ] {
        assert_eq!(find_cycle(table), None, "{folder}");
        keep(|source| forbidden_edges(source, folder, table));
    }
    let check = |source: &Source| forbidden_edges(source, "crates/chorus-hub/src/", HUB);
    let store = "crates/chorus-hub/src/store/log.rs";
    proves(
        check,
        store,
        "use crate::market::jobs::JobState;",
        "use crate::clock::Clock;",
    );
    proves(
        check,
        store,
        "use crate::{clock, delivery::Queue};",
        "use crate::{clock, Result};",
    );
    let envelope = "crates/chorus-hub/src/envelope/send.rs";
    proves(
        check,
        envelope,
        "use crate::channel::post;",
        "use crate::{delivery, store};",
    );
    let unknown = Source::new("crates/chorus-hub/src/unlisted.rs", "//! In no row.");
    assert!(
        !check(&unknown).is_empty(),
        "a module that is in no row is a fault"
    );
}

#[test]
fn a_planted_cycle_is_found() {
    let table: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &[])];
    assert_eq!(find_cycle(table), Some(vec!["a", "b", "c"]));
    let table: &[(&str, &[&str])] = &[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])];
    assert_eq!(find_cycle(table), None);
}
