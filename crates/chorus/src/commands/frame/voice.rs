//! Who speaks and to whom: the flags that every frame command takes, and the session they make.

use super::show;
use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_client::Client;
use chorus_client::frame::Speaker;
use chorus_hub::Clock;
use chorus_wire::frame::{
    ComputeLocation, ContextCheck, Frame, Ident, Payload, Scope, Submitted, org_handle,
};
use chorus_wire::identity::{Address, Handle};
use chorus_wire::time::Micros;
use serde_json::{Value, json};
use std::time::Duration;

/// Which session this is, and what its frames say about themselves.
#[derive(Clone, Debug, clap::Args)]
pub struct Voice {
    /// The program this session runs in, such as cc-editor
    #[arg(long, value_name = "NAME", env = "CHORUS_INSTRUMENT", value_parser = ident, default_value = "cli", help_heading = "Session")]
    pub instrument: Ident,
    /// This session's id; otherwise one per terminal, or per parent process where there is none
    #[arg(long, value_name = "ID", env = "CHORUS_SESSION", value_parser = ident, help_heading = "Session")]
    pub session: Option<Ident>,
    /// The class of tool; otherwise the instrument up to its first dash
    #[arg(long, value_name = "CLASS", env = "CHORUS_TOOL", value_parser = ident, help_heading = "Session")]
    pub tool: Option<Ident>,
    /// For whom it is said; otherwise your own handle
    #[arg(long, value_name = "~HANDLE", value_parser = handle, help_heading = "Session")]
    acted_by: Option<Handle>,
    /// What composed it; otherwise ~cc- and the instrument
    #[arg(long, value_name = "~NAME", help_heading = "Session")]
    drafted_with: Option<String>,
    /// How it was produced, a tag; may be repeated [default: command-line]
    #[arg(long = "method", value_name = "TAG", help_heading = "Session")]
    methods: Vec<String>,
    /// On what basis it is said; otherwise this session, or towards others just that it was a command
    #[arg(long, value_name = "TAG", help_heading = "Session")]
    basis: Option<String>,
    /// Where it was computed: server-active, server-aggregate or local-only
    #[arg(long, value_name = "WHERE", value_parser = compute, default_value = "local-only", help_heading = "Session")]
    compute: ComputeLocation,
    /// That your own policy was asked first
    #[arg(long, help_heading = "Session")]
    context_checked: bool,
    /// A reference to a return record
    #[arg(long, value_name = "REF", help_heading = "Session")]
    return_ref: Option<String>,
    /// After which time it is stale
    #[arg(long, value_name = "TIME", value_parser = crate::commands::span::parse, help_heading = "Session")]
    stale_after: Option<Duration>,
}

/// For whom a frame is.
#[derive(Clone, Debug, clap::Args)]
pub struct Toward {
    /// The sessions it is for, such as ~me/cc-*, org:~acme/members/*; otherwise all of your own
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    pub scope: Option<Scope>,
    /// All sessions of this handle
    #[arg(long, value_name = "~HANDLE", value_parser = handle, conflicts_with = "scope")]
    pub to: Option<Handle>,
}

impl Toward {
    pub fn named(&self) -> Option<Scope> {
        self.scope
            .clone()
            .or_else(|| self.to.clone().map(Scope::Handle))
    }
}

pub fn ident(text: &str) -> Result<Ident, String> {
    Ident::parse(text).ok_or_else(|| "1 to 128 of letters, digits, '.', '_' and '-'".into())
}

pub fn handle(text: &str) -> Result<Handle, String> {
    Handle::parse(text).ok_or_else(|| "a handle looks like ~alice".into())
}

pub fn org(text: &str) -> Result<Handle, String> {
    org_handle(text).ok_or_else(|| "an organisation's handle looks like ~acme".into())
}

fn scope(text: &str) -> Result<Scope, String> {
    text.parse()
        .map_err(|e: chorus_wire::frame::FrameError| e.message)
}

fn compute(text: &str) -> Result<ComputeLocation, String> {
    ComputeLocation::parse(text)
        .ok_or_else(|| format!("one of {}", ComputeLocation::TEXTS.join(", ")))
}

pub fn now() -> Micros {
    Clock::system().now()
}

/// A registered agent at its place among the sessions of its handle.
pub struct Seat<'a> {
    pub common: &'a Common,
    pub client: Client,
    pub speaker: Speaker,
}

/// A frame that the hub took.
pub struct Said {
    pub frame: Frame,
    pub submitted: Submitted,
}

