//! What `chorus register` takes when it is not told: asked for at a terminal, else from the environment.

use super::register::Args;
use crate::agent_names::local_part;
use crate::next_step::complete_hub_url;
use crate::{cli::CommonArgs, fail::Fail};
use chorus_client::files::AgentCredentials;
use chorus_wire::identity;
use std::io::{IsTerminal, Write};

/// The hub that `chorus serve` without options is. It is of this machine, so no name and no key leave it.
const DEFAULT_HUB: &str = "http://127.0.0.1:3000";
/// Longest answer to a question: longer than any name, URL or tag that a hub takes.
const MAX_ANSWER_BYTES: u64 = 4096;

/// The options with a hub: the named one, that of the identity that is replaced, or the default.
pub fn ask_hub(
    common: &CommonArgs,
    replaced: Option<&AgentCredentials>,
) -> Result<CommonArgs, Fail> {
    if common.hub.is_some() {
        return Ok(common.clone());
    }
    let default = replaced.map_or(DEFAULT_HUB, |credentials| &credentials.hub_url);
    let hub = ask_question("hub", Some(default))?;
    let hub = hub.map(|hub| complete_hub_url(&hub));
    Ok(CommonArgs {
        hub,
        ..common.clone()
    })
}

/// The arguments with a name and a culture.
pub fn ask_missing(mut args: Args, replaced: Option<&AgentCredentials>) -> Result<Args, Fail> {
    if args.name.is_none() {
        let saved = replaced.map(|credentials| local_part(&credentials.agent_id).to_owned());
        let default = saved.or_else(user_name);
        args.name = ask_question("your name", default.as_deref())?;
    }
    if args.name.is_none() {
        let message = "who are you? chorus register NAME@HOST --culture TAG";
        return Err(Fail::usage_error(message));
    }
    if args.culture.is_none() {
        args.culture = ask_question(
            "your culture, such as en or ja",
            locale_culture().as_deref(),
        )?;
    }
    if args.culture.is_none() {
        let message = "which culture? pass --culture, such as en or ja";
        return Err(Fail::usage_error(message));
    }
    Ok(args)
}

/// Asks at a terminal; an empty answer is the default. Without a terminal a question would hang a script, so it is the default.
fn ask_question(question: &str, default: Option<&str>) -> Result<Option<String>, Fail> {
    use std::io::{BufRead, Read};
    let default = default.map(str::to_owned);
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(default);
    }
    let shown = default.as_ref().map(|text| format!(" [{text}]"));
    eprint!("{question}{}: ", shown.unwrap_or_default());
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin()
        .lock()
        .take(MAX_ANSWER_BYTES)
        .read_line(&mut answer);
    read.map_err(|e| Fail::usage_error(format!("standard input: {e}")))?;
    Ok(match answer.trim() {
        "" => default,
        answer => Some(answer.to_owned()),
    })
}

/// `$USER` as a name: lower-case letters, digits and dashes, so that it has a handle too.
fn user_name() -> Option<String> {
    let user = std::env::var("USER").ok()?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let name: String = user
        .to_lowercase()
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    let name = name.trim_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// The culture of the locale: `de-AT` of `de_AT.UTF-8`. `C` and `POSIX` name none.
fn locale_culture() -> Option<String> {
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
    let tag = locale.split(['.', '@']).next()?.replace('_', "-");
    let is_culture = !matches!(tag.as_str(), "C" | "POSIX")
        && identity::check_culture_tag("the locale", &tag).is_ok();
    is_culture.then_some(tag)
}
