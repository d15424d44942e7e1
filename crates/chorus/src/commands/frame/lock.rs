//! `chorus lock`: a claim on a resource, said aloud, kept up while a command runs, and given back (FRM-23, FRM-33, R-40).

use super::voice::{self, Seat, Toward, Voice};
use super::{place, show};
use crate::commands::span;
use crate::fail::{Exit, Fail};
use crate::{cli::Common, out};
use chorus_client::frame::{Claim, Claims, Frames, Heard, new_id};
use chorus_wire::frame::Scope;
use chorus_wire::frame::payload::{AgentLeaseExtend, AgentLockRelease, AgentLockRequest};
use chorus_wire::limits;
use serde_json::json;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

/// A hub keeps frames for five minutes: a claim that is said again sooner than that is known to whoever comes later.
const SAY_AGAIN: Duration = Duration::from_secs(150);
/// The longest pause between two signs of life.
const BEAT: Duration = Duration::from_secs(120);
/// How long our own claim may take to come back to us, which tells whether another one was first.
const ECHO: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to claim. A file inside a repository is named from its root; anything else is taken as written
    resource: String,
    /// For how long, at most an hour; with a command it is extended until that ends
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = lease)]
    ttl: Duration,
    /// What for
    #[arg(long, value_name = "TEXT")]
    intent: Option<String>,
    /// If another session claims it, wait until it is free
    #[arg(long)]
    wait: bool,
    /// Claim it although another session does
    #[arg(long, conflicts_with = "wait")]
    force: bool,
    /// Give back what this session claims
    #[arg(long, conflicts_with_all = ["wait", "force", "intent", "command"])]
    release: bool,
    /// Run this while it is claimed, and end with its exit code
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

fn lease(text: &str) -> Result<Duration, String> {
    let ttl = span::parse(text)?;
    if span::millis(ttl) > limits::LEASE_MS {
        Err("a claim lasts at most an hour".into())
    } else {
        Ok(ttl)
    }
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let resource = place::shared_name(&args.resource);
    let mut signals = Signals::watch()?;
    let seat = Seat::take(common, args.voice.clone()).await?;
    let scope = seat.toward(&args.toward);
    if args.release {
        return release(&seat, &scope, &resource).await;
    }
    let lock = Lock {
        seat,
        scope,
        resource,
        ttl: args.ttl,
        intent: args.intent.clone(),
    };
    let taken = tokio::select! {
        taken = lock.take(&args) => taken?,
        code = signals.interrupted() => std::process::exit(code),
    };
    let Some((program, words)) = args.command.split_first() else {
        lock.tell(taken);
        return Ok(());
    };
    let mut command = Command::new(program);
    command
        .args(words)
        .env("CHORUS_LEASE_ID", taken.to_string());
    // Whatever it calls of ours is this session too.
    command.env("CHORUS_INSTRUMENT", lock.seat.speaker.instrument.as_str());
    command.env("CHORUS_SESSION", lock.seat.speaker.session.as_str());
    let status = match command.spawn() {
        Ok(child) => lock.keep(taken, child, &mut signals).await,
        Err(error) => Err(Fail::usage(format!("{program}: {error}"))),
    };
    lock.give_back(taken).await;
    std::process::exit(code(status?));
}

struct Lock<'a> {
    seat: Seat<'a>,
    scope: Scope,
    resource: String,
    ttl: Duration,
    intent: Option<String>,
}

