//! `chorus roster`: lists the live sessions of a handle (FRM-109).

use super::frame_context::{FrameContext, SenderArgs};
use crate::agent_names::HandleName;
use crate::{cli::CommonArgs, fail::Fail, output};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent; default: yourself
    #[arg(value_name = "NAME", value_parser = HandleName::parse)]
    name: Option<HandleName>,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let handle = match &args.name {
        Some(name) => name.resolve(&context.client).await?,
        None => context.sender.handle.clone(),
    };
    let roster = match context.client.fetch_roster(&handle).await {
        Ok(roster) => roster,
        Err(error) => return Err(context.explain_handle(&handle, error).await),
    };
    let format_session = |instrument: &str, session: &str| {
        format!(
            "{}@{}",
            output::escape_controls(instrument),
            output::short_session(session)
        )
    };
    let width = roster
        .sessions
        .iter()
        .map(|s| format_session(&s.instrument, &s.session).chars().count())
        .max()
        .unwrap_or(0);
    if roster.sessions.is_empty() {
        crate::output::print_aside(common.json, &format!("no session of {handle} is listening"));
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
            let since = crate::local_time::date_time(&session.since.to_string());
            format!(
                "{session_name}  {}  since {since}{filter}",
                output::escape_controls(&session.tool)
            )
        });
    }
    Ok(())
}
