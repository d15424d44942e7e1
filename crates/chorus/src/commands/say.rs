//! `chorus say`: posts events to a channel's callback (CHN-23…33, R-71).

use super::channel::{PartsArg, read_parts, read_text};
use super::secret_url;
use crate::{cli::CommonArgs, command_client, fail::Fail, output};
use chorus_client::channel::{CallbackClient, OutgoingEvent, SavedCallback};
use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent, ChannelIdentity};
use chorus_wire::secret::Secret;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The callback's URL, unless another option names it, then the text
    words: Vec<String>,
    /// Read the callback from this file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "channel")]
    callback: Option<String>,
    /// Answer the last delivery of this channel, by its id or name; default: the last delivery of any channel
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Answer a delivery of this service, by the origin or host of its callback, or by 'ORIGIN NAME'
    #[arg(long, value_name = "ORIGIN", conflicts_with = "callback")]
    service: Option<String>,
    /// The text is a status: what you are doing
    #[arg(long, group = "kind")]
    status: bool,
    /// Report a call of this tool, with --id and --args
    #[arg(long, group = "kind", value_name = "TOOL")]
    tool_call: Option<String>,
    /// The text is the result of the call with this --id
    #[arg(long, group = "kind", requires = "id")]
    tool_result: bool,
    /// The text is an error message
    #[arg(long, group = "kind")]
    error: bool,
    /// Send events from standard input over one connection, one JSON object per line
    #[arg(long, group = "kind")]
    ndjson: bool,
    /// The id that pairs a call with its result; random for a call without it
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The arguments of a call, a JSON object
    #[arg(long, value_name = "JSON", requires = "tool_call")]
    args: Option<String>,
    /// Structured content beside the text: a JSON array of A2A parts, or @FILE
    #[arg(long, value_name = "JSON", conflicts_with = "kind", value_parser = read_parts)]
    parts: Option<PartsArg>,
    /// The error code, such as tool_error
    #[arg(long, value_name = "CODE", requires = "error")]
    code: Option<String>,
    /// The name to show as the author
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

pub async fn run(common: &CommonArgs, mut args: Args) -> Result<(), Fail> {
    let url = callback_url(common, &mut args)?;
    let mut callback = CallbackClient::from_url(&url)?;
    if args.ndjson {
        return stream_events(common, &mut callback).await;
    }
    let mut event = build_event(&args)?;
    event.agent = args.name.map(|name| ChannelIdentity {
        name: Some(name),
        avatar: None,
        capabilities: None,
    });
    // The same parser as the hub's: an event that the hub would refuse is not sent.
    let line = chorus_client::channel::print_event(&event);
    CallbackPost::parse(line.as_bytes()).map_err(|e| Fail::usage_error(e.message))?;
    callback.send_event(&event).await?;
    let output: Value = serde_json::from_str(&line).unwrap_or_default();
    output::print_result(common.json, &output, || "said".into());
    Ok(())
}

/// The callback's URL: the given one, or that of the last delivery.
fn callback_url(common: &CommonArgs, args: &mut Args) -> Result<Secret, Fail> {
    if let Some(file) = &args.callback {
        if file == "-" && args.words == ["-"] {
            return Err(Fail::usage_error(
                "standard input is either the callback or the text",
            ));
        }
        let arg = if file == "-" {
            file.clone()
        } else {
            format!("@{file}")
        };
        return secret_url::read_url(&arg)?
            .ok_or_else(|| Fail::usage_error("there is no callback"));
    }
    if args.channel.is_none()
        && args.service.is_none()
        && args
            .words
            .first()
            .is_some_and(|arg| secret_url::is_url(arg))
    {
        return Ok(Secret::new(args.words.remove(0)));
    }
    let saved = SavedCallback::read_all(&command_client::identity_files(common)?)?;
    choose_delivery(saved, args).map(|saved| saved.callback)
}

