//! `chorus roster`: lists the live sessions of a handle (FRM-109).

use super::frame_context::{FrameContext, SenderArgs, parse_handle};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_wire::identity::Handle;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The handle; default: your own
    #[arg(value_name = "~HANDLE", value_parser = parse_handle)]
    handle: Option<Handle>,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let handle = args.handle.as_ref().unwrap_or(&context.sender.handle);
    let roster = context.client.fetch_roster(handle).await?;
    let format_session = |instrument: &str, session: &str| {
        output::escape_controls(&format!("{instrument}@{session}"))
    };
    let width = roster
        .sessions
        .iter()
        .map(|s| format_session(&s.instrument, &s.session).chars().count())
        .max()
        .unwrap_or(0);
    if roster.sessions.is_empty() {
        super::format::print_aside(common.json, &format!("no session of {handle} is listening"));
    }
    for session in &roster.sessions {
        output::print_result(common.json, session, || {
            let session_name = output::paint_text(
                output::STRONG_STYLE,
                &format!(
                    "{:width$}",
                    format_session(&session.instrument, &session.session)
                ),
            );
            let filter = Some(&session.filter).filter(|filter| !filter.is_empty());
            let filter = filter
                .map(|filter| format!("  only {}", output::escape_controls(filter)))
                .unwrap_or_default();
            let since = output::whole_seconds(&session.since.to_string());
            format!(
                "{session_name}  {}  since {since}{filter}",
                output::escape_controls(&session.tool)
            )
        });
    }
    Ok(())
}
