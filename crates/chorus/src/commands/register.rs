//! `chorus register`: join a hub once, and be that agent from then on (SKL-18…25).

use crate::{cli::Common, fail::Fail, out, session};
use chorus_client::Client;
use chorus_client::files::{Credentials, Place, State};
use chorus_client::identity::Newcomer;
use chorus_wire::{cursor::Cursor, identity, identity::Address, secret::Secret};
use serde_json::{Map, json};
use std::io::IsTerminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Your address; a name alone is completed with the hub's own host
    #[arg(value_name = "NAME@HOST")]
    name: Option<String>,
    /// The culture of your user, a BCP 47 tag such as en, ja or zh-CN
    #[arg(long, value_name = "TAG", env = "CHORUS_CULTURE")]
    culture: Option<String>,
    /// Languages you can answer in; the culture's without this
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    languages: Vec<String>,
    /// A public URL that receives your messages when you do not listen
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// For a hub that admits by invitation
    #[arg(long, value_name = "CODE", env = "CHORUS_INVITE_CODE", hide_env_values = true, value_parser = secret)]
    invite_code: Option<Secret>,
    /// Print the key, also when the output is not a terminal
    #[arg(long)]
    show_key: bool,
    /// Give up the saved identity and become another one
    #[arg(long)]
    new_identity: bool,
}

pub fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let place = session::place(common)?;
    if let Some(who) = Credentials::read(&place)?.filter(|_| !args.new_identity) {
        return already(common, &args, &place, &who);
    }
    let who = join(common, &args, &place).await?;
    tell(common, &args, &place, &who, true);
    Ok(())
}

/// A first registration on somebody's behalf: nothing is printed, least of all the key.
pub async fn quietly(common: &Common, name: &str, culture: &str) -> Result<Credentials, Fail> {
    let args = Args {
        name: Some(name.to_owned()),
        culture: Some(culture.to_owned()),
        languages: Vec::new(),
        endpoint: None,
        invite_code: std::env::var("CHORUS_INVITE_CODE").ok().map(Secret::new),
        show_key: false,
        new_identity: false,
    };
    join(common, &args, &session::place(common)?).await
}

async fn join(common: &Common, args: &Args, place: &Place) -> Result<Credentials, Fail> {
    let client = session::hub(common, None)?;
    let newcomer = newcomer(&client, args).await?;
    // SKL-22: where the key will go is made sure of before there is one.
    let slot = Credentials::slot(place, args.new_identity)?;
    let registered = client.register(&newcomer).await?;
    let not_understood = || chorus_client::Error::Answer("a new agent came without a key".into());
    let who = Credentials {
        agent_id: registered.agent_id.clone(),
        api_key: registered.api_key.clone().ok_or_else(not_understood)?,
        hub_url: client.base().to_owned(),
        rest: Map::new(),
    };
    slot.save(who.clone())?;
    // Heard from its first moment on: what arrives before the first `listen` is not missed.
    let first = Some(Cursor::START.to_string());
    State {
        culture: Some(newcomer.culture),
        cursor: first,
        ..State::read(place, &who)?
    }
    .save(place)?;
    Ok(who)
}

async fn newcomer(client: &Client, args: &Args) -> Result<Newcomer, Fail> {
    let name = args
        .name
        .as_deref()
        .ok_or_else(|| Fail::usage("who are you? chorus register NAME@HOST"))?;
    let culture = args
        .culture
        .clone()
        .ok_or_else(|| Fail::usage("which culture? pass --culture, such as en or ja"))?;
    let languages = if args.languages.is_empty() {
        vec![culture.clone()]
    } else {
        args.languages.clone()
    };
    let wrong = |e: chorus_wire::Error| Fail::usage(e.message);
    for tag in languages.iter().chain([&culture]) {
        identity::culture(tag, tag).map_err(wrong)?;
    }
    let agent_id = match (
        name.contains('@'),
        client.paths().await?.host_name.as_deref(),
    ) {
        (false, Some(host)) => format!("{name}@{host}"),
        (true, _) | (false, None) => name.to_owned(),
    };
    Address::parse(name, &agent_id).map_err(wrong)?;
    let (endpoint, invite_code) = (args.endpoint.clone(), args.invite_code.clone());
    Ok(Newcomer {
        agent_id,
        culture,
        languages,
        endpoint,
        invite_code,
    })
}

/// SKL-20: a second registration is not a second identity.
fn already(common: &Common, args: &Args, place: &Place, who: &Credentials) -> Result<(), Fail> {
    let own = |name: &str| name == who.agent_id || Some(name) == who.agent_id.split('@').next();
    if args.name.as_deref().is_some_and(|name| !own(name)) {
        let file = place.credentials.display();
        return Err(Fail::usage(format!(
            "you are {} here ({file}); for another identity use other --credentials, or give this one up with \
             --new-identity",
            who.agent_id
        )));
    }
    tell(common, args, place, who, false);
    Ok(())
}

/// SKL-25. A key goes to a person's terminal or where it is asked for, not into somebody's log.
fn tell(common: &Common, args: &Args, place: &Place, who: &Credentials, new: bool) {
    let file = place.credentials.display().to_string();
    let mut said = json!({ "agent_id": who.agent_id, "hub_url": who.hub_url, "credentials": file, "new": new });
    if args.show_key {
        said["api_key"] = json!(who.api_key);
    }
    out::say(common.json, &said, || {
        let name = out::painted(out::STRONG, &out::harmless(&who.agent_id));
        let hub = &who.hub_url;
        let mut text = match new {
            true => format!("registered as {name} at {hub}\ncredentials saved to {file}"),
            false => format!("already registered as {name} at {hub}\ncredentials in {file}"),
        };
        if args.show_key || (new && std::io::stdout().is_terminal()) {
            text.push_str(&format!("\napi key: {}", who.api_key.expose()));
        }
        text
    });
}
