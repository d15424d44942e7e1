//! `chorus frame`: a frame of any kind, its payload as JSON; with --wait also the answers to it.

use super::ask::collect;
use super::voice::{Seat, Toward, Voice};
use super::watch;
use crate::commands::span;
use crate::{cli::Common, fail::Fail, signals::Stop};
use chorus_wire::frame::{Frame, Kind, Payload};
use chorus_wire::limits;
use serde_json::json;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// One of the fifteen kinds, such as agent_binding_moment
    #[arg(value_name = "KIND", value_parser = watch::kind)]
    kind: Kind,
    /// A file with the payload; otherwise standard input
    #[arg(value_name = "FILE", default_value = "-")]
    payload: PathBuf,
    /// Wait this long for answers to it, and end with the first one
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    wait: Option<Duration>,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let stop = Stop::watch()?;
    let text = text(&args.payload, limits::FRAME_BYTES)?;
    let payload = Payload::parse(args.kind, &text).map_err(|e| Fail::usage(e.message))?;
    let seat = Seat::take(common, args.voice).await?;
    let scope = seat.toward(&args.toward);
    let frame = seat.frame(&scope, payload)?;
    let mut answers = match args.wait {
        Some(wait) => Some((seat.answers(Kind::AgentResponse).await?, wait)),
        None => None,
    };
    let said = seat.submit(&scope, frame).await?;
    seat.told(&said, json!({}));
    if let Some((answers, wait)) = &mut answers {
        let id = said.frame.frame_id;
        let ours = |frame: &Frame| {
            matches!(&frame.payload, Payload::AgentResponse(answer)
                if answer.responded_to_frame_id == Some(id) || answer.query_id == id)
        };
        collect(common, answers, ours, *wait, 1, stop).await?;
    }
    Ok(())
}

/// A file, or standard input for `-`, of at most so many bytes.
pub fn text(from: &std::path::Path, most: usize) -> Result<String, Fail> {
    let name = from.display();
    let wrong = |e: std::io::Error| Fail::usage(format!("{name}: {e}"));
    let mut text = String::new();
    let take = most as u64 + 1;
    if from.as_os_str() == "-" {
        std::io::stdin()
            .lock()
            .take(take)
            .read_to_string(&mut text)
            .map_err(wrong)?;
    } else {
        std::fs::File::open(from)
            .map_err(wrong)?
            .take(take)
            .read_to_string(&mut text)
            .map_err(wrong)?;
    }
    if text.len() > most {
        return Err(Fail::usage(format!(
            "{name}: longer than {most} bytes; put it elsewhere and refer to it"
        )));
    }
    Ok(text)
}
