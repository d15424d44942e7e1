//! The checks of the hub: whether it is there, takes the key, and has the same time.

use super::DoctorCheck;
use crate::agent_names::local_part;
use crate::cli::CommonArgs;
use crate::fail::Fail;
use crate::hub_origin::is_same_hub;
use crate::next_step::{describe_certificate_step, is_local, is_without_certificate};
use chorus_client::HubClient;
use chorus_client::files::AgentCredentials;
use chorus_hub::Clock;
use chorus_wire::time::UnixMicros;
use std::time::Duration;

/// Largest difference of the clocks: beyond it the times of messages mislead, and deadlines of seconds end too early.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(30);

pub async fn check_hub(
    common: &CommonArgs,
    credentials: Option<&AgentCredentials>,
) -> Vec<DoctorCheck> {
    let saved = credentials.map(|credentials| credentials.hub_url.as_str());
    let Some(hub) = common.hub.as_deref().or(saved) else {
        let fix = "chorus register NAME --hub URL";
        return vec![DoctorCheck::wrong("hub", "no hub is known", fix)];
    };
    // another hub is looked at without the key.
    let issued = credentials.filter(|credentials| is_same_hub(&credentials.hub_url, hub));
    let key = issued.map(|credentials| credentials.api_key.clone());
    let client = match HubClient::new(hub, key) {
        Ok(client) => client,
        Err(error) => {
            let fix = "chorus doctor --hub http://HOST:PORT";
            return vec![DoctorCheck::wrong("hub", error.to_string(), fix)];
        }
    };
    if let Err(error) = client.fetch_paths().await {
        let found = error.to_string();
        if is_without_certificate(&found) {
            let found = format!("{found}: the hub has no certificate yet, and its log says why");
            let fix = "chorus doctor   # again, when the hub has one";
            return vec![DoctorCheck::wrong("hub", found, fix)];
        }
        if found.contains("invalid peer certificate") {
            let found = format!("{found}: {}", describe_certificate_step(&found));
            let fix = "chorus doctor   # again, when the certificate is trusted";
            return vec![DoctorCheck::wrong("hub", found, fix)];
        }
        let fix = match is_local(client.base_url()) {
            true => "chorus serve".to_owned(),
            false => format!("curl {}/health", client.base_url()),
        };
        return vec![DoctorCheck::wrong("hub", found, fix)];
    }
    let mut checks = vec![DoctorCheck::good("hub", client.base_url())];
    match (credentials, issued) {
        (_, Some(credentials)) => checks.extend(check_key(&client, credentials).await),
        (Some(credentials), None) => checks.push(describe_other_issuer(&client, credentials)),
        (None, None) => {}
    }
    checks
}

/// The saved key is of another hub than the one that was named.
fn describe_other_issuer(client: &HubClient, credentials: &AgentCredentials) -> DoctorCheck {
    let agent = &credentials.agent_id;
    let issuer = &credentials.hub_url;
    let name = local_part(agent);
    let hub = client.base_url();
    let found = format!("the key of {agent} is of {issuer}, and is not sent to {hub}");
    let fix = format!(
        "unset CHORUS_HUB   # or, for an identity at {hub}: CHORUS_HOME=FOLDER chorus register {name} --hub {hub}"
    );
    DoctorCheck::wrong("key", found, fix)
}

async fn check_key(client: &HubClient, credentials: &AgentCredentials) -> Vec<DoctorCheck> {
    let agent = &credentials.agent_id;
    let name = local_part(agent);
    let hub = client.base_url();
    match client.fetch_record_at(agent).await {
        Ok((_, at)) => {
            let accepted = DoctorCheck::good("key", format!("the hub accepts {agent}"));
            let clock = at.and_then(|at| UnixMicros::parse(&at)).map(check_clock);
            std::iter::once(accepted).chain(clock).collect()
        }
        Err(error) => {
            let fail = Fail::from(error);
            let check = match fail.is_refused_key() {
                // A new identity helps only where the hub knows the key no longer. The hub's own words are for HTTP clients.
                true => DoctorCheck::wrong(
                    "key",
                    format!("the hub does not accept the key of {agent}"),
                    format!("chorus register {name} --hub {hub} --new-identity"),
                ),
                false => {
                    let fix = "chorus doctor   # again, in a while";
                    DoctorCheck::wrong("key", fail.to_string(), fix)
                }
            };
            vec![check]
        }
    }
}

fn check_clock(hub_time: UnixMicros) -> DoctorCheck {
    let difference = hub_time.0.abs_diff(Clock::system().now().0);
    let difference = Duration::from_micros(difference);
    let found = format!("{} s from the hub's", difference.as_secs());
    match difference > MAX_CLOCK_DIFFERENCE {
        true => DoctorCheck::wrong("clock", found, "timedatectl set-ntp true"),
        false => DoctorCheck::good("clock", found),
    }
}
