//! A tool: its description, its schemas, the check of its arguments and the function it runs.

use super::schema;
use super::tool_error::ToolError;
use super::tool_span::CallTrace;
use crate::http::route_scopes::RequiredScope;
use chorus_wire::contract::{self, CheckContext, WireObject};
use futures_util::future::{BoxFuture, FutureExt};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
    RequestMetaObject, Tool, ToolAnnotations,
};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;

/// The effect of a tool; hosts ask their user before some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Changes nothing.
    ReadOnly,
    /// Reaches other agents, each time it is called.
    Sends,
    /// A repeated call with the same arguments changes nothing more.
    Idempotent,
    /// Replaces existing content.
    Destructive,
}

impl ToolKind {
    fn annotations(self) -> ToolAnnotations {
        // Only what differs from the protocol's defaults: not read-only, destructive, not idempotent, open world.
        let hints = ToolAnnotations::default();
        match self {
            Self::ReadOnly => hints.read_only(true).open_world(false),
            Self::Sends => hints.destructive(false),
            Self::Idempotent => hints.destructive(false).idempotent(true),
            Self::Destructive => hints.open_world(false),
        }
    }
}

/// Max characters of the summary line; longer content is in the data.
const SUMMARY_CHARS: usize = 160;

/// Max argument errors reported for one call.
const MAX_REPORTED_FAULTS: usize = 5;

/// The result of a tool: a summary line for the user, and the data.
pub struct ToolOutput<T> {
    pub text: String,
    pub data: T,
}

impl<T> ToolOutput<T> {
    pub fn new(text: impl Into<String>, data: T) -> Self {
        let mut text: String = text.into();
        if let Some((end, _)) = text.char_indices().nth(SUMMARY_CHARS) {
            text.replace_range(end.., "…");
        }
        Self { text, data }
    }
}

type ToolRunner<C> =
    Box<dyn Fn(C, &str) -> BoxFuture<'static, Result<ToolOutput<Value>, ToolError>> + Send + Sync>;

/// One tool of a server; `C` is its call context.
pub struct ToolDefinition<C> {
    pub tool: Tool,
    /// What the tool asks of the caller's key; `None` only for the tools of a channel, whose tokens have no scopes.
    pub required_scope: Option<RequiredScope>,
    /// Other names that models use for an argument, with the argument they mean.
    aliases: &'static [(&'static str, &'static str)],
    run: ToolRunner<C>,
}

impl<C: Send + 'static> ToolDefinition<C> {
    pub fn new<A, T, F, W>(
        name: &'static str,
        title: &str,
        kind: ToolKind,
        description: &'static str,
        run: F,
    ) -> Self
    where
        A: WireObject,
        T: Serialize + ToSchema,
        F: Fn(C, A) -> W + Send + Sync + 'static,
        W: Future<Output = Result<ToolOutput<T>, ToolError>> + Send + 'static,
    {
        let tool = Tool::new(name, description, Arc::new(schema::input_schema(A::SHAPE)))
            .with_title(title)
            .with_raw_output_schema(Arc::new(schema::output_schema::<T>()))
            .with_annotations(kind.annotations());
        Self {
            tool,
            required_scope: None,
            aliases: &[],
            run: Box::new(move |call, arguments| parse_and_run(&run, call, arguments)),
        }
    }

    /// The tools with the scope that they need.
    pub fn with_scope(
        required_scope: RequiredScope,
        tools: Vec<Self>,
    ) -> impl Iterator<Item = Self> {
        tools.into_iter().map(move |tool| Self {
            required_scope: Some(required_scope),
            ..tool
        })
    }

    pub fn aliases(self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        Self { aliases, ..self }
    }

    /// Checks the arguments and runs the tool; an error becomes a result too.
    pub async fn call(&self, call: C, arguments: Option<JsonObject>) -> CallToolResult {
        let arguments = self.resolve_aliases(arguments.unwrap_or_default());
        // The library has parsed the message already. Printed again, its arguments go through the parser of requests.
        let outcome = (self.run)(call, &Value::Object(arguments).to_string()).await;
        metrics::counter!("chorus_tool_calls_total", "tool" => self.tool.name.clone(), "refused" => outcome.is_err().to_string())
            .increment(1);
        outcome.map_or_else(ToolError::into_result, to_call_result)
    }

    fn resolve_aliases(&self, mut arguments: JsonObject) -> JsonObject {
        for (alias, argument) in self.aliases {
            if !arguments.contains_key(*argument)
                && let Some(value) = arguments.remove(*alias)
            {
                arguments.insert((*argument).to_owned(), value);
            }
        }
        arguments
    }
}

/// The arguments, or the errors in them, several at once, so that one corrected call can fix them all.
fn parse_arguments<A: WireObject>(text: &str) -> Result<A, ToolError> {
    let root = contract::parse_root(text.as_bytes())?;
    let object = root.as_object().ok_or(chorus_wire::ErrorCode::Internal)?;
    let faults = contract::list_faults(A::SHAPE, object, &CheckContext::default());
    let errors = faults
        .into_iter()
        .take(MAX_REPORTED_FAULTS)
        .map(ToolError::from);
    match errors.reduce(ToolError::merge_with) {
        Some(error) => Err(error),
        None => Ok(contract::parse_node(&root)?),
    }
}

fn parse_and_run<C, A, T, F, W>(
    run: &F,
    call: C,
    arguments: &str,
) -> BoxFuture<'static, Result<ToolOutput<Value>, ToolError>>
where
    A: WireObject,
    T: Serialize,
    F: Fn(C, A) -> W,
    W: Future<Output = Result<ToolOutput<T>, ToolError>> + Send + 'static,
{
    match parse_arguments(arguments) {
        Err(error) => std::future::ready(Err(error)).boxed(),
        Ok(arguments) => {
            let running = run(call, arguments);
            async move {
                let ToolOutput { text, data } = running.await?;
                let data = serde_json::to_value(data).map_err(chorus_wire::Error::internal)?;
                Ok(ToolOutput { text, data })
            }
            .boxed()
        }
    }
}

/// Contains the data twice: as structured content, and as text for hosts that show their model nothing else.
fn to_call_result(output: ToolOutput<Value>) -> CallToolResult {
    let mut result = CallToolResult::structured(output.data);
    result.content.insert(0, ContentBlock::text(output.text));
    result
}

/// The tools as a host lists them.
pub fn tool_list<C>(tools: &[ToolDefinition<C>]) -> Vec<Tool> {
    tools
        .iter()
        .map(|definition| definition.tool.clone())
        .collect()
}

/// Calls one of `tools` by name; an unknown name is a protocol error. The metadata of the call names its trace.
pub async fn call_tool_by_name<C: Send + 'static>(
    tools: &[ToolDefinition<C>],
    caller: C,
    request: CallToolRequestParams,
    (trace, meta): (&CallTrace, &RequestMetaObject),
) -> Result<CallToolResponse, ErrorData> {
    match tools
        .iter()
        .find(|definition| definition.tool.name == request.name)
    {
        Some(definition) => {
            let call = definition.call(caller, request.arguments);
            let result = trace.run_tool(meta, &definition.tool.name, call).await;
            Ok(result.into())
        }
        None => Err(ErrorData::invalid_params(
            format!("there is no tool {}", request.name),
            None,
        )),
    }
}