impl<'a> Seat<'a> {
    pub async fn take(common: &'a Common, voice: Voice) -> Result<Self, Fail> {
        let session = Session::open(common)?;
        let own = own_handle(&session).await?;
        let id = match voice.session {
            Some(id) => id,
            None => terminal()?,
        };
        let mut speaker = Speaker::new(own, voice.instrument, id);
        speaker.tool = voice.tool;
        speaker.acted_by = voice.acted_by.unwrap_or(speaker.acted_by);
        speaker.drafted_with = voice.drafted_with.unwrap_or(speaker.drafted_with);
        if !voice.methods.is_empty() {
            speaker.method = voice.methods;
        }
        speaker.basis = voice.basis;
        speaker.compute_location = voice.compute;
        speaker.return_ref = voice.return_ref;
        speaker.ttl_ms = voice.stale_after.map(crate::commands::span::millis);
        if voice.context_checked {
            speaker.context_check = ContextCheck::Passed;
        }
        Ok(Self {
            common,
            client: session.client,
            speaker,
        })
    }

    /// The scope that was named, or all of one's own sessions.
    pub fn toward(&self, toward: &Toward) -> Scope {
        toward.named().unwrap_or_else(|| self.speaker.own())
    }

    /// Checked here with the hub's own checks, so that what is wrong is said without asking.
    pub fn frame(&self, scope: &Scope, payload: impl Into<Payload>) -> Result<Frame, Fail> {
        let draft = self.speaker.draft(scope, payload.into(), now());
        draft.check().map_err(|e| Fail::usage(e.message))
    }

    pub async fn submit(&self, scope: &Scope, frame: Frame) -> Result<Said, Fail> {
        let submitted = self
            .client
            .submit(&self.speaker, scope, &frame, false)
            .await?;
        Ok(Said { frame, submitted })
    }

    pub async fn say(&self, scope: &Scope, payload: impl Into<Payload>) -> Result<Said, Fail> {
        self.submit(scope, self.frame(scope, payload)?).await
    }

    /// Says it and tells the user so, with `more` beside the hub's answer.
    pub async fn announce(
        &self,
        scope: &Scope,
        payload: impl Into<Payload>,
        more: Value,
    ) -> Result<Said, Fail> {
        let said = self.say(scope, payload).await?;
        self.told(&said, more);
        Ok(said)
    }

    pub fn told(&self, said: &Said, more: Value) {
        let mut value = json!(said.submitted);
        if let (Value::Object(into), Value::Object(more)) = (&mut value, more) {
            into.extend(more);
        }
        out::say(self.common.json, &value, || {
            show::submitted(&said.submitted)
        });
    }
}

/// `~alice` for `alice@chorus` on the hub `chorus`.
async fn own_handle(session: &Session) -> Result<Handle, Fail> {
    let id = &session.who.agent_id;
    let host = session.client.paths().await?.host_name.clone();
    let owned = Handle::parse(id).or_else(|| {
        let address = Address::parse("agent_id", id).ok()?;
        address.handle(host.as_deref().unwrap_or(address.host()))
    });
    let host = host.unwrap_or_default();
    owned.ok_or_else(|| {
        let why = "frames are for agents with a handle: lower-case letters, digits and dashes";
        Fail::usage(format!(
            "{id} owns no handle here; {why}, registered as NAME@{host}"
        ))
    })
}

/// One id for all commands typed at one terminal, or called by one parent: they are one session to the others. The host's
/// name is mixed in, because numbers of processes repeat from machine to machine.
fn terminal() -> Result<Ident, Fail> {
    let by_terminal = std::fs::File::open("/dev/tty").is_ok();
    let leader = nix::unistd::getsid(None)
        .ok()
        .filter(|_| by_terminal)
        .map(nix::unistd::Pid::as_raw);
    let host = rustix::system::uname().nodename().to_bytes().to_vec();
    one_id(leader, std::os::unix::process::parent_id(), &host)
        .ok_or_else(|| Fail::usage("which session is this? pass --session or set CHORUS_SESSION"))
}

/// A leader outside our own namespace of processes has the number 0, which says nothing.
fn one_id(leader: Option<i32>, parent: u32, host: &[u8]) -> Option<Ident> {
    let id = match leader {
        Some(leader) if leader > 0 => format!("t{leader}"),
        Some(_) | None => format!("p{parent}"),
    };
    let mixed = host.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    Ident::parse(&format!("{id}-{:04x}", mixed & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::one_id;

    #[test]
    fn commands_of_one_terminal_are_one_session_and_a_foreign_leader_is_none() {
        let id = |leader, parent, host: &str| {
            one_id(leader, parent, host.as_bytes()).unwrap().to_string()
        };
        assert_eq!(id(Some(7), 8, "north"), id(Some(7), 9, "north"));
        assert_ne!(id(Some(7), 8, "north"), id(Some(7), 8, "south"));
        assert_eq!(id(Some(0), 8, "north"), id(None, 8, "north"));
        assert_ne!(id(Some(0), 8, "north"), id(Some(0), 9, "north"));
    }
}
