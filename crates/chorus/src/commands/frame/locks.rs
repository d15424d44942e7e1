//! `chorus locks`: who claims which resource right now, told from the frames that the hub still keeps (FRM-27).

use super::voice::{self, Seat, Voice};
use super::{hook, place, show};
use crate::fail::{Exit, Fail};
use crate::{cli::Common, out, signals::Stop};
use chorus_client::frame::{Claim, Claims, Frames, Heard};
use chorus_wire::time::Micros;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// End with exit code 4 if another session claims one of these
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["follow", "hook"])]
    check: Vec<String>,
    /// Go on, and show each change
    #[arg(long, conflicts_with = "hook")]
    follow: bool,
    /// Be an editor's hook before an edit: the session and the file come as JSON on standard input, and the editor is told to ask
    /// first if another session claims the file
    #[arg(long)]
    hook: bool,
    #[command(flatten)]
    voice: Voice,
}

impl Args {
    /// As an editor's hook before an edit.
    pub fn hooked(voice: Voice) -> Self {
        Self {
            check: Vec::new(),
            follow: false,
            hook: true,
            voice,
        }
    }
}

pub async fn run(common: &Common, mut args: Args) -> Result<(), Fail> {
    if args.hook {
        let Some(edit) = hook::Edit::read() else {
            return Ok(());
        };
        edit.speak(&mut args.voice);
        return hook::forgive(before(common, args.voice, &edit.file).await);
    }
    let seat = Seat::take(common, args.voice).await?;
    let (mut claims, mut frames) = seat.claims().await?;
    if !args.check.is_empty() {
        return check(&seat, &claims, &args.check);
    }
    list(common, &claims);
    if !args.follow {
        return Ok(());
    }
    let mut stop = Stop::watch()?;
    loop {
        let heard = tokio::select! {
            heard = frames.next() => heard?,
            () = stop.asked() => return Ok(()),
        };
        if let Heard::Frame(frame, _) = heard {
            let before: Vec<Claim> = claims.at(voice::now()).into_iter().cloned().collect();
            claims.hear(&frame);
            if claims.at(voice::now()).into_iter().ne(before.iter()) {
                out::say(
                    common.json,
                    &json!({ "locks": claims.at(voice::now()) }),
                    || show::frame(&frame),
                );
            }
        }
    }
}

impl Seat<'_> {
    /// The claims that the hub's ring tells of, and the stream that goes on after them.
    pub async fn claims(&self) -> Result<(Claims, Frames), Fail> {
        let (kept, frames) = self.client.kept(&self.speaker, voice::now).await?;
        let mut claims = Claims::default();
        kept.iter().for_each(|frame| claims.hear(frame));
        Ok((claims, frames))
    }

    /// Whether this session made the claim.
    pub fn holds(&self, claim: &Claim) -> bool {
        let here = format!("{}@{}", self.speaker.instrument, self.speaker.session);
        claim.holder == self.speaker.handle && claim.session.as_deref() == Some(&here)
    }
}

fn list(common: &Common, claims: &Claims) {
    let now = voice::now();
    let held = claims.at(now);
    let width = held
        .iter()
        .map(|claim| out::harmless(&claim.resource).chars().count())
        .max()
        .unwrap_or(0);
    if held.is_empty() {
        show::aside(common.json, "nothing is claimed");
    }
    for claim in held {
        out::say(common.json, &told(claim, now), || {
            show::claim(claim, width, now)
        });
    }
}

/// The claim and the milliseconds that are left of it.
fn told(claim: &Claim, now: Micros) -> serde_json::Value {
    let mut value = json!(claim);
    value["left_ms"] = json!(crate::commands::span::millis(claim.left(now)));
    value
}

fn check(seat: &Seat<'_>, claims: &Claims, files: &[String]) -> Result<(), Fail> {
    let now = voice::now();
    let mut in_the_way = 0;
    for file in files {
        let name = place::shared_name(file);
        for claim in claims
            .on(&name, now)
            .into_iter()
            .filter(|claim| !seat.holds(claim))
        {
            out::say(seat.common.json, &told(claim, now), || {
                show::claim(claim, 0, now)
            });
            in_the_way += 1;
        }
    }
    match in_the_way {
        0 => Ok(()),
        _ => Err(Fail::new(
            Exit::Refused,
            "CLAIMED",
            "another session claims it",
        )),
    }
}

/// What editors of the Claude Code kind read from a hook that runs before a tool.
async fn before(common: &Common, voice: Voice, file: &str) -> Result<(), Fail> {
    let seat = Seat::take(common, voice).await?;
    let (claims, _) = seat.claims().await?;
    let now = voice::now();
    let name = place::shared_name(file);
    let theirs = claims
        .on(&name, now)
        .into_iter()
        .find(|claim| !seat.holds(claim));
    let Some(claim) = theirs else { return Ok(()) };
    let intent = claim
        .intent
        .as_ref()
        .map(|intent| format!(" ({intent})"))
        .unwrap_or_default();
    let left = crate::commands::span::short(claim.left(now));
    let reason = format!(
        "{} is claimed by {} for {left}{intent}",
        claim.resource,
        show::holder(claim)
    );
    let answer = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": reason } });
    out::line(&answer.to_string());
    Ok(())
}
