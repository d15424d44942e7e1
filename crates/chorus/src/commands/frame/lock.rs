//! `chorus lock`: claims a resource, extends the claim while a command runs, and releases it (FRM-23, FRM-33, R-40).

use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs, SentFrame};
use super::{format, git_tree};
use crate::commands::duration;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, output};
use chorus_client::frame::{FrameStream, FrameStreamEvent, LockClaim, LockClaims, random_uuid};
use chorus_wire::frame::payload::{AgentLeaseExtend, AgentLockRelease, AgentLockRequest};
use chorus_wire::frame::{FrameKind, FrameScope};
use chorus_wire::limits;
use serde_json::json;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

/// The longest time between two lease extensions.
const EXTEND_INTERVAL: Duration = Duration::from_secs(120);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to claim. A file inside a repository is named from its root; anything else stays as written
    resource: String,
    /// How long, at most an hour; with a command it is extended until the command ends
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_ttl)]
    ttl: Duration,
    /// The purpose
    #[arg(long, value_name = "TEXT")]
    intent: Option<String>,
    /// If another session claims it, wait until it is free
    #[arg(long)]
    wait: bool,
    /// Claim it even if another session does
    #[arg(long, conflicts_with = "wait")]
    force: bool,
    /// Release this session's claim
    #[arg(long, conflicts_with_all = ["wait", "force", "intent", "command"])]
    release: bool,
    /// Run this while it is claimed, and exit with its code
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration::parse_duration(text)?;
    if duration::as_millis(ttl) > limits::LEASE_MAX_MS {
        Err("a claim lasts at most an hour".into())
    } else {
        Ok(ttl)
    }
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let resource = git_tree::shared_name(&args.resource);
    let mut signals = ForwardedSignals::watch()?;
    let context = FrameContext::open(common, args.sender.clone()).await?;
    let scope = context.resolve_scope(&args.target).await?;
    if args.release {
        return release_claims(&context, &scope, &resource).await;
    }
    let lock = ResourceLock {
        context,
        scope,
        resource,
        ttl: args.ttl,
        intent: args.intent.clone(),
    };
    let lease_id = tokio::select! {
        acquired = lock.acquire(&args) => acquired?,
        code = signals.wait_exit_code() => std::process::exit(code),
    };
    let Some((program, program_args)) = args.command.split_first() else {
        lock.print_claim(lease_id);
        return Ok(());
    };
    let mut command = Command::new(program);
    command
        .args(program_args)
        .env("CHORUS_LEASE_ID", lease_id.to_string());
    // `chorus` commands that it runs belong to this session too.
    command.env("CHORUS_INSTRUMENT", lock.context.sender.instrument.as_str());
    command.env("CHORUS_SESSION", lock.context.sender.session.as_str());
    let status = match command.spawn() {
        Ok(child) => lock.hold_while_running(lease_id, child, &mut signals).await,
        Err(error) => Err(Fail::usage_error(format!("{program}: {error}"))),
    };
    lock.release_lease(lease_id).await;
    std::process::exit(exit_code(status?));
}

struct ResourceLock<'a> {
    context: FrameContext<'a>,
    scope: FrameScope,
    resource: String,
    ttl: Duration,
    intent: Option<String>,
}

