//! `chorus diagnose`: reports a symptom to other sessions, or answers one with a finding (FRM-42, FRM-43, FRM-107).

use super::collect_answers::{AnswerWait, collect_answers};
use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs};
use crate::commands::duration;
use crate::{cli::CommonArgs, fail::Fail, stop_signal::StopSignal};
use chorus_client::frame::random_uuid;
use chorus_wire::frame::payload::{
    DiagnosticSeverity, PeerDiagnosticRequest, PeerDiagnosticResponse,
};
use chorus_wire::frame::redact::redact_text;
use chorus_wire::frame::{Frame, FrameKind, FramePayload, FrameScope};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The symptom; with --answer, the finding. What looks like a secret is redacted
    #[arg(required = true)]
    text: Vec<String>,
    /// The severity: info, degraded or blocked
    #[arg(long, value_name = "SEVERITY", value_parser = parse_severity, required_unless_present = "answer")]
    severity: Option<DiagnosticSeverity>,
    /// A reference to what was observed: a log, a run, a commit; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    /// How long to wait for findings
    #[arg(long, value_name = "TIME", value_parser = duration::parse_duration, conflicts_with = "answer")]
    window: Option<Duration>,
    /// Answer this diagnostic with a finding
    #[arg(long, value_name = "ID", conflicts_with = "severity")]
    answer: Option<Uuid>,
    /// A remedy
    #[arg(long, value_name = "TEXT", requires = "answer")]
    remediation: Option<String>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

fn parse_severity(text: &str) -> Result<DiagnosticSeverity, String> {
    DiagnosticSeverity::parse(text)
        .ok_or_else(|| format!("one of {}", DiagnosticSeverity::TEXTS.join(", ")))
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let stop = StopSignal::watch()?;
    let context = FrameContext::open(common, args.sender.clone()).await?;
    let refs: Vec<String> = args.refs.iter().map(|one| redact_text(one)).collect();
    let refs = Some(refs).filter(|refs| !refs.is_empty());
    if let Some(id) = args.answer {
        return send_finding(&context, &args, id, refs).await;
    }
    let scope = context.resolve_scope(&args.target).await?;
    let diagnostic_id = random_uuid();
    let payload = PeerDiagnosticRequest {
        symptom: redact_text(&args.text.join(" ")),
        diagnostic_id,
        substrate_refs: refs,
        severity: args.severity.unwrap_or(DiagnosticSeverity::Info),
    };
    let frame = context.build_frame(&scope, payload)?;
    let mut findings = match args.window {
        Some(window) => Some((
            context
                .open_answers(FrameKind::PeerDiagnosticResponse)
                .await?,
            window,
        )),
        None => None,
    };
    let sent = context.submit_frame(&scope, frame).await?;
    context.print_sent(&sent, json!({ "diagnostic_id": diagnostic_id }));
    if !common.json {
        crate::output::print_line(&format!("findings name {diagnostic_id}"));
    }
    if let Some((frames, window)) = &mut findings {
        let is_ours = |frame: &Frame| matches!(&frame.payload, FramePayload::PeerDiagnosticResponse(found) if found.diagnostic_id == diagnostic_id);
        let wait = AnswerWait {
            window: *window,
            max_count: usize::MAX,
            decision: None,
        };
        collect_answers(&context, frames, is_ours, &wait, stop).await?;
    }
    Ok(())
}

async fn send_finding(
    context: &FrameContext<'_>,
    args: &Args,
    id: Uuid,
    refs: Option<Vec<String>>,
) -> Result<(), Fail> {
    let payload = PeerDiagnosticResponse {
        diagnostic_id: id,
        finding: redact_text(&args.text.join(" ")),
        remediation: args.remediation.as_deref().map(redact_text),
        substrate_refs: refs,
    };
    let scope = match args.target.explicit_scope(&context.client).await? {
        Some(scope) => scope,
        None => {
            let (replayed, _) = context
                .client
                .replay_frames(&context.sender, frame_context::current_time)
                .await?;
            let request_frame = replayed.iter().find(
                |frame| matches!(&frame.payload, FramePayload::PeerDiagnosticRequest(asked) if asked.diagnostic_id == id),
            );
            // Only the asking handle needs to read it (FRM-107).
            request_frame.map_or_else(
                || context.sender.handle_scope(),
                |frame| FrameScope::Handle(frame.sender_handle.clone()),
            )
        }
    };
    context
        .send_and_print(&scope, payload, json!({ "diagnostic_id": id }))
        .await
        .map(|_| ())
}