/// The newest delivery that the options describe. A channel that two services use must be named with its service: one of
/// them may only pretend to be that channel.
fn choose_delivery(saved: Vec<SavedCallback>, args: &Args) -> Result<SavedCallback, Fail> {
    let is_chosen = |saved: &SavedCallback| {
        let is_channel = args.channel.as_ref().is_none_or(|channel| {
            saved.channel == *channel || saved.name.as_ref() == Some(channel)
        });
        let is_service = args.service.as_ref().is_none_or(|service| {
            let origin = saved.origin();
            // Never by the name alone: a service chooses its name, and could choose that of another.
            *service == origin
                || *service == full_service(saved)
                || origin
                    .split_once("://")
                    .is_some_and(|(_, host)| host == service)
        });
        is_channel && is_service
    };
    let mut found: Vec<SavedCallback> = saved.into_iter().filter(is_chosen).collect();
    if args.channel.is_some() && found.len() > 1 {
        let choices = found.iter().map(|saved| {
            let service = full_service(saved);
            let quote = if service.contains(' ') { "'" } else { "" };
            format!(
                "--channel {} --service {quote}{service}{quote}",
                saved.channel
            )
        });
        return Err(Fail::usage_error(format!(
            "several channels are called so; say which one:\n{}",
            choices.collect::<Vec<_>>().join("\n")
        )));
    }
    found.pop().ok_or_else(|| {
        Fail::usage_error(
            "no delivery to answer; chorus listen keeps the last one of every channel",
        )
    })
}

/// The origin of a callback and the name of its service, if the delivery had one.
fn full_service(saved: &SavedCallback) -> String {
    let name = saved.service.as_deref().unwrap_or_default();
    format!("{} {}", saved.origin(), output::escape_controls(name))
        .trim_end()
        .to_owned()
}

fn build_event(args: &Args) -> Result<OutgoingEvent, Fail> {
    let id = || {
        args.id
            .clone()
            .unwrap_or_else(chorus_client::market::random_id)
    };
    if let Some(tool) = &args.tool_call {
        let tool_args = args.args.as_deref().map_or(Ok(json!({})), |text| {
            chorus_wire::json::parse_value(text)
                .map_err(|e| Fail::usage_error(format!("--args: {}", e.message)))
        })?;
        let Value::Object(tool_args) = tool_args else {
            return Err(Fail::usage_error("--args must be a JSON object"));
        };
        let tool_args: Map<String, Value> = tool_args;
        return Ok(OutgoingEvent::new_tool_call(id(), tool, &tool_args));
    }
    if args.words.is_empty() && !args.status {
        return Err(Fail::usage_error("what is to be said?"));
    }
    let text = read_text(&args.words)?;
    Ok(match (args.status, args.tool_result, args.error) {
        (true, _, _) => OutgoingEvent::new_status(text),
        (_, true, _) => OutgoingEvent::new_tool_result(id(), text),
        (_, _, true) => OutgoingEvent::new_error(text, args.code.clone()),
        (false, false, false) => ChannelEvent::Message {
            content: text,
            parts: args.parts.as_ref().map(|parts| parts.0.clone()),
        }
        .into(),
    })
}

/// Checks each line before sending it. Events before an invalid line stay sent.
async fn stream_events(common: &CommonArgs, callback: &mut CallbackClient) -> Result<(), Fail> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut stream = callback.open_stream();
    let mut count = 0u64;
    while let Some(line) = lines
        .next_line()
        .await
        .map_err(|e| Fail::usage_error(format!("standard input: {e}")))?
    {
        if line.trim().is_empty() {
            continue;
        }
        let CallbackPost { event, agent } = match CallbackPost::parse(line.as_bytes()) {
            Ok(parsed) => parsed,
            Err(e) => {
                stream.finish_stream().await?;
                return Err(Fail::usage_error(format!(
                    "line {}: {}",
                    count + 1,
                    e.message
                )));
            }
        };
        stream.send_event(&OutgoingEvent { event, agent }).await?;
        count += 1;
    }
    stream.finish_stream().await?;
    output::print_result(common.json, &json!({"events": count}), || {
        format!("said {count}")
    });
    Ok(())
}
