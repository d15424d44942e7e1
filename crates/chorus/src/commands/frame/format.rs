//! Formats frames for people: one line each, coloured by kind, with foreign text escaped (SKL-17).

use crate::local_time;
use crate::output::{FAINT_STYLE, STRONG_STYLE, escape_controls, paint_text, short_session};
use anstyle::{AnsiColor, Color, Style};
use chorus_client::frame::{LockClaim, frame_session};
use chorus_wire::frame::{Frame, FrameKind, FramePayload, SubmissionReply, payload};
use chorus_wire::time::UnixMicros;

/// How many sessions received a frame.
pub fn format_submitted(submitted: &SubmissionReply) -> String {
    let id = paint_text(FAINT_STYLE, &submitted.frame_id.to_string());
    if let Some(until) = submitted.kept_until {
        let until = local_time::date_time(&until.to_string());
        let count = submitted.describe_count();
        return format!("kept until {until}, heard by {count}  {id}");
    }
    match submitted.recipient_count {
        0 => format!("no session is listening  {id}"),
        _ => format!("heard by {}  {id}", submitted.describe_count()),
    }
}

pub fn kind_style(kind: FrameKind) -> Style {
    let colour = match kind {
        FrameKind::AgentAdvisory => AnsiColor::Cyan,
        FrameKind::AgentBroadcast | FrameKind::FlushExecuted => AnsiColor::Green,
        FrameKind::AgentHandover => AnsiColor::Magenta,
        FrameKind::AgentLockRequest | FrameKind::AgentLockRelease | FrameKind::AgentLeaseExtend => {
            AnsiColor::Yellow
        }
        FrameKind::AgentQuery | FrameKind::AgentResponse | FrameKind::AgentReturnEvent => {
            AnsiColor::Blue
        }
        FrameKind::AgentBindingMoment => AnsiColor::BrightMagenta,
        FrameKind::PeerDiagnosticRequest | FrameKind::PeerDiagnosticResponse => AnsiColor::Red,
        FrameKind::IntentDeclare | FrameKind::IntentWithdraw => AnsiColor::BrightCyan,
    };
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// The sender's handle, and its session if the frame names it.
pub fn format_sender(frame: &Frame) -> String {
    let name = paint_text(STRONG_STYLE, frame.sender_handle.as_str());
    match frame_session(frame) {
        Some((instrument, session)) => {
            format!(
                "{name} {}",
                paint_text(
                    FAINT_STYLE,
                    &format!("{}@{}", escape_controls(instrument), short_session(session))
                )
            )
        }
        None => name,
    }
}

pub fn format_frame(frame: &Frame) -> String {
    let time = paint_text(
        FAINT_STYLE,
        &local_time::live_time(&frame.created_at.to_string()),
    );
    let kind = frame.kind();
    let short = kind
        .as_str()
        .trim_start_matches("agent_")
        .trim_start_matches("peer_")
        .replace('_', " ");
    format!(
        "{time} {} {} {}",
        format_sender(frame),
        paint_text(kind_style(kind), &short),
        format_payload(&frame.payload)
    )
}

fn format_payload(payload: &FramePayload) -> String {
    match payload {
        FramePayload::AgentAdvisory(p) => format_advisory(p),
        FramePayload::AgentBroadcast(p) => format!(
            "{}: {}{}",
            p.event_class,
            escape_controls(&p.broadcast_text),
            format_list(&p.refs)
        ),
        FramePayload::AgentHandover(p) => format_handover(p),
        FramePayload::AgentLockRequest(p) => format_lock_request(p),
        FramePayload::AgentLockRelease(p) => p
            .resource
            .as_ref()
            .filter(|name| !name.is_empty())
            .map_or(p.lease_id.to_string(), |name| escape_controls(name)),
        FramePayload::AgentLeaseExtend(p) => format_lease_extension(p),
        FramePayload::AgentQuery(p) => format!(
            "{}  {}",
            escape_controls(&p.query_text),
            paint_text(FAINT_STYLE, &p.query_id.to_string())
        ),
        FramePayload::AgentResponse(p) => {
            format!(
                "{}  {}",
                escape_controls(&p.response_text),
                paint_text(FAINT_STYLE, &p.query_id.to_string())
            )
        }
        FramePayload::AgentReturnEvent(p) => format!(
            "{}: {}",
            escape_controls(&p.return_event_ref),
            escape_controls(&p.summary)
        ),
        FramePayload::AgentBindingMoment(p) => {
            format!(
                "{} {}",
                escape_controls(&p.question.stem),
                paint_text(FAINT_STYLE, "(chorus decide)")
            )
        }
        FramePayload::PeerDiagnosticRequest(p) => format_diagnostic_request(p),
        FramePayload::PeerDiagnosticResponse(p) => format_diagnostic_response(p),
        FramePayload::IntentDeclare(p) => format_intent(p),
        FramePayload::IntentWithdraw(p) => format!(
            "{} {}",
            escape_controls(&p.convergence_class),
            escape_controls(&p.intent_ref)
        ),
        FramePayload::FlushExecuted(p) => {
            format!(
                "{} {}{}",
                escape_controls(&p.convergence_class),
                escape_controls(&p.result_ref),
                format_list(&p.batch_refs)
            )
        }
    }
}

fn format_advisory(p: &payload::AgentAdvisory) -> String {
    let location = [("in", &p.worktree), ("on", &p.branch)];
    let location = location.iter().filter_map(|(preposition, text)| {
        Some(format!(
            " {preposition} {}",
            escape_controls(text.as_ref()?)
        ))
    });
    let location = paint_text(FAINT_STYLE, &location.collect::<String>());
    format!(
        "{}{}{location}",
        escape_controls(&p.advisory_text),
        format_list(&p.file_refs)
    )
}

fn format_lock_request(p: &payload::AgentLockRequest) -> String {
    let duration_text =
        crate::commands::duration::format_duration(std::time::Duration::from_millis(p.ttl_ms));
    let intent = p
        .intent
        .as_ref()
        .map(|intent| format!(": {}", escape_controls(intent)))
        .unwrap_or_default();
    format!(
        "{} for {duration_text}{intent}",
        paint_text(STRONG_STYLE, &escape_controls(&p.resource))
    )
}

fn format_lease_extension(p: &payload::AgentLeaseExtend) -> String {
    let duration_text =
        crate::commands::duration::format_duration(std::time::Duration::from_millis(p.ttl_ms));
    format!(
        "by {duration_text} {}",
        paint_text(FAINT_STYLE, &p.lease_id.to_string())
    )
}

fn format_diagnostic_request(p: &payload::PeerDiagnosticRequest) -> String {
    let id = paint_text(FAINT_STYLE, &p.diagnostic_id.to_string());
    format!(
        "{}: {}{}  {id}",
        p.severity,
        escape_controls(&p.symptom),
        format_list(&p.substrate_refs)
    )
}

fn format_diagnostic_response(p: &payload::PeerDiagnosticResponse) -> String {
    let remedy = p
        .remediation
        .as_ref()
        .map(|text| format!("; {}", escape_controls(text)))
        .unwrap_or_default();
    format!(
        "{}{remedy}{}",
        escape_controls(&p.finding),
        format_list(&p.substrate_refs)
    )
}

fn format_intent(p: &payload::IntentDeclare) -> String {
    let urgency = p
        .urgency
        .map(|urgency| format!(" ({urgency})"))
        .unwrap_or_default();
    format!(
        "{} {}{urgency}",
        escape_controls(&p.convergence_class),
        escape_controls(&p.payload_ref)
    )
}

fn format_handover(p: &payload::AgentHandover) -> String {
    let from = escape_controls(&p.previous_session_id);
    let next = p.next_session_id.as_ref().filter(|next| !next.is_empty());
    match next {
        Some(next) => format!("of {from} taken by {}", escape_controls(next)),
        None => {
            let first_line = p
                .handover_body
                .lines()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();
            format!(
                "from {from}: {}{}",
                escape_controls(first_line),
                format_list(&p.pointer_refs)
            )
        }
    }
}

fn format_list(items: &Option<Vec<String>>) -> String {
    let items: Vec<String> = items
        .iter()
        .flatten()
        .map(|item| escape_controls(item))
        .collect();
    if items.is_empty() {
        String::new()
    } else {
        format!(" [{}]", items.join(", "))
    }
}

/// `src/main.rs  ~alice cli@t1  4m05s left  renaming`
pub fn format_claim(claim: &LockClaim, width: usize, now: UnixMicros) -> String {
    let resource = paint_text(
        STRONG_STYLE,
        &format!("{:width$}", escape_controls(&claim.resource)),
    );
    let holder = format_holder(claim);
    let left = crate::commands::duration::format_duration(claim.time_left(now));
    let intent = claim
        .intent
        .as_ref()
        .map(|intent| format!("  {}", escape_controls(intent)))
        .unwrap_or_default();
    format!("{resource}  {holder}  {left} left{intent}")
}

pub fn format_holder(claim: &LockClaim) -> String {
    let session = claim.session.as_ref().unwrap_or(&claim.drafted_with);
    let session = match session.split_once('@') {
        Some((instrument, id)) => format!("{}@{}", escape_controls(instrument), short_session(id)),
        None => escape_controls(session),
    };
    format!("{} {session}", claim.holder)
}
