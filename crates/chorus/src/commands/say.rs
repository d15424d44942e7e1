//! `chorus say`: what an agent says to a callback (CHN-23…33, R-71).

use super::{channel::text, secret};
use crate::{cli::Common, fail::Fail, out, session};
use chorus_client::channel::{Callback, Kept, Say};
use chorus_wire::channel::event::{Callback as Event, Identity};
use chorus_wire::secret::Secret;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The callback's URL unless it comes from elsewhere, then the text
    words: Vec<String>,
    /// Read the callback from this file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "channel")]
    callback: Option<String>,
    /// Answer the last delivery of this channel, by its id or name; otherwise the last delivery of all
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// The text is what you are doing
    #[arg(long, group = "kind")]
    status: bool,
    /// You call this tool; --id and --args belong to it
    #[arg(long, group = "kind", value_name = "TOOL")]
    tool_call: Option<String>,
    /// The text is the result of the call with this --id
    #[arg(long, group = "kind", requires = "id")]
    tool_result: bool,
    /// The text is what went wrong
    #[arg(long, group = "kind")]
    error: bool,
    /// Send events from standard input over one connection, a JSON object a line
    #[arg(long, group = "kind")]
    ndjson: bool,
    /// What pairs a call with its result; made up for a call without it
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The arguments of a call, a JSON object
    #[arg(long, value_name = "JSON", requires = "tool_call")]
    args: Option<String>,
    /// A word for what went wrong, such as tool_error
    #[arg(long, value_name = "CODE", requires = "error")]
    code: Option<String>,
    /// How you present yourself
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

pub async fn run(common: &Common, mut args: Args) -> Result<(), Fail> {
    let url = callback(common, &mut args)?;
    let mut back = Callback::open(&url)?;
    if args.ndjson {
        return stream(common, &mut back).await;
    }
    let mut say = event(&args)?;
    say.agent = args.name.map(|name| Identity {
        name: Some(name),
        avatar: None,
        capabilities: Vec::new(),
    });
    // The hub's own reader: what it would refuse is refused before anything is sent.
    let line = chorus_client::channel::print(&say);
    Event::parse(line.as_bytes()).map_err(|e| Fail::usage(e.message))?;
    back.say(&say).await?;
    let said: Value = serde_json::from_str(&line).unwrap_or_default();
    out::say(common.json, &said, || "said".into());
    Ok(())
}

/// Where it goes: named, or where the last delivery came from.
fn callback(common: &Common, args: &mut Args) -> Result<Secret, Fail> {
    if let Some(file) = &args.callback {
        if file == "-" && args.words == ["-"] {
            return Err(Fail::usage(
                "standard input is either the callback or the text",
            ));
        }
        let word = if file == "-" {
            file.clone()
        } else {
            format!("@{file}")
        };
        return secret::url(&word)?.ok_or_else(|| Fail::usage("there is no callback"));
    }
    if args.channel.is_none() && args.words.first().is_some_and(|word| secret::is_url(word)) {
        return Ok(Secret::new(args.words.remove(0)));
    }
    let kept = Kept::all(&session::place(common)?)?;
    let meant = kept.into_iter().rev().find(|kept| match &args.channel {
        None => true,
        Some(channel) => kept.channel == *channel || kept.name.as_ref() == Some(channel),
    });
    let none =
        || Fail::usage("no delivery to answer; chorus listen keeps the last one of every channel");
    meant.map(|kept| kept.callback).ok_or_else(none)
}

fn event(args: &Args) -> Result<Say, Fail> {
    let id = || {
        args.id
            .clone()
            .unwrap_or_else(chorus_client::market::new_id)
    };
    if let Some(tool) = &args.tool_call {
        let given = args.args.as_deref().map_or(Ok(json!({})), |text| {
            chorus_wire::json::value(text)
                .map_err(|e| Fail::usage(format!("--args: {}", e.message)))
        })?;
        let Value::Object(given) = given else {
            return Err(Fail::usage("--args must be a JSON object"));
        };
        let given: Map<String, Value> = given;
        return Ok(Say::tool_call(id(), tool, &given));
    }
    if args.words.is_empty() && !args.status {
        return Err(Fail::usage("what is to be said?"));
    }
    let text = text(&args.words)?;
    Ok(match (args.status, args.tool_result, args.error) {
        (true, _, _) => Say::status(text),
        (_, true, _) => Say::tool_result(id(), text),
        (_, _, true) => Say::error(text, args.code.clone()),
        (false, false, false) => Say::message(text),
    })
}

/// Every line is checked before it goes out; what went out before a bad one stands.
async fn stream(common: &Common, back: &mut Callback) -> Result<(), Fail> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut stream = back.stream();
    let mut count = 0u64;
    while let Some(line) = lines
        .next_line()
        .await
        .map_err(|e| Fail::usage(format!("standard input: {e}")))?
    {
        if line.trim().is_empty() {
            continue;
        }
        let Event { event, agent } = match Event::parse(line.as_bytes()) {
            Ok(said) => said,
            Err(e) => {
                stream.finish().await?;
                return Err(Fail::usage(format!("line {}: {}", count + 1, e.message)));
            }
        };
        stream.say(&Say { event, agent }).await?;
        count += 1;
    }
    stream.finish().await?;
    out::say(common.json, &json!({"events": count}), || {
        format!("said {count}")
    });
    Ok(())
}
