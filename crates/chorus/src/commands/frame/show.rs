//! A frame as one line for people, coloured by what it is about (SKL-17: foreign text drives no terminal).

use crate::out::{self, FAINT, STRONG, clock, harmless, painted};
use anstyle::{AnsiColor, Color, Style};
use chorus_client::frame::{Claim, session_of};
use chorus_wire::frame::{Frame, Kind, Payload, Submitted, payload};
use chorus_wire::time::Micros;

/// How many sessions a frame went to.
pub fn submitted(submitted: &Submitted) -> String {
    let id = painted(FAINT, &submitted.frame_id.to_string());
    match submitted.recipient_count {
        0 => format!("no session is listening  {id}"),
        1 => format!("heard by 1 session  {id}"),
        many => format!("heard by {many} sessions  {id}"),
    }
}

pub fn colour(kind: Kind) -> Style {
    let colour = match kind {
        Kind::AgentAdvisory => AnsiColor::Cyan,
        Kind::AgentBroadcast | Kind::FlushExecuted => AnsiColor::Green,
        Kind::AgentHandover => AnsiColor::Magenta,
        Kind::AgentLockRequest | Kind::AgentLockRelease | Kind::AgentLeaseExtend => {
            AnsiColor::Yellow
        }
        Kind::AgentQuery | Kind::AgentResponse | Kind::AgentReturnEvent => AnsiColor::Blue,
        Kind::AgentBindingMoment => AnsiColor::BrightMagenta,
        Kind::PeerDiagnosticRequest | Kind::PeerDiagnosticResponse => AnsiColor::Red,
        Kind::IntentDeclare | Kind::IntentWithdraw => AnsiColor::BrightCyan,
    };
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// `~alice` and, where the frame says it, her session.
pub fn speaker(frame: &Frame) -> String {
    let name = painted(STRONG, frame.sender_handle.as_str());
    match session_of(frame) {
        Some((instrument, session)) => {
            format!(
                "{name} {}",
                painted(FAINT, &harmless(&format!("{instrument}@{session}")))
            )
        }
        None => name,
    }
}

pub fn frame(frame: &Frame) -> String {
    let time = painted(FAINT, clock(&frame.created_at.to_string()));
    let kind = frame.kind();
    let short = kind
        .as_str()
        .trim_start_matches("agent_")
        .trim_start_matches("peer_")
        .replace('_', " ");
    format!(
        "{time} {} {} {}",
        speaker(frame),
        painted(colour(kind), &short),
        said(&frame.payload)
    )
}

fn said(payload: &Payload) -> String {
    match payload {
        Payload::AgentAdvisory(p) => {
            let place = [("in", &p.worktree), ("on", &p.branch)];
            let place = place
                .iter()
                .filter_map(|(word, text)| Some(format!(" {word} {}", harmless(text.as_ref()?))));
            let place = painted(FAINT, &place.collect::<String>());
            format!(
                "{}{}{place}",
                harmless(&p.advisory_text),
                list(&p.file_refs)
            )
        }
        Payload::AgentBroadcast(p) => format!(
            "{}: {}{}",
            p.event_class,
            harmless(&p.broadcast_text),
            list(&p.refs)
        ),
        Payload::AgentHandover(p) => handover(p),
        Payload::AgentLockRequest(p) => {
            let span = crate::commands::span::short(std::time::Duration::from_millis(p.ttl_ms));
            let intent = p
                .intent
                .as_ref()
                .map(|intent| format!(": {}", harmless(intent)))
                .unwrap_or_default();
            format!(
                "{} for {span}{intent}",
                painted(STRONG, &harmless(&p.resource))
            )
        }
        Payload::AgentLockRelease(p) => p
            .resource
            .as_ref()
            .filter(|name| !name.is_empty())
            .map_or(p.lease_id.to_string(), |name| harmless(name)),
        Payload::AgentLeaseExtend(p) => {
            let span = crate::commands::span::short(std::time::Duration::from_millis(p.ttl_ms));
            format!("by {span} {}", painted(FAINT, &p.lease_id.to_string()))
        }
        Payload::AgentQuery(p) => format!(
            "{}  {}",
            harmless(&p.query_text),
            painted(FAINT, &p.query_id.to_string())
        ),
        Payload::AgentResponse(p) => {
            format!(
                "{}  {}",
                harmless(&p.response_text),
                painted(FAINT, &p.query_id.to_string())
            )
        }
        Payload::AgentReturnEvent(p) => format!(
            "{}: {}",
            harmless(&p.return_event_ref),
            harmless(&p.summary)
        ),
        Payload::AgentBindingMoment(p) => {
            format!(
                "{} {}",
                harmless(&p.question.stem),
                painted(FAINT, "(chorus decide)")
            )
        }
        Payload::PeerDiagnosticRequest(p) => {
            let id = painted(FAINT, &p.diagnostic_id.to_string());
            format!(
                "{}: {}{}  {id}",
                p.severity,
                harmless(&p.symptom),
                list(&p.substrate_refs)
            )
        }
        Payload::PeerDiagnosticResponse(p) => {
            let remedy = p
                .remediation
                .as_ref()
                .map(|text| format!("; {}", harmless(text)))
                .unwrap_or_default();
            format!(
                "{}{remedy}{}",
                harmless(&p.finding),
                list(&p.substrate_refs)
            )
        }
        Payload::IntentDeclare(p) => {
            let urgency = p
                .urgency
                .map(|urgency| format!(" ({urgency})"))
                .unwrap_or_default();
            format!(
                "{} {}{urgency}",
                harmless(&p.convergence_class),
                harmless(&p.payload_ref)
            )
        }
        Payload::IntentWithdraw(p) => format!(
            "{} {}",
            harmless(&p.convergence_class),
            harmless(&p.intent_ref)
        ),
        Payload::FlushExecuted(p) => {
            format!(
                "{} {}{}",
                harmless(&p.convergence_class),
                harmless(&p.result_ref),
                list(&p.batch_refs)
            )
        }
    }
}

fn handover(p: &payload::AgentHandover) -> String {
    let from = harmless(&p.previous_session_id);
    let next = p.next_session_id.as_ref().filter(|next| !next.is_empty());
    match next {
        Some(next) => format!("of {from} taken by {}", harmless(next)),
        None => {
            let first = p
                .handover_body
                .lines()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();
            format!("from {from}: {}{}", harmless(first), list(&p.pointer_refs))
        }
    }
}

fn list(items: &Option<Vec<String>>) -> String {
    let items: Vec<String> = items.iter().flatten().map(|item| harmless(item)).collect();
    if items.is_empty() {
        String::new()
    } else {
        format!(" [{}]", items.join(", "))
    }
}

/// `src/main.rs  ~alice cli@t1  4m05s left  renaming`
pub fn claim(claim: &Claim, width: usize, now: Micros) -> String {
    let resource = painted(STRONG, &format!("{:width$}", harmless(&claim.resource)));
    let holder = holder(claim);
    let left = crate::commands::span::short(claim.left(now));
    let intent = claim
        .intent
        .as_ref()
        .map(|intent| format!("  {}", harmless(intent)))
        .unwrap_or_default();
    format!("{resource}  {holder}  {left} left{intent}")
}

pub fn holder(claim: &Claim) -> String {
    let session = claim.session.as_ref().unwrap_or(&claim.drafted_with);
    format!("{} {}", claim.holder, harmless(session))
}

/// A line on the side, for people only.
pub fn aside(json: bool, text: &str) {
    if !json {
        anstream::eprintln!("{}", painted(out::FAINT, &harmless(text)));
    }
}
