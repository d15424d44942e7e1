//! A minimal MCP host for tests: speaks both protocol revisions and checks every result against the tool's schema.

use crate::support::actors::{Agent, Answer, Caller};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// 2025-11-25: a handshake, then requests.
    Handshake,
    /// 2026-07-28: every request says everything.
    Stateless,
}

impl Revision {
    pub const BOTH: [Self; 2] = [Self::Handshake, Self::Stateless];

    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

#[derive(Clone)]
pub struct McpHost {
    caller: Caller,
    path: String,
    pub revision: Revision,
    more: BTreeMap<&'static str, String>,
    /// Input and output schema of each tool, as the server shows them.
    tools: BTreeMap<String, Value>,
    /// What must never be in an answer.
    secrets: Vec<String>,
}

/// What a tool call came to.
#[derive(Debug)]
pub struct ToolResult(pub Value);

/// A tool, arguments that it refuses, and what the refusal names.
pub type InvalidCall = (&'static str, Value, &'static str);

impl ToolResult {
    /// What it answered with.
    #[track_caller]
    pub fn data(&self) -> Value {
        assert_ne!(self.0["isError"], true, "{}", self.0);
        self.0["structuredContent"].clone()
    }

    /// The sentence of a refusal, which must name this argument.
    #[track_caller]
    pub fn refused(&self, field: &str) -> String {
        assert_eq!(self.0["isError"], true, "{}", self.0);
        assert!(self.0.get("structuredContent").is_none(), "{}", self.0);
        let said = self.0["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(said.contains(field), "{field} is not named: {said}");
        said
    }
}

impl McpHost {
    pub fn new(caller: &Caller, path: &str, revision: Revision) -> Self {
        let (caller, path) = (caller.clone(), path.to_owned());
        Self {
            caller,
            path,
            revision,
            more: BTreeMap::new(),
            tools: BTreeMap::new(),
            secrets: Vec::new(),
        }
    }

    /// The hub's tools with an agent's key, listed once.
    pub async fn of(agent: &Agent) -> Self {
        let mut host = Self::new(agent, "/mcp", Revision::Stateless);
        host.secrets.push(agent.key.clone());
        host.with_tool_list().await
    }

    /// A room's tools with the credential of a delivery.
    pub async fn for_delivery(hub: &Hub, delivery: &Value) -> Self {
        let bearer = delivery["mcp"]["headers"]["Authorization"]
            .as_str()
            .unwrap()
            .strip_prefix("Bearer ")
            .unwrap();
        let path = delivery["mcp"]["url"]
            .as_str()
            .unwrap()
            .strip_prefix(&hub.url)
            .unwrap();
        let mut host = Self::new(&hub.anonymous().with_key(bearer), path, Revision::Stateless);
        host.secrets.push(bearer.to_owned());
        host.with_tool_list().await
    }

    async fn with_tool_list(mut self) -> Self {
        let tools = self.result("tools/list", json!({})).await["tools"].clone();
        self.tools = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| (tool["name"].as_str().unwrap().into(), tool.clone()))
            .collect();
        self
    }

    /// What a tool takes.
    pub fn schema(&self, name: &str) -> &Value {
        &self.tools[name]["inputSchema"]
    }

    /// What a tool says of itself.
    pub fn description(&self, name: &str) -> &str {
        self.tools[name]["description"].as_str().unwrap()
    }

    pub fn names(&self) -> Vec<&str> {
        self.tools.keys().map(String::as_str).collect()
    }