impl ResourceLock<'_> {
    /// Waits until the resource is free, claims it, then checks whether another claim was first: the hub keeps claims in the
    /// order in which they were made, and answers after it keeps this one.
    async fn acquire(&self, args: &Args) -> Result<Uuid, Fail> {
        let mut frames = self.context.open_live_frames().await?;
        loop {
            if !args.force {
                self.await_free(&mut frames, args.wait).await?;
            }
            let lease = random_uuid();
            let sent = self.send_request(lease).await?;
            if sent.submitted.kept == Some(false) {
                let text = "the hub keeps no more items under this handle: sessions that start later will not know of it";
                crate::output::print_aside(self.context.common.json, text);
            }
            if args.force {
                return Ok(lease);
            }
            let claims = self.context.fetch_claims().await?;
            let Some(first) = self.find_earlier(&claims, lease) else {
                return Ok(lease);
            };
            let refusal = claimed_error(first);
            self.release_lease(lease).await;
            if !args.wait {
                return Err(refusal);
            }
        }
    }

    async fn send_request(&self, lease_id: Uuid) -> Result<SentFrame, Fail> {
        let resource = self.resource.clone();
        let intent = self.intent.clone();
        let request = AgentLockRequest {
            resource,
            lease_id,
            ttl_ms: duration::as_millis(self.ttl),
            intent,
        };
        self.context.send_frame(&self.scope, request).await
    }

    /// The first claim of another session on the resource.
    fn first_claim<'c>(&self, claims: &'c LockClaims) -> Option<&'c LockClaim> {
        let others = claims
            .claims_on(&self.resource, frame_context::current_time())
            .into_iter()
            .filter(|claim| !self.context.is_holder(claim));
        others.min_by_key(|claim| claim.order)
    }

    /// The first claim of another session, if it is earlier than ours.
    fn find_earlier<'c>(&self, claims: &'c LockClaims, lease: Uuid) -> Option<&'c LockClaim> {
        let ours = claims
            .active_claims(frame_context::current_time())
            .into_iter()
            .find(|claim| claim.lease_id == lease)
            .map(|claim| claim.order);
        self.first_claim(claims)
            .filter(|first| ours.is_some_and(|ours| first.order < ours))
    }

    /// Waits until no other session claims the resource; without `wait`, another claim is an error.
    async fn await_free(&self, frames: &mut FrameStream, wait: bool) -> Result<(), Fail> {
        let mut announced_lease = None;
        loop {
            let claims = self.context.fetch_claims().await?;
            let Some(first) = self.first_claim(&claims) else {
                return Ok(());
            };
            if !wait {
                return Err(claimed_error(first));
            }
            if announced_lease != Some(first.lease_id) {
                announced_lease = Some(first.lease_id);
                crate::output::print_aside(
                    self.context.common.json,
                    &format!("waiting for {}", format::format_holder(first)),
                );
            }
            let time_left = first.time_left(frame_context::current_time());
            // Until a frame says that a claim has changed, or until the claim expires.
            match timeout(time_left, wait_lock_change(frames)).await {
                Ok(changed) => changed?,
                Err(_) => continue,
            }
        }
    }

    fn print_claim(&self, lease: Uuid) {
        let ends = frame_context::current_time().saturating_add(self.ttl);
        let value = json!({ "resource": self.resource, "lease_id": lease, "expires_at": ends });
        output::print_result(self.context.common.json, &value, || {
            let name = output::paint_text(
                output::STRONG_STYLE,
                &output::escape_controls(&self.resource),
            );
            format!(
                "claimed {name} for {}  {}",
                duration::format_duration(self.ttl),
                output::paint_text(output::FAINT_STYLE, &lease.to_string())
            )
        });
    }

    /// Extends the claim until the command ends; an unreachable hub does not stop the command.
    async fn hold_while_running(
        &self,
        lease: Uuid,
        mut child: Child,
        signals: &mut ForwardedSignals,
    ) -> Result<ExitStatus, Fail> {
        let interval = EXTEND_INTERVAL.min(self.ttl / 2);
        let mut renewed_at = Instant::now();
        loop {
            tokio::select! {
                status = child.wait() => return status.map_err(|e| Fail::usage_error(format!("the command: {e}"))),
                signal = signals.next_signal() => forward_signal(&child, signal),
                () = sleep(interval) => {
                    let passed = renewed_at.elapsed();
                    let extended = self.extend_lease(lease, passed).await;
                    match extended {
                        Ok(()) => renewed_at = Instant::now(),
                        Err(fail) => tracing::warn!(?fail, "the claim could not be extended"),
                    }
                }
            }
        }
    }

    /// Adds the time that has passed. A lease that the hub no longer keeps, because the machine slept, is claimed again.
    async fn extend_lease(&self, lease_id: Uuid, passed: Duration) -> Result<(), Fail> {
        let ttl_ms = duration::as_millis(passed).clamp(1, limits::LEASE_MAX_MS);
        let extend = AgentLeaseExtend { lease_id, ttl_ms };
        let sent = self.context.send_frame(&self.scope, extend).await?;
        if sent.submitted.kept == Some(false) {
            self.send_request(lease_id).await?;
        }
        Ok(())
    }

    /// Releases the claim. If that fails, the claim expires by itself.
    async fn release_lease(&self, lease_id: Uuid) {
        let release = AgentLockRelease {
            lease_id,
            resource: Some(self.resource.clone()),
        };
        if let Err(fail) = self.context.send_frame(&self.scope, release).await {
            tracing::warn!(?fail, "the claim could not be released");
        }
    }
}

