//! `chorus unregister`: leave the hub. The history stays, the key goes (TRN-32).

use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_client::Error;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Yes, give up this identity: its key is removed and its name may be taken by others
    #[arg(long)]
    yes: bool,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let session = Session::open(common)?;
    if !args.yes {
        let name = &session.who.agent_id;
        return Err(Fail::usage(format!(
            "this gives up {name} for good; say so with --yes"
        )));
    }
    let gone = session.client.unregister(&session.who.agent_id).await?;
    for file in [&session.place.credentials, &session.place.state] {
        match std::fs::remove_file(file) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::file(file, e).into()),
        }
    }
    out::say(common.json, &gone, || {
        let file = session.place.credentials.display();
        format!(
            "{} has left {}; {file} is removed",
            out::harmless(&gone.agent_id),
            session.client.base()
        )
    });
    Ok(())
}
