//! `chorus register`: registers at a hub and saves the credentials (SKL-18…25).

use crate::confirmed_workspaces::ConfirmedWorkspaces;
use crate::{cli::CommonArgs, fail::Fail, output, session};
use chorus_client::HubClient;
use chorus_client::files::{AgentCredentials, IdentityFiles, InboxState};
use chorus_client::identity::RegistrationRequest;
use chorus_wire::{cursor::Cursor, identity, identity::AgentAddress, secret::Secret};
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
    /// Languages you can answer in; default: the culture's
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    languages: Vec<String>,
    /// A public URL that receives your messages when you do not listen
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// A secret (whsec_…) that signs what the hub posts to the endpoint
    #[arg(long, value_name = "SECRET", env = "CHORUS_ENDPOINT_SECRET", hide_env_values = true, value_parser = parse_secret)]
    endpoint_secret: Option<Secret>,
    /// The owner whose account you share; default: you own yourself
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// A public URL that receives your jobs; default: they come to your inbox
    #[arg(long, value_name = "URL")]
    api_endpoint: Option<String>,
    /// The registration code of a hub that requires one
    #[arg(long, value_name = "CODE", env = "CHORUS_INVITE_CODE", hide_env_values = true, value_parser = parse_secret)]
    invite_code: Option<Secret>,
    /// Print the key, also when the output is not a terminal
    #[arg(long)]
    show_key: bool,
    /// Replace the saved identity by a new one
    #[arg(long)]
    new_identity: bool,
}

pub fn parse_secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let files = session::identity_files(common)?;
    if let Some(credentials) = AgentCredentials::read_from(&files)?.filter(|_| !args.new_identity) {
        return report_existing(common, &args, &files, &credentials);
    }
    let credentials = register_agent(common, &args, &files).await?;
    print_identity(common, &args, &files, &credentials, true);
    Ok(())
}

/// Registers for another command: nothing is printed, least of all the key.
pub async fn register_quietly(
    common: &CommonArgs,
    name: &str,
    culture: &str,
) -> Result<AgentCredentials, Fail> {
    let args = Args {
        name: Some(name.to_owned()),
        culture: Some(culture.to_owned()),
        languages: Vec::new(),
        endpoint: None,
        endpoint_secret: None,
        owner: None,
        api_endpoint: None,
        invite_code: std::env::var("CHORUS_INVITE_CODE").ok().map(Secret::new),
        show_key: false,
        new_identity: false,
    };
    register_agent(common, &args, &session::identity_files(common)?).await
}

async fn register_agent(
    common: &CommonArgs,
    args: &Args,
    files: &IdentityFiles,
) -> Result<AgentCredentials, Fail> {
    let client = session::open_client(common, None)?;
    let request = registration_request(&client, args).await?;
    // SKL-22: reserve the file before the hub issues the key.
    let slot = AgentCredentials::reserve_slot(files, args.new_identity)?;
    let registered = client.register_agent(&request).await?;
    let not_understood = || chorus_client::Error::Answer("a new agent came without a key".into());
    let credentials = AgentCredentials {
        agent_id: registered.agent_id.clone(),
        api_key: registered.api_key.clone().ok_or_else(not_understood)?,
        hub_url: client.base_url().to_owned(),
        rest: Map::new(),
    };
    let confirmed = ConfirmedWorkspaces::read_list()?;
    let is_confirmed = confirmed.has_path(&files.credentials);
    slot.save(credentials.clone())?;
    if is_confirmed {
        confirmed.add_file(&files.credentials)?;
    }
    // The cursor starts at the beginning, so that the first `listen` misses no message.
    let cursor = Some(Cursor::START.to_string());
    InboxState {
        culture: Some(request.culture),
        cursor,
        ..InboxState::read_for(files, &credentials)?
    }
    .save(files)?;
    Ok(credentials)
}

async fn registration_request(
    client: &HubClient,
    args: &Args,
) -> Result<RegistrationRequest, Fail> {
    let name = args
        .name
        .as_deref()
        .ok_or_else(|| Fail::usage_error("who are you? chorus register NAME@HOST --culture TAG"))?;
    let culture = args
        .culture
        .clone()
        .ok_or_else(|| Fail::usage_error("which culture? pass --culture, such as en or ja"))?;
    let languages = if args.languages.is_empty() {
        vec![culture.clone()]
    } else {
        args.languages.clone()
    };
    let usage_error = |e: chorus_wire::Error| Fail::usage_error(e.message);
    for tag in languages.iter().chain([&culture]) {
        identity::check_culture_tag(tag, tag).map_err(usage_error)?;
    }
    let agent_id = match (
        name.contains('@'),
        client.fetch_paths().await?.host_name.as_deref(),
    ) {
        (false, Some(host)) => format!("{name}@{host}"),
        (true, _) | (false, None) => name.to_owned(),
    };
    AgentAddress::parse(name, &agent_id).map_err(usage_error)?;
    let endpoint = args.endpoint.clone();
    let endpoint_secret = args.endpoint_secret.clone();
    let invite_code = args.invite_code.clone();
    Ok(RegistrationRequest {
        agent_id,
        culture,
        languages,
        endpoint,
        endpoint_secret,
        invite_code,
        owner_id: args.owner.clone(),
        api_endpoint: args.api_endpoint.clone(),
    })
}

/// SKL-20: a second registration is not a second identity.
fn report_existing(
    common: &CommonArgs,
    args: &Args,
    files: &IdentityFiles,
    credentials: &AgentCredentials,
) -> Result<(), Fail> {
    let is_own_name = |name: &str| {
        name == credentials.agent_id || Some(name) == credentials.agent_id.split('@').next()
    };
    if args.name.as_deref().is_some_and(|name| !is_own_name(name)) {
        let file = files.credentials.display();
        return Err(Fail::usage_error(format!(
            "you are {} here ({file}); for another identity use other --credentials, or give this one up with \
             --new-identity",
            credentials.agent_id
        )));
    }
    print_identity(common, args, files, credentials, false);
    Ok(())
}

/// Prints the identity (SKL-25). The key is printed only to a terminal or with `--show-key`, so that it reaches no log.
fn print_identity(
    common: &CommonArgs,
    args: &Args,
    files: &IdentityFiles,
    credentials: &AgentCredentials,
    new: bool,
) {
    let file = files.credentials.display().to_string();
    let mut output = json!({ "agent_id": credentials.agent_id, "hub_url": credentials.hub_url, "credentials": file, "new": new });
    if args.show_key {
        output["api_key"] = json!(credentials.api_key);
    } else {
        // SKL-25, R-33: a program that registers can tell its user how to see the key, and the key stays out of its log.
        output["show_key"] = json!("chorus register --show-key");
    }
    output::print_result(common.json, &output, || {
        let name = output::paint_text(
            output::STRONG_STYLE,
            &output::escape_controls(&credentials.agent_id),
        );
        let hub = &credentials.hub_url;
        let mut text = match new {
            true => format!("registered as {name} at {hub}\ncredentials saved to {file}"),
            false => format!("already registered as {name} at {hub}\ncredentials in {file}"),
        };
        if args.show_key || (new && std::io::stdout().is_terminal()) {
            text.push_str(&format!("\napi key: {}", credentials.api_key.expose()));
        } else {
            text.push_str("\napi key: in that file; chorus register --show-key prints it");
        }
        text
    });
}
