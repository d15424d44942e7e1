//! `GET /schemas` and `GET /schemas/{name}.json`: a JSON Schema of every public object, taken from the OpenAPI document.

use crate::http::reply::{self, ApiResult};
use crate::http::{api_error::ApiError, app_state::AppState, path_params::PathParam};
use axum::{extract::State, response::Response};
use bytes::Bytes;
use chorus_wire::ErrorCode;
use chorus_wire::reply::FailureReply;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

/// Where components are in the OpenAPI document, and definitions in a schema of its own.
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_schemas))
        .routes(routes!(get_schema))
}

/// The published schemas.
#[derive(Serialize, ToSchema)]
struct SchemaList {
    schemas: Vec<SchemaLink>,
}

/// One schema.
#[derive(Serialize, ToSchema)]
struct SchemaLink {
    #[schema(example = "envelope")]
    name: String,
    #[schema(example = "/schemas/envelope.json")]
    path: String,
}

/// List the JSON Schemas
///
/// The names of the public objects and the paths of their schemas.
#[utoipa::path(get, path = "/schemas", tag = "ops", responses((status = 200, description = "The names and paths.", body = SchemaList)))]
async fn list_schemas(State(state): State<AppState>) -> ApiResult {
    let schemas = list_names(stored_schemas(&state))
        .into_iter()
        .map(|name| SchemaLink {
            path: format!("/schemas/{name}.json"),
            name,
        })
        .collect();
    reply::bare_json(StatusCode::OK, &SchemaList { schemas })
}

/// Get a JSON Schema
///
/// The JSON Schema (2020-12) of a public object, with the schemas that it refers to in `$defs`.
#[utoipa::path(get, path = "/schemas/{file}", tag = "ops",
    params(("file" = String, Path, description = "The name of the object and `.json`.", example = "envelope.json")),
    responses((status = 200, description = "The schema.", content_type = "application/schema+json", body = Object),
        (status = 404, description = "There is no such object.", body = FailureReply)))]
async fn get_schema(
    State(state): State<AppState>,
    PathParam(file): PathParam,
) -> Result<Response, ApiError> {
    let name = file.strip_suffix(".json").ok_or(ErrorCode::NotFound)?;
    let name = find_component(stored_schemas(&state), name).ok_or(ErrorCode::NotFound)?;
    // Built once: a schema of a hub never changes, and some are assembled from many definitions.
    let files = state
        .schema_files
        .get_or_init(|| build_files(stored_schemas(&state), &state.public_url));
    let schema = files.get(name).ok_or(ErrorCode::NotFound)?.clone();
    let mut response = reply::json_response(StatusCode::OK, schema);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/schema+json"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    Ok(response)
}

fn stored_schemas(state: &AppState) -> &Value {
    state.published_schemas.get().unwrap_or(&Value::Null)
}

/// Every schema as a document of its own, by the name of its component.
fn build_files(schemas: &Value, base_url: &str) -> BTreeMap<String, Bytes> {
    let components = schemas.as_object().into_iter().flat_map(Map::keys);
    components
        .filter_map(|name| {
            let schema = find_schema(schemas, name, base_url)?;
            Some((name.clone(), Bytes::from(schema.to_string())))
        })
        .collect()
}

/// The component that a client means: by its own name, in lower case with hyphens, or as the documents write it.
fn find_component<'s>(schemas: &'s Value, name: &str) -> Option<&'s str> {
    // The documents call it `envelope.schema.json`.
    let name = name.strip_suffix(".schema").unwrap_or(name);
    schemas
        .as_object()?
        .keys()
        .find(|component| to_kebab_case(component) == name || *component == name)
        .map(String::as_str)
}

/// The names of the published schemas, in lower case with hyphens.
pub fn list_names(schemas: &Value) -> Vec<String> {
    schemas
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(|name| to_kebab_case(name))
        .collect()
}

/// The schema of this name as a document of its own: what it refers to is in `$defs`.
pub fn find_schema(schemas: &Value, name: &str, base_url: &str) -> Option<Value> {
    let components = schemas.as_object()?;
    let component = find_component(schemas, name)?;
    let schema = components.get(component)?;
    let mut definitions = Map::new();
    collect_definitions(schema, components, &mut definitions);
    let file = to_kebab_case(component);
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("{}/schemas/{file}.json", base_url.trim_end_matches('/')),
        "title": component,
    });
    if let (Some(root), Some(schema)) = (root.as_object_mut(), schema.as_object()) {
        root.extend(schema.clone());
        if !definitions.is_empty() {
            root.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
    point_to_definitions(&mut root);
    Some(root)
}

fn collect_definitions(
    schema: &Value,
    components: &Map<String, Value>,
    found: &mut Map<String, Value>,
) {
    let referenced = schema["$ref"]
        .as_str()
        .and_then(|pointer| pointer.strip_prefix(COMPONENTS));
    if let Some(name) = referenced
        && !found.contains_key(name)
        && let Some(target) = components.get(name)
    {
        found.insert(name.to_owned(), target.clone());
        collect_definitions(target, components, found);
    }
    match schema {
        Value::Object(map) => map
            .values()
            .for_each(|value| collect_definitions(value, components, found)),
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_definitions(item, components, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn point_to_definitions(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(pointer)) = map.get_mut("$ref")
                && let Some(name) = pointer.strip_prefix(COMPONENTS)
            {
                *pointer = format!("{DEFINITIONS}{name}");
            }
            map.values_mut().for_each(point_to_definitions);
        }
        Value::Array(items) => items.iter_mut().for_each(point_to_definitions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `AgentCard` as `agent-card`.
fn to_kebab_case(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 4);
    for (index, c) in name.chars().enumerate() {
        if c.is_uppercase() && index > 0 && !kebab.ends_with('-') {
            kebab.push('-');
        }
        match c {
            '_' => kebab.push('-'),
            other => kebab.extend(other.to_lowercase()),
        }
    }
    kebab.replace("--", "-")
}
