//! `chorus register`: registers at a hub and saves the credentials (SKL-18…25).

use super::registration_defaults::{ask_hub, ask_missing};
use crate::confirmed_workspaces::ConfirmedWorkspaces;
use crate::hub_origin::is_same_hub;
use crate::{agent_names, cli::CommonArgs, command_client, fail::Fail, output};
use chorus_client::HubClient;
use chorus_client::files::{AgentCredentials, IdentityFiles, InboxState};
use chorus_client::identity::RegistrationRequest;
use chorus_wire::{cursor::Cursor, identity, identity::AgentAddress, secret::Secret};
use serde_json::{Map, json};
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Your address; a name alone is completed with the hub's own host [default: $USER]
    #[arg(value_name = "NAME@HOST")]
    pub(super) name: Option<String>,
    /// The culture of your user, a BCP 47 tag such as en, ja or zh-CN [default: that of $LANG]
    #[arg(long, value_name = "TAG", env = "CHORUS_CULTURE")]
    pub(super) culture: Option<String>,
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
    /// Replace the saved identity by a new one; a copy of its credential file is kept
    #[arg(long)]
    new_identity: bool,
}

pub fn parse_secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let files = command_client::identity_files(common)?;
    let saved = AgentCredentials::read_from(&files)?;
    if let Some(credentials) = saved.as_ref().filter(|_| !args.new_identity) {
        return report_existing(common, &args, &files, credentials).await;
    }
    let common = &ask_hub(common, saved.as_ref())?;
    let args = ask_missing(args, saved.as_ref())?;
    let (credentials, backup) = register_agent(common, &args, &files).await?;
    print_identity(common, &args, &files, &credentials, Some(backup));
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
    let files = command_client::identity_files(common)?;
    Ok(register_agent(common, &args, &files).await?.0)
}

/// The new credentials, and where those that they replace are kept.
async fn register_agent(
    common: &CommonArgs,
    args: &Args,
    files: &IdentityFiles,
) -> Result<(AgentCredentials, Option<PathBuf>), Fail> {
    let client = command_client::open_client(common, None)?;
    let request = registration_request(&client, args).await?;
    // SKL-22: reserve the file before the hub issues the key.
    let slot = AgentCredentials::reserve_slot(files, args.new_identity)?;
    // Before the hub issues a key that could not be saved.
    let backup = AgentCredentials::keep_backup(files)?;
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
    Ok((credentials, backup))
}

async fn registration_request(
    client: &HubClient,
    args: &Args,
) -> Result<RegistrationRequest, Fail> {
    let missing = |what: &str| Fail::usage_error(format!("{what} is missing"));
    let name = args.name.as_deref().ok_or_else(|| missing("the name"))?;
    let culture = args.culture.clone().ok_or_else(|| missing("--culture"))?;
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

/// SKL-20: a second registration is not a second identity. The hub is asked, so that an identity that works nowhere does not look
/// like one that does.
async fn report_existing(
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
    check_same_hub(common, files, credentials)?;
    let client = HubClient::new(&credentials.hub_url, Some(credentials.api_key.clone()))?;
    match client.fetch_record(&credentials.agent_id).await {
        Err(error) if error.error_response().is_some_and(|r| r.status == 401) => {
            return Err(error.into());
        }
        Err(error) if error.error_response().is_none() => {
            output::print_aside(common.json, &format!("the hub was not asked: {error}"));
        }
        // Some hubs have no record of agents.
        Ok(_) | Err(_) => {}
    }
    print_identity(common, args, files, credentials, None);
    Ok(())
}

/// An identity of one hub is none at another: to show it would look as if the registration had succeeded.
fn check_same_hub(
    common: &CommonArgs,
    files: &IdentityFiles,
    credentials: &AgentCredentials,
) -> Result<(), Fail> {
    let Some(named) = &common.hub else {
        return Ok(());
    };
    let named = HubClient::new(named, None)?.base_url().to_owned();
    let issuer = &credentials.hub_url;
    if is_same_hub(issuer, &named) {
        return Ok(());
    }
    let file = files.credentials.display();
    let agent = &credentials.agent_id;
    let name = agent_names::local_part(agent);
    Err(Fail::usage_error(format!(
        "{file} already holds {agent} of {issuer}, so nothing was registered at {named}. To keep both: \
         CHORUS_HOME=FOLDER chorus register {name} --hub {named}. To replace it (a copy is kept): chorus register {name} \
         --hub {named} --new-identity"
    )))
}

/// Prints the identity (SKL-25). The key is printed only to a terminal or with `--show-key`, so that it reaches no log.
fn print_identity(
    common: &CommonArgs,
    args: &Args,
    files: &IdentityFiles,
    credentials: &AgentCredentials,
    registered: Option<Option<PathBuf>>,
) {
    let file = files.credentials.display().to_string();
    let new = registered.is_some();
    let backup = registered.flatten();
    let mut output = json!({ "agent_id": credentials.agent_id, "hub_url": credentials.hub_url, "credentials": file, "new": new });
    if let Some(backup) = &backup {
        output["backup"] = json!(backup);
    }
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
        if let Some(backup) = &backup {
            let backup = backup.display();
            text.push_str(&format!("\nthe identity before it is kept in {backup}"));
        }
        if args.show_key || (new && std::io::stdout().is_terminal()) {
            text.push_str(&format!("\napi key: {}", credentials.api_key.expose()));
        } else {
            text.push_str("\napi key: in that file; chorus register --show-key prints it");
        }
        text
    });
}