/// Waits for a frame that opens, extends or releases a claim.
async fn wait_lock_change(frames: &mut FrameStream) -> Result<(), Fail> {
    loop {
        if let FrameStreamEvent::Frame(frame, _) = frames.next().await?
            && is_lock_kind(frame.kind())
        {
            return Ok(());
        }
    }
}

pub fn is_lock_kind(kind: FrameKind) -> bool {
    matches!(
        kind,
        FrameKind::AgentLockRequest | FrameKind::AgentLockRelease | FrameKind::AgentLeaseExtend
    )
}

fn claimed_error(claim: &LockClaim) -> Fail {
    let left = duration::format_duration(claim.time_left(frame_context::current_time()));
    let intent = claim
        .intent
        .as_ref()
        .map(|intent| format!(": {intent}"))
        .unwrap_or_default();
    let resource = &claim.resource;
    let holder = format::format_holder(claim);
    let hint = "use --wait or --force";
    Fail::new(
        ExitKind::Refused,
        "CLAIMED",
        format!("{resource} is claimed by {holder} for another {left}{intent}; {hint}"),
    )
}

async fn release_claims(
    context: &FrameContext<'_>,
    scope: &FrameScope,
    resource: &str,
) -> Result<(), Fail> {
    let claims = context.fetch_claims().await?;
    let held = claims
        .active_claims(frame_context::current_time())
        .into_iter()
        .filter(|claim| context.is_holder(claim) && claim.resource == resource);
    let held: Vec<&LockClaim> = held.collect();
    if held.is_empty() {
        return Err(Fail::new(
            ExitKind::Refused,
            "NOT_CLAIMED",
            format!(
                "this session does not claim {resource}; chorus locks shows who does. Another terminal is another session"
            ),
        ));
    }
    for claim in held {
        let release = AgentLockRelease {
            lease_id: claim.lease_id,
            resource: Some(resource.to_owned()),
        };
        let sent = context.send_frame(scope, release).await?;
        context.print_sent_as(&sent, json!({ "lease_id": claim.lease_id }), || {
            let name = output::escape_controls(resource);
            format!(
                "released {}",
                output::paint_text(output::STRONG_STYLE, &name)
            )
        });
    }
    Ok(())
}

/// SIGINT and SIGTERM, which are forwarded to the command.
struct ForwardedSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl ForwardedSignals {
    fn watch() -> Result<Self, Fail> {
        let signal_error = |e| Fail::usage_error(format!("cannot watch for signals: {e}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(signal_error)?;
        Ok(Self {
            interrupt,
            terminate: signal(SignalKind::terminate()).map_err(signal_error)?,
        })
    }

    async fn next_signal(&mut self) -> rustix::process::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => rustix::process::Signal::INT,
            _ = self.terminate.recv() => rustix::process::Signal::TERM,
        }
    }

    /// Waits for a signal and returns the exit code that a shell gives for it.
    async fn wait_exit_code(&mut self) -> i32 {
        128 + self.next_signal().await.as_raw()
    }
}

/// Forwards a signal to the command; when the command ends, the claim is released. At a terminal the command already gets
/// SIGINT, and a second one would interrupt its shutdown.
fn forward_signal(child: &Child, signal: rustix::process::Signal) {
    use std::io::IsTerminal;
    if signal == rustix::process::Signal::INT && std::io::stdin().is_terminal() {
        return;
    }
    let id = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // Fails if the command has just ended.
        let _ = rustix::process::kill_process(id, signal);
    }
}

/// The exit code as in a shell: for a signal, 128 plus its number.
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
