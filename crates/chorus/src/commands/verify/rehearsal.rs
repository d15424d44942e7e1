//! `chorus verify --wake`: a message to oneself, and the time until a session of the host was shown it.

use super::VerifyFinding;
use crate::commands::init::target::{InitRoots, InitTarget};
use crate::commands::init::wake_entries::{WakeState, find_wake_state};
use crate::commands::wait_line::WaitLine;
use crate::commands::wake::session_lock;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client::CommandClient};
use chorus_wire::CHORUS_VERSION;
use chorus_wire::envelope::EnvelopeDraft;
use chorus_wire::time::UnixMicros;
use std::time::Duration;

/// Max time until the message is shown: a batch, the pause after an earlier wake, and the host's own time.
const REHEARSAL_TIMEOUT: Duration = Duration::from_secs(20);
const REHEARSAL_TEXT: &str =
    "This is a rehearsal of chorus verify --wake. Nothing needs to be done.";

pub async fn rehearse_wake(common: &CommonArgs, target: InitTarget) -> VerifyFinding {
    let outcome = match find_obstacle(target) {
        Some(reason) => Err((ExitKind::Transport, reason)),
        None => match send_to_oneself(common).await {
            Ok(Some(millis)) => Ok(format!("shown to a session after {millis} ms")),
            Ok(None) => Err((ExitKind::Transport, explain_silence(target))),
            Err(fail) => Err((fail.exit_kind(), fail.to_string())),
        },
    };
    VerifyFinding {
        subject: "wake",
        outcome,
    }
}

/// Why no message can wake the host.
fn find_obstacle(target: InitTarget) -> Option<String> {
    let name = target.target_name();
    let option = match target {
        InitTarget::ClaudeUser => "",
        InitTarget::Codex => " --wake",
        InitTarget::Openclaw => return None,
        InitTarget::ClaudeProject => {
            return Some(
                "a project's files wake no session; run: chorus init --target claude-user".into(),
            );
        }
        InitTarget::Cursor => return Some("nothing wakes an idle Cursor".into()),
        InitTarget::Local => return Some("a skill alone wakes nothing".into()),
    };
    let layout = target.resolve_layout(&InitRoots::find_roots().ok()?);
    match find_wake_state(&layout) {
        Ok(WakeState::Entries | WakeState::Plugin) => None,
        Ok(WakeState::Off | WakeState::Partial) => Some(format!(
            "mail does not wake its sessions; run: chorus init --target {name}{option}"
        )),
        Err(fail) => Some(fail.to_string()),
    }
}

/// The milliseconds from the hub's answer until the message was shown; `None` when the time is over.
async fn send_to_oneself(common: &CommonArgs) -> Result<Option<i64>, Fail> {
    let command = CommandClient::open(common)?;
    let agent_id = command.credentials.agent_id.clone();
    let culture = command.read_state()?.culture;
    let envelope = EnvelopeDraft {
        chorus_version: Some(CHORUS_VERSION.into()),
        sender_id: Some(agent_id.clone()),
        original_text: Some(REHEARSAL_TEXT.into()),
        sender_culture: Some(culture.unwrap_or_else(|| "en".into())),
        cultural_context: None,
        conversation_id: None,
        turn_number: None,
    }
    .into_envelope()
    .map_err(|e| Fail::usage_error(e.message))?;
    let accepted = command.client.send_message(&agent_id, &envelope, 0).await?;
    let trace_id = accepted.sent.trace_id.to_string();
    let line = WaitLine::begin(common.json, "until it is shown", REHEARSAL_TIMEOUT);
    let client = &command.client;
    let showing = client.wait_until_shown(&trace_id, REHEARSAL_TIMEOUT);
    let status = WaitLine::draw_message(line, client, &trace_id, showing).await?;
    let shown_at = status.and_then(|status| Some((status.sent_at, status.shown_at?)));
    Ok(shown_at.map(|(UnixMicros(sent), UnixMicros(shown))| (shown - sent) / 1_000))
}

fn explain_silence(target: InitTarget) -> String {
    let seconds = REHEARSAL_TIMEOUT.as_secs();
    let reason = match session_lock::has_running_waker() {
        true => {
            "a waker runs, but its session did not take the message: it may be busy, or woken too often"
        }
        false => "no waker runs: start the host in a terminal, in a folder that it trusts",
    };
    format!(
        "no session of {} was shown the message within {seconds} s; {reason}",
        target.target_name()
    )
}
