//! `chorus roster`: which sessions of a handle are listening right now (FRM-109).

use super::voice::{Seat, Voice, handle};
use crate::{cli::Common, fail::Fail, out};
use chorus_wire::identity::Handle;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whose; otherwise your own
    #[arg(value_name = "~HANDLE", value_parser = handle)]
    handle: Option<Handle>,
    #[command(flatten)]
    voice: Voice,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let seat = Seat::take(common, args.voice).await?;
    let handle = args.handle.as_ref().unwrap_or(&seat.speaker.handle);
    let roster = seat.client.roster(handle).await?;
    let name = |instrument: &str, session: &str| out::harmless(&format!("{instrument}@{session}"));
    let width = roster
        .sessions
        .iter()
        .map(|s| name(&s.instrument, &s.session).chars().count())
        .max()
        .unwrap_or(0);
    if roster.sessions.is_empty() {
        super::show::aside(common.json, &format!("no session of {handle} is listening"));
    }
    for session in &roster.sessions {
        out::say(common.json, session, || {
            let seat = out::painted(
                out::STRONG,
                &format!("{:width$}", name(&session.instrument, &session.session)),
            );
            let filter = Some(&session.filter).filter(|filter| !filter.is_empty());
            let filter = filter
                .map(|filter| format!("  only {}", out::harmless(filter)))
                .unwrap_or_default();
            let since = out::seconds(&session.since.to_string());
            format!(
                "{seat}  {}  since {since}{filter}",
                out::harmless(&session.tool)
            )
        });
    }
    Ok(())
}
