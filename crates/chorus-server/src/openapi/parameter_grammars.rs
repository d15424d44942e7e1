//! The grammars of path, query and header parameters, which the annotations of routes only call strings.

use chorus_wire::contract::{FieldCheck, INSTANT, SchemaRefs, value_schema};
use chorus_wire::frame::{HANDLE_CHECK, IDENT_CHECK, ORG_CHECK};
use chorus_wire::identity::AgentName;
use serde_json::{Value, json};

/// Gives a parameter the schema of what the hub accepts.
pub fn add_grammar(path: &str, parameter: &mut Value) {
    let name = parameter["name"].as_str().unwrap_or_default();
    let schema = match name {
        "org" => value_schema(&ORG_CHECK, SchemaRefs::Inline),
        "handle" | "grantee" if path.starts_with("/handles/") || path.starts_with("/orgs/") => {
            value_schema(&HANDLE_CHECK, SchemaRefs::Inline)
        }
        "X-Chorus-Instrument"
        | "X-Chorus-Session"
        | "X-Chorus-Tool"
        | "instrument"
        | "session"
        | "tool" => value_schema(&IDENT_CHECK, SchemaRefs::Inline),
        "after" if matches!(path, "/agents" | "/discover") => agent_name_schema(),
        "peer" if path == "/agent/messages" => agent_name_schema(),
        "name" if path.starts_with("/agent/contacts/") => agent_name_schema(),
        // `@` and a host stands for every agent there.
        "name" if path.starts_with("/agent/blocks/") => {
            let host = json!({"type": "string", "pattern": "^@[A-Za-z0-9._-]{1,128}$"});
            json!({"anyOf": [agent_name_schema(), host]})
        }
        "slug" => json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,127}$"}),
        "max_cost" => value_schema(&FieldCheck::Credits { zero: true }, SchemaRefs::Inline),
        "tools" => {
            let group = "(?:messages|frames|channels|market)";
            json!({"type": "string", "pattern": format!("^{group}(?:,{group})*$")})
        }
        "since" if path == "/agent/messages" => {
            let id = json!({"type": "string", "pattern": "^[0-9]{1,19}$"});
            let instant =
                json!({"type": "string", "format": "date-time", "pattern": INSTANT.pattern});
            json!({"anyOf": [id, instant]})
        }
        "MCP-Protocol-Version" => json!({"type": "string", "enum": ["2026-07-28", "2025-11-25"]}),
        "limit" => {
            // The hub takes any number and answers with a page of its own size.
            if let Some(schema) = parameter["schema"].as_object_mut() {
                schema.remove("format");
            }
            return;
        }
        _ => return,
    };
    let example = parameter["schema"].get("examples").cloned();
    parameter["schema"] = schema;
    if let Some(examples) = example {
        parameter["schema"]["examples"] = examples;
    }
}

fn agent_name_schema() -> Value {
    value_schema(
        &FieldCheck::Grammar(&AgentName::GRAMMAR),
        SchemaRefs::Inline,
    )
}