    /// Every tool says enough of itself to be used, and swallows no argument that it does not know.
    pub async fn is_well_described(&self) {
        for tool in self.tools.values() {
            let name = tool["name"].as_str().unwrap();
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(
                    tool[schema]["type"], "object",
                    "{name} {schema}: {}",
                    tool[schema]
                );
                assert!(jsonschema::meta::is_valid(&tool[schema]), "{name} {schema}");
                jsonschema::validator_for(&tool[schema])
                    .unwrap_or_else(|e| panic!("{name} {schema}: {e}"));
            }
            // Clients read the fields of a result from the root, and drop those of a part of `allOf`.
            assert_eq!(tool["outputSchema"].get("allOf"), None, "{name}");
            // Some vendors of models refuse or ignore these; unknown arguments are refused below all the same.
            let input = tool["inputSchema"].to_string();
            for keyword in [
                "additionalProperties",
                "$ref",
                "oneOf",
                "anyOf",
                "allOf",
                "format",
                "prefixItems",
            ] {
                assert!(
                    !input.contains(&format!("\"{keyword}\":")),
                    "{name}: {keyword}"
                );
            }
            assert!(tool["description"].as_str().unwrap().len() > 60, "{name}");
            assert!(tool["title"].is_string(), "{name}");
            // A hint that is not there has the protocol's default.
            let hints = tool["annotations"].as_object().unwrap();
            assert!(hints.values().all(Value::is_boolean), "{name}: {hints:?}");
            for (argument, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
                assert!(
                    schema["description"].is_string(),
                    "{name}.{argument} says nothing"
                );
                assert!(schema["type"].is_string(), "{name}.{argument}: {schema}");
            }
            self.call(name, json!({"surely_not": 1}))
                .await
                .refused("surely_not");
        }
    }

    pub fn with_revision(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    pub fn with(mut self, header: &'static str, value: &str) -> Self {
        self.more.insert(header, value.to_owned());
        self
    }

    /// One request as this revision writes it.
    pub async fn ask(&self, method: &str, mut params: Value) -> Answer {
        let mut request = self.caller.request("POST", &self.path);
        request = request.header("accept", "application/json, text/event-stream");
        request = request.header("mcp-protocol-version", self.revision.name());
        if self.revision == Revision::Stateless {
            request = request.header("mcp-method", method);
            if let Some(name) = params
                .get("name")
                .or(params.get("uri"))
                .and_then(Value::as_str)
            {
                request = request.header("mcp-name", name);
            }
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.revision.name());
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "story", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        for (name, value) in &self.more {
            request = request.header(*name, value);
        }
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        Answer::of(request.json(&body)).await
    }

    /// The result of a request that must succeed.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(
            answer
                .header("content-type")
                .starts_with("application/json"),
            "{answer:?}"
        );
        assert!(
            answer.headers.get("mcp-session-id").is_none(),
            "nothing is kept: {answer:?}"
        );
        for secret in &self.secrets {
            assert!(!answer.text.contains(secret.as_str()), "a secret came back");
        }
        let body = answer.json();
        assert_eq!(
            (&body["jsonrpc"], &body["id"]),
            (&json!("2.0"), &json!(7)),
            "{body}"
        );
        assert!(body.get("error").is_none(), "{body}");
        body["result"].clone()
    }

    /// The code of a protocol error.
    pub async fn error_code(&self, method: &str, params: Value) -> i64 {
        let body = self.ask(method, params).await.json();
        body["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("{body}"))
    }

    /// Calls a tool. What it answers with must be what it said it answers with.
    pub async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        let result = self
            .result("tools/call", json!({"name": name, "arguments": arguments}))
            .await;
        let tool = self
            .tools
            .get(name)
            .unwrap_or_else(|| panic!("no tool {name}"));
        if result["isError"] != true {
            let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
            let faults: Vec<String> = schema
                .iter_errors(&result["structuredContent"])
                .map(|fault| format!("{}: {fault}", fault.instance_path().as_str()))
                .collect();
            assert!(faults.is_empty(), "{name}: {faults:?} in {result}");
            let texts: Vec<&str> = result["content"]
                .as_array()
                .unwrap()
                .iter()
                .map(|block| block["text"].as_str().unwrap())
                .collect();
            assert!(texts[0].len() < 200, "{name} has no short text: {texts:?}");
            let as_text: Value = serde_json::from_str(texts[1]).unwrap();
            assert_eq!(as_text, result["structuredContent"], "{name}");
        }
        ToolResult(result)
    }
}
