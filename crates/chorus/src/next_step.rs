//! Completes the error of a command: which credential file, which hub, and what to do next.

use crate::agent_names::local_part;
use crate::refusal_steps::{RefusalStep, RefusedCommand};
use crate::{cli::CommonArgs, command_client, fail::Fail};
use chorus_client::files::AgentCredentials;

/// Adds what the command knows and its error does not: the file and the hub.
pub fn explain_error(fail: Fail, common: &CommonArgs) -> Fail {
    let Ok(files) = command_client::identity_files(common) else {
        return fail;
    };
    let saved = AgentCredentials::read_from(&files).ok().flatten();
    let Some(hub) = common.hub.clone().or_else(|| {
        saved
            .as_ref()
            .map(|credentials| credentials.hub_url.clone())
    }) else {
        return fail;
    };
    let hub = hub.trim_end_matches('/');
    if fail.is_refused_key()
        && let Some(credentials) = &saved
    {
        let file = files.credentials.display();
        let agent = &credentials.agent_id;
        let next = describe_key_step(credentials, hub);
        return fail.with_message(format!(
            "the hub {hub} does not accept the key of {agent} in {file}; {next}"
        ));
    }
    if fail.is_unreachable(hub) {
        let step = describe_reach_step(&fail.to_string(), hub);
        return fail.with_next_step(step);
    }
    if fail.is_certificate_refused(hub) {
        let step = describe_certificate_step(&fail.to_string());
        return fail.with_next_step(step);
    }
    let agent = saved.as_ref().map_or("you", |saved| &saved.agent_id);
    let file = files.credentials.display().to_string();
    let command = RefusedCommand {
        agent,
        hub,
        file: &file,
    };
    match fail.find_refusal_step(&command) {
        RefusalStep::Enough => fail,
        RefusalStep::Next(step) => fail.with_next_step(&step),
        RefusalStep::Instead(message) => fail.with_message(message),
    }
}

/// What a hub with `--tls-acme` says in the handshake before it has a certificate.
const NO_CERTIFICATE_ALERT: &str = "AccessDenied";

fn describe_reach_step(error: &str, hub: &str) -> &'static str {
    if is_without_certificate(error) {
        return "the hub has no certificate yet, and its log says why";
    }
    match is_local(hub) {
        true => "is it running? chorus serve",
        false => "is it running, and is that its URL?",
    }
}

/// What to do about a certificate that this machine does not accept. The words of rustls name the fault.
pub fn describe_certificate_step(error: &str) -> &'static str {
    if error.contains("UnknownIssuer") {
        return "this machine does not trust its issuer. If the certificate is one that you were given: export SSL_CERT_FILE=cert.pem";
    }
    if error.contains("not valid for name") {
        return "use a name that is in the certificate as the hub's URL, or ask its operator for a certificate with this name";
    }
    if error.contains("not valid yet") {
        return "set the clock of this machine if it is wrong, or ask the operator of the hub for a certificate that is valid";
    }
    if error.contains("expired") {
        return "ask the operator of the hub to renew it, or set the clock of this machine if it is wrong";
    }
    "ask the operator of the hub for a certificate that is valid"
}

/// Whether a hub ended the handshake because an authority has issued no certificate to it yet.
pub fn is_without_certificate(error: &str) -> bool {
    error.contains(NO_CERTIFICATE_ALERT)
}

fn describe_key_step(credentials: &AgentCredentials, hub: &str) -> String {
    let name = local_part(&credentials.agent_id);
    format!(
        "it was replaced, or the hub has other data now. To register again: chorus register {name} --hub {hub} --new-identity"
    )
}

/// `host:port` is http:// on this machine and https:// elsewhere: a key is not sent in clear unless the URL says so.
pub fn complete_hub_url(text: &str) -> String {
    if text.contains("://") || text.is_empty() {
        return text.to_owned();
    }
    let local = format!("http://{text}");
    match is_local(&local) {
        true => local,
        false => format!("https://{text}"),
    }
}

/// Whether the hub's URL is of this machine.
pub fn is_local(hub: &str) -> bool {
    let Ok(url) = url::Url::parse(hub) else {
        return false;
    };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
