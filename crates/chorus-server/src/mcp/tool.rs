//! A tool: what a model is told of it, what it may be given, and what it does.

use super::refusal::Refusal;
use super::schema;
use chorus_wire::limits;
use futures_util::future::{BoxFuture, FutureExt};
use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, Tool,
    ToolAnnotations,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;

/// What a tool does to the world, for hosts that ask their user before some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Looks and changes nothing.
    Reads,
    /// Others hear of it, each time it is called.
    Speaks,
    /// Called again with the same arguments it changes nothing more.
    Settles,
    /// What was there before is replaced.
    Replaces,
}

impl Nature {
    fn hints(self, title: &str) -> ToolAnnotations {
        let (reads, replaces, repeats, outside) = match self {
            Self::Reads => (true, false, true, false),
            Self::Speaks => (false, false, false, true),
            Self::Settles => (false, false, true, true),
            Self::Replaces => (false, true, false, false),
        };
        let hints = ToolAnnotations::with_title(title)
            .read_only(reads)
            .destructive(replaces);
        hints.idempotent(repeats).open_world(outside)
    }
}

/// The line for whoever reads along; what is longer is in the data.
const LINE_CHARS: usize = 160;

/// How many faults of one call are told: beyond it the whole call is wrong.
const FAULTS_TOLD: usize = 5;

/// What a tool came to: a line for whoever reads along, and the data.
pub struct Said<T> {
    pub text: String,
    pub data: T,
}

impl<T> Said<T> {
    pub fn new(text: impl Into<String>, data: T) -> Self {
        let mut text: String = text.into();
        if let Some((end, _)) = text.char_indices().nth(LINE_CHARS) {
            text.replace_range(end.., "…");
        }
        Self { text, data }
    }
}

type Run<C> =
    Box<dyn Fn(C, Value) -> BoxFuture<'static, Result<Said<Value>, Refusal>> + Send + Sync>;

/// One tool of a server whose callers are known as `C`.
pub struct Verb<C> {
    pub tool: Tool,
    takes: Option<Validator>,
    /// Names that a model may well use instead, with those that are meant.
    also: &'static [(&'static str, &'static str)],
    run: Run<C>,
}

impl<C: Send + 'static> Verb<C> {
    pub fn new<A, T, F, W>(
        name: &'static str,
        title: &str,
        nature: Nature,
        about: &'static str,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        T: Serialize + ToSchema,
        F: Fn(C, A) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Said<T>, Refusal>> + Send + 'static,
    {
        let input = schema::input::<A>();
        let takes = jsonschema::options()
            .build(&Value::Object(input.clone()))
            .ok();
        let tool = Tool::new(name, about, Arc::new(input))
            .with_title(title)
            .with_raw_output_schema(Arc::new(schema::output::<T>()))
            .with_annotations(nature.hints(title));
        Self {
            tool,
            takes,
            also: &[],
            run: Box::new(move |call, given| erased(&run, call, given)),
        }
    }

    pub fn also(self, also: &'static [(&'static str, &'static str)]) -> Self {
        Self { also, ..self }
    }

    /// Checks the arguments, runs, and says what came of it; a refusal is a result too.
    pub async fn call(&self, call: C, given: Option<JsonObject>) -> CallToolResult {
        let given = self.meant(given.unwrap_or_default());
        let outcome = match self.fault(&given) {
            Some(refusal) => Err(refusal),
            None => (self.run)(call, given).await,
        };
        metrics::counter!("chorus_tool_calls_total", "tool" => self.tool.name.clone(), "refused" => outcome.is_err().to_string())
            .increment(1);
        outcome.map_or_else(Refusal::into_result, told)
    }

    fn meant(&self, mut given: JsonObject) -> Value {
        for (other, meant) in self.also {
            if !given.contains_key(*meant)
                && let Some(value) = given.remove(*other)
            {
                given.insert((*meant).to_owned(), value);
            }
        }
        for (name, value) in &mut given {
            if self.is_whole(name)
                && let Some(whole) = value.as_f64().filter(|_| value.is_f64()).and_then(whole)
            {
                *value = whole;
            }
        }
        Value::Object(given)
    }

    fn is_whole(&self, argument: &str) -> bool {
        let schema = self
            .tool
            .input_schema
            .get("properties")
            .and_then(|all| all.get(argument)?.get("type"));
        match schema {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
            kind => kind.is_some_and(|kind| kind == "integer"),
        }
    }

    /// What the arguments are refused for, by name; several at once, so that one more call mends them all.
    fn fault(&self, given: &Value) -> Option<Refusal> {
        let faults = self.takes.as_ref()?.iter_errors(given).take(FAULTS_TOLD);
        faults.map(|fault| named(&fault)).reduce(Refusal::and)
    }
}

/// `5.0` is an integer to a schema, and to some models the way to write one.
fn whole(number: f64) -> Option<Value> {
    let exact = number.fract() == 0.0 && number.abs() <= limits::WHOLE_NUMBER as f64;
    exact.then(|| Value::from(number as i64))
}

fn named(fault: &ValidationError<'_>) -> Refusal {
    let at = fault
        .instance_path()
        .as_str()
        .trim_start_matches('/')
        .replace('/', ".");
    let inside = |field: &str| {
        if at.is_empty() {
            field.to_owned()
        } else {
            format!("{at}.{field}")
        }
    };
    if let ValidationErrorKind::Required { property } = fault.kind() {
        return Refusal::argument(
            inside(property.as_str().unwrap_or_default()),
            "it is required",
        );
    }
    if let ValidationErrorKind::AdditionalProperties { unexpected } = fault.kind() {
        let field = unexpected.first().map(String::as_str).unwrap_or_default();
        return Refusal::argument(inside(field), "this tool has no such argument");
    }
    // Without the value itself: it may be long, and it is the caller's own.
    Refusal::argument(at, fault.masked_with("it").to_string())
}

fn erased<C, A, T, F, W>(
    run: &F,
    call: C,
    given: Value,
) -> BoxFuture<'static, Result<Said<Value>, Refusal>>
where
    A: DeserializeOwned,
    T: Serialize,
    F: Fn(C, A) -> W,
    W: Future<Output = Result<Said<T>, Refusal>> + Send + 'static,
{
    match serde_json::from_value::<A>(given) {
        // The schema has let it pass, so this is a number out of range or its like.
        Err(fault) => {
            std::future::ready(Err(Refusal::argument("arguments", fault.to_string()))).boxed()
        }
        Ok(given) => {
            let work = run(call, given);
            async move {
                let Said { text, data } = work.await?;
                let data = serde_json::to_value(data).map_err(chorus_wire::Error::internal)?;
                Ok(Said { text, data })
            }
            .boxed()
        }
    }
}

/// The data twice: once for programs, once as text for hosts that show their model nothing else.
fn told(said: Said<Value>) -> CallToolResult {
    let mut result = CallToolResult::structured(said.data);
    result.content.insert(0, ContentBlock::text(said.text));
    result
}

/// Every tool of a list as a host sees it.
pub fn shown<C>(verbs: &[Verb<C>]) -> Vec<Tool> {
    verbs.iter().map(|verb| verb.tool.clone()).collect()
}

/// Calls one of `verbs` by its name; a name that is none of theirs is a fault of the protocol.
pub async fn call<C: Send + 'static>(
    verbs: &[Verb<C>],
    by: C,
    asked: CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    match verbs.iter().find(|verb| verb.tool.name == asked.name) {
        Some(verb) => Ok(verb.call(by, asked.arguments).await.into()),
        None => Err(ErrorData::invalid_params(
            format!("there is no tool {}", asked.name),
            None,
        )),
    }
}