impl Lock<'_> {
    /// Looks, claims, and looks again whether another claim was first: the handle's stream has one order for all.
    async fn take(&self, args: &Args) -> Result<Uuid, Fail> {
        let (mut claims, mut frames) = self.seat.claims().await?;
        loop {
            if !args.force {
                self.await_free(&mut claims, &mut frames, args.wait).await?;
            }
            let lease = new_id();
            self.request(lease).await?;
            if args.force || self.scope != self.seat.speaker.own() {
                return Ok(lease);
            }
            self.await_echo(&mut claims, &mut frames, lease).await?;
            let Some(first) = self.earlier(&claims, lease) else {
                return Ok(lease);
            };
            let refusal = claimed(first);
            self.give_back(lease).await;
            if !args.wait {
                return Err(refusal);
            }
        }
    }

    async fn request(&self, lease_id: Uuid) -> Result<(), Fail> {
        let (resource, intent) = (self.resource.clone(), self.intent.clone());
        let request = AgentLockRequest {
            resource,
            lease_id,
            ttl_ms: span::millis(self.ttl),
            intent,
        };
        self.seat.say(&self.scope, request).await.map(|_| ())
    }

    /// Of the others' claims on it, the one that was first.
    fn first<'c>(&self, claims: &'c Claims) -> Option<&'c Claim> {
        let others = claims
            .on(&self.resource, voice::now())
            .into_iter()
            .filter(|claim| !self.seat.holds(claim));
        others.min_by_key(|claim| claim.turn)
    }

    /// The same, if it came before ours.
    fn earlier<'c>(&self, claims: &'c Claims, lease: Uuid) -> Option<&'c Claim> {
        let ours = claims
            .at(voice::now())
            .into_iter()
            .find(|claim| claim.lease_id == lease)
            .map(|claim| claim.turn);
        self.first(claims)
            .filter(|first| ours.is_some_and(|ours| first.turn < ours))
    }

    /// Returns when nobody else claims it; without `wait`, somebody who does is a refusal.
    async fn await_free(
        &self,
        claims: &mut Claims,
        frames: &mut Frames,
        wait: bool,
    ) -> Result<(), Fail> {
        let mut told = None;
        while let Some(first) = self.first(claims) {
            if !wait {
                return Err(claimed(first));
            }
            if told != Some(first.lease_id) {
                told = Some(first.lease_id);
                show::aside(
                    self.seat.common.json,
                    &format!("waiting for {}", show::holder(first)),
                );
            }
            // Whatever comes first: a frame that may change it, or the end of the claim.
            if let Ok(heard) = timeout(first.left(voice::now()), frames.next()).await
                && let Heard::Frame(frame, _) = heard?
            {
                claims.hear(&frame);
            }
        }
        Ok(())
    }

    /// Hears until our own claim has come back.
    async fn await_echo(
        &self,
        claims: &mut Claims,
        frames: &mut Frames,
        lease: Uuid,
    ) -> Result<(), Fail> {
        let echo = async {
            while !claims
                .at(voice::now())
                .iter()
                .any(|claim| claim.lease_id == lease)
            {
                if let Heard::Frame(frame, _) = frames.next().await? {
                    claims.hear(&frame);
                }
            }
            Ok(())
        };
        timeout(ECHO, echo).await.unwrap_or(Ok(()))
    }

    fn tell(&self, lease: Uuid) {
        let ends = voice::now().plus(self.ttl);
        let value = json!({ "resource": self.resource, "lease_id": lease, "expires_at": ends });
        out::say(self.seat.common.json, &value, || {
            let name = out::painted(out::STRONG, &out::harmless(&self.resource));
            format!(
                "claimed {name} for {}  {}",
                span::short(self.ttl),
                out::painted(out::FAINT, &lease.to_string())
            )
        });
        if self.ttl > SAY_AGAIN * 2 {
            show::aside(
                self.seat.common.json,
                "sessions that come later than the hub's retention will not know of it",
            );
        }
    }

    /// Extends the claim until the command ends; a hub that is away does not stop it.
    async fn keep(
        &self,
        lease: Uuid,
        mut child: Child,
        signals: &mut Signals,
    ) -> Result<ExitStatus, Fail> {
        let beat = BEAT.min(self.ttl / 2);
        let (mut said, mut renewed) = (Instant::now(), Instant::now());
        loop {
            tokio::select! {
                status = child.wait() => return status.map_err(|e| Fail::usage(format!("the command: {e}"))),
                number = signals.next() => forward(&child, number),
                () = sleep(beat) => {
                    let passed = renewed.elapsed();
                    let kept = if said.elapsed() < SAY_AGAIN {
                        let ttl_ms = span::millis(passed).clamp(1, limits::LEASE_MS);
                        self.seat.say(&self.scope, AgentLeaseExtend { lease_id: lease, ttl_ms }).await.map(|_| ())
                    } else {
                        said = Instant::now();
                        self.request(lease).await
                    };
                    match kept {
                        Ok(()) => renewed = Instant::now(),
                        Err(fail) => tracing::warn!(?fail, "the claim could not be extended"),
                    }
                }
            }
        }
    }

    /// A claim that cannot be given back runs out by itself.
    async fn give_back(&self, lease_id: Uuid) {
        let release = AgentLockRelease {
            lease_id,
            resource: Some(self.resource.clone()),
        };
        if let Err(fail) = self.seat.say(&self.scope, release).await {
            tracing::warn!(?fail, "the claim could not be given back");
        }
    }
}

fn claimed(claim: &Claim) -> Fail {
    let left = span::short(claim.left(voice::now()));
    let intent = claim
        .intent
        .as_ref()
        .map(|intent| format!(": {intent}"))
        .unwrap_or_default();
    let (resource, holder) = (&claim.resource, show::holder(claim));
    let how = "use --wait or --force";
    Fail::new(
        Exit::Refused,
        "CLAIMED",
        format!("{resource} is claimed by {holder} for another {left}{intent}; {how}"),
    )
}

async fn release(seat: &Seat<'_>, scope: &Scope, resource: &str) -> Result<(), Fail> {
    let (claims, _) = seat.claims().await?;
    let held = claims
        .at(voice::now())
        .into_iter()
        .filter(|claim| seat.holds(claim) && claim.resource == resource);
    let held: Vec<&Claim> = held.collect();
    if held.is_empty() {
        return Err(Fail::new(
            Exit::Refused,
            "NOT_CLAIMED",
            format!("this session does not claim {resource}"),
        ));
    }
    for claim in held {
        let release = AgentLockRelease {
            lease_id: claim.lease_id,
            resource: Some(resource.to_owned()),
        };
        seat.announce(scope, release, json!({ "lease_id": claim.lease_id }))
            .await?;
    }
    Ok(())
}

/// The two signals that ask us to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> Result<Self, Fail> {
        let wrong = |e| Fail::usage(format!("cannot watch for signals: {e}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(wrong)?;
        Ok(Self {
            interrupt,
            terminate: signal(SignalKind::terminate()).map_err(wrong)?,
        })
    }

    async fn next(&mut self) -> rustix::process::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => rustix::process::Signal::INT,
            _ = self.terminate.recv() => rustix::process::Signal::TERM,
        }
    }

    /// The exit code of a shell's command that was ended by this signal.
    async fn interrupted(&mut self) -> i32 {
        128 + self.next().await.as_raw()
    }
}

/// The command is asked to stop as we were; then its end is our end, and the claim is given back. At a terminal an interrupt
/// reaches the command by itself, and a second one would cut short how it ends.
fn forward(child: &Child, number: rustix::process::Signal) {
    use std::io::IsTerminal;
    if number == rustix::process::Signal::INT && std::io::stdin().is_terminal() {
        return;
    }
    let id = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // It may have ended in this moment.
        let _ = rustix::process::kill_process(id, number);
    }
}

/// As a shell tells it: a signal is 128 and its number.
fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
