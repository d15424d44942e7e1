//! `chorus diagnose`: a symptom told to those who may know, or a finding given back (FRM-42, FRM-43, FRM-107).

use super::ask::collect;
use super::voice::{self, Seat, Toward, Voice};
use crate::commands::span;
use crate::{cli::Common, fail::Fail, signals::Stop};
use chorus_client::frame::new_id;
use chorus_wire::frame::payload::{PeerDiagnosticRequest, PeerDiagnosticResponse, Severity};
use chorus_wire::frame::{Frame, Kind, Payload, Scope};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The symptom; with --answer, the finding. Leave secrets out of it
    #[arg(required = true)]
    text: Vec<String>,
    /// How bad it is: info, degraded or blocked
    #[arg(long, value_name = "SEVERITY", value_parser = severity, required_unless_present = "answer")]
    severity: Option<Severity>,
    /// What was observed: a log, a run, a commit; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    /// How long to wait for findings
    #[arg(long, value_name = "TIME", value_parser = span::parse, conflicts_with = "answer")]
    window: Option<Duration>,
    /// Give a finding for this diagnostic
    #[arg(long, value_name = "ID", conflicts_with = "severity")]
    answer: Option<Uuid>,
    /// What would help
    #[arg(long, value_name = "TEXT", requires = "answer")]
    remediation: Option<String>,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

fn severity(text: &str) -> Result<Severity, String> {
    Severity::parse(text).ok_or_else(|| format!("one of {}", Severity::TEXTS.join(", ")))
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let stop = Stop::watch()?;
    let seat = Seat::take(common, args.voice.clone()).await?;
    let refs = Some(args.refs.clone()).filter(|refs| !refs.is_empty());
    if let Some(id) = args.answer {
        return answer(&seat, &args, id, refs).await;
    }
    let scope = seat.toward(&args.toward);
    let diagnostic_id = new_id();
    let payload = PeerDiagnosticRequest {
        symptom: args.text.join(" "),
        diagnostic_id,
        substrate_refs: refs,
        severity: args.severity.unwrap_or(Severity::Info),
    };
    let frame = seat.frame(&scope, payload)?;
    let mut findings = match args.window {
        Some(window) => Some((seat.answers(Kind::PeerDiagnosticResponse).await?, window)),
        None => None,
    };
    let said = seat.submit(&scope, frame).await?;
    seat.told(&said, json!({ "diagnostic_id": diagnostic_id }));
    if !common.json {
        crate::out::line(&format!("findings name {diagnostic_id}"));
    }
    if let Some((frames, window)) = &mut findings {
        let ours = |frame: &Frame| matches!(&frame.payload, Payload::PeerDiagnosticResponse(found) if found.diagnostic_id == diagnostic_id);
        collect(common, frames, ours, *window, usize::MAX, stop).await?;
    }
    Ok(())
}

async fn answer(
    seat: &Seat<'_>,
    args: &Args,
    id: Uuid,
    refs: Option<Vec<String>>,
) -> Result<(), Fail> {
    let payload = PeerDiagnosticResponse {
        diagnostic_id: id,
        finding: args.text.join(" "),
        remediation: args.remediation.clone(),
        substrate_refs: refs,
    };
    let scope = match args.toward.named() {
        Some(scope) => scope,
        None => {
            let (kept, _) = seat.client.kept(&seat.speaker, voice::now).await?;
            let asked = kept.iter().find(
                |frame| matches!(&frame.payload, Payload::PeerDiagnosticRequest(asked) if asked.diagnostic_id == id),
            );
            // Nobody but those who asked needs to read it (FRM-107).
            asked.map_or_else(
                || seat.speaker.own(),
                |frame| Scope::Handle(frame.sender_handle.clone()),
            )
        }
    };
    seat.announce(&scope, payload, json!({ "diagnostic_id": id }))
        .await
        .map(|_| ())
}
