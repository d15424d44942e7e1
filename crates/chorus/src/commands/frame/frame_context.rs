//! The session and scope options of the frame commands, and the context that sends frames with them.

use super::format;
use crate::agent_names::{self, HandleName};
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_client::HubClient;
use chorus_client::frame::{
    FrameSender, FrameStream, LockClaim, LockClaims, ParsedOpenItem, parse_open_items,
};
use chorus_hub::Clock;
use chorus_wire::frame::{
    ComputeLocation, ContextCheck, Frame, FrameFilter, FramePayload, FrameScope, ScopeIdent,
    SubmissionReply, org_handle,
};
use chorus_wire::identity::{AgentAddress, Handle};
use chorus_wire::time::UnixMicros;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// The options for the sending session and the provenance of its frames. Hosts and hooks set them, so they are only in `--help`: in
/// `-h` they would outnumber the options of the command.
#[derive(Clone, Debug, clap::Args)]
pub struct SenderArgs {
    /// The program this session runs in, such as cc-editor
    #[arg(long, value_name = "NAME", env = "CHORUS_INSTRUMENT", value_parser = parse_ident, default_value = "cli", help_heading = "Session", hide_short_help = true)]
    pub instrument: ScopeIdent,
    /// This session's id; default: one per terminal, or per parent process without a terminal
    #[arg(long, value_name = "ID", env = "CHORUS_SESSION", value_parser = parse_ident, help_heading = "Session", hide_short_help = true)]
    pub session: Option<ScopeIdent>,
    /// The class of tool; default: the instrument up to its first dash
    #[arg(long, value_name = "CLASS", env = "CHORUS_TOOL", value_parser = parse_ident, help_heading = "Session", hide_short_help = true)]
    pub tool: Option<ScopeIdent>,
    /// The handle on whose behalf it is sent; default: your own
    #[arg(long, value_name = "NAME", value_parser = HandleName::parse, help_heading = "Session", hide_short_help = true)]
    acted_by: Option<HandleName>,
    /// The tool that drafted it; default: ~cc- and the instrument
    #[arg(
        long,
        value_name = "~NAME",
        help_heading = "Session",
        hide_short_help = true
    )]
    drafted_with: Option<String>,
    /// How it was produced, a tag; may be repeated [default: command-line]
    #[arg(
        long = "method",
        value_name = "TAG",
        help_heading = "Session",
        hide_short_help = true
    )]
    methods: Vec<String>,
    /// The basis; default: this session, or towards other handles only that it was a command
    #[arg(
        long,
        value_name = "TAG",
        help_heading = "Session",
        hide_short_help = true
    )]
    basis: Option<String>,
    /// Where it was computed: server-active, server-aggregate or local-only; default: local-only for a command at a terminal, server-active for one that a program runs
    #[arg(long, value_name = "WHERE", env = "CHORUS_COMPUTE", value_parser = parse_compute_location, help_heading = "Session", hide_short_help = true)]
    pub compute: Option<ComputeLocation>,
    /// Declare that your own policy was checked first
    #[arg(long, help_heading = "Session", hide_short_help = true)]
    context_checked: bool,
    /// A reference to a return record
    #[arg(
        long,
        value_name = "REF",
        help_heading = "Session",
        hide_short_help = true
    )]
    return_ref: Option<String>,
    /// The time after which it is stale
    #[arg(long, value_name = "TIME", value_parser = crate::commands::duration::parse_duration, help_heading = "Session", hide_short_help = true)]
    stale_after: Option<Duration>,
}

/// The options for the scope of a frame.
#[derive(Clone, Debug, clap::Args)]
pub struct ScopeArgs {
    /// The sessions it is for, such as me/cc-editor@7f3a, org:acme or org:acme/reviewer; default: all of your own
    #[arg(long, value_name = "SCOPE", value_parser = parse_scope)]
    pub scope: Option<FrameScope>,
    /// All sessions of this agent
    #[arg(long, value_name = "NAME", value_parser = HandleName::parse, conflicts_with = "scope")]
    pub to: Option<HandleName>,
}

impl ScopeArgs {
    pub async fn explicit_scope(&self, client: &HubClient) -> Result<Option<FrameScope>, Fail> {
        match (&self.scope, &self.to) {
            (Some(scope), _) => Ok(Some(scope.clone())),
            (None, Some(name)) => Ok(Some(FrameScope::Handle(name.resolve(client).await?))),
            (None, None) => Ok(None),
        }
    }
}

pub fn parse_ident(text: &str) -> Result<ScopeIdent, String> {
    ScopeIdent::parse(text).ok_or_else(|| "1 to 128 of letters, digits, '.', '_' and '-'".into())
}

pub fn parse_org_handle(text: &str) -> Result<Handle, String> {
    agent_names::check_expanded(text).map_err(|fail| fail.to_string())?;
    org_handle(text).ok_or_else(|| "an organisation's handle looks like acme or ~acme".into())
}

/// A scope as frames write it, or without the `~` and `*` that zsh expands.
fn parse_scope(text: &str) -> Result<FrameScope, String> {
    agent_names::check_expanded(text).map_err(|fail| fail.to_string())?;
    complete_scope(text)
        .parse()
        .map_err(|e: chorus_wire::frame::FrameError| e.message)
}

/// `org:acme` is all members of `~acme`, `org:acme/reviewer` those with the role, and `bob` all sessions of `~bob`.
fn complete_scope(text: &str) -> String {
    let with_tilde = |name: &str| match name.starts_with('~') {
        true => name.to_owned(),
        false => format!("~{name}"),
    };
    let (head, tail) = match text.split_once('/') {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    };
    if let Some(org) = head.strip_prefix("org:") {
        let tail = tail.unwrap_or_default();
        // `members-eu` is a role, `members/…` is the long form.
        let role = match tail.strip_prefix("members") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
            Some(_) | None => tail,
        };
        let role = role.trim_matches(['/', '*']);
        return match role {
            "" => format!("org:{}/members/*", with_tilde(org)),
            role => format!("org:{}/members/{role}/*", with_tilde(org)),
        };
    }
    let tail = tail.map(|tail| format!("/{tail}")).unwrap_or_default();
    match head.strip_prefix("accord:") {
        Some(peer) => format!("accord:{}{tail}", with_tilde(peer)),
        None => format!("{}{tail}", with_tilde(head)),
    }
}

/// FRM-15: a person at a terminal computed nothing elsewhere. A command that a program runs, such as the hook of a coding
/// agent, most likely carries the words of a model that runs on a server.
fn default_compute() -> ComputeLocation {
    match std::io::stdin().is_terminal() {
        true => ComputeLocation::LocalOnly,
        false => ComputeLocation::ServerActive,
    }
}

pub fn parse_compute_location(text: &str) -> Result<ComputeLocation, String> {
    ComputeLocation::parse(text)
        .ok_or_else(|| format!("one of {}", ComputeLocation::TEXTS.join(", ")))
}

pub fn current_time() -> UnixMicros {
    Clock::system().now()
}

/// A registered agent with a hub client and its sending session.
pub struct FrameContext<'a> {
    pub common: &'a CommonArgs,
    pub client: HubClient,
    pub sender: FrameSender,
}

/// A frame that the hub accepted.
pub struct SentFrame {
    pub frame: Frame,
    pub submitted: SubmissionReply,
}

impl<'a> FrameContext<'a> {
    pub async fn open(common: &'a CommonArgs, sender_args: SenderArgs) -> Result<Self, Fail> {
        let command = CommandClient::open(common)?;
        let own_handle = own_handle(&command).await?;
        let id = match sender_args.session {
            Some(id) => id,
            None => terminal_session()?,
        };
        let mut sender = FrameSender::new(own_handle, sender_args.instrument, id);
        sender.tool = sender_args.tool;
        if let Some(name) = sender_args.acted_by {
            sender.acted_by = name.resolve(&command.client).await?;
        }
        sender.drafted_with = sender_args.drafted_with.unwrap_or(sender.drafted_with);
        if !sender_args.methods.is_empty() {
            sender.method = sender_args.methods;
        }
        sender.basis = sender_args.basis;
        sender.compute_location = sender_args.compute.unwrap_or_else(default_compute);
        sender.return_ref = sender_args.return_ref;
        sender.ttl_ms = sender_args
            .stale_after
            .map(crate::commands::duration::as_millis);
        if sender_args.context_checked {
            sender.context_check = ContextCheck::Passed;
        }
        Ok(Self {
            common,
            client: command.client,
            sender,
        })
    }

    /// The given scope, or all sessions of the own handle.
    pub async fn resolve_scope(&self, target: &ScopeArgs) -> Result<FrameScope, Fail> {
        let explicit = target.explicit_scope(&self.client).await?;
        Ok(explicit.unwrap_or_else(|| self.sender.handle_scope()))
    }

    /// The error of a call that names a handle, with the nearest names if it means nothing.
    pub async fn explain_handle(&self, handle: &Handle, error: chorus_client::Error) -> Fail {
        agent_names::explain_unknown(&self.client, handle.as_str(), error).await
    }

    /// Builds a frame and validates it with the hub's rules, so that an error is reported before sending.
    pub fn build_frame(
        &self,
        scope: &FrameScope,
        payload: impl Into<FramePayload>,
    ) -> Result<Frame, Fail> {
        let draft = self
            .sender
            .draft_frame(scope, payload.into(), current_time());
        draft.to_frame().map_err(|e| Fail::usage_error(e.message))
    }

    pub async fn submit_frame(&self, scope: &FrameScope, frame: Frame) -> Result<SentFrame, Fail> {
        let submitted = self
            .client
            .submit_frame(&self.sender, scope, &frame, false)
            .await;
        let mut submitted = match (submitted, scope) {
            (Ok(submitted), _) => submitted,
            (Err(error), FrameScope::Handle(handle)) => {
                return Err(self.explain_handle(handle, error).await);
            }
            (Err(error), _) => return Err(error.into()),
        };
        submitted.coarse = scope.addressed_handle() != &self.sender.handle;
        Ok(SentFrame { frame, submitted })
    }

    pub async fn send_frame(
        &self,
        scope: &FrameScope,
        payload: impl Into<FramePayload>,
    ) -> Result<SentFrame, Fail> {
        self.submit_frame(scope, self.build_frame(scope, payload)?)
            .await
    }

    /// What is open under the own handle and its organisations, oldest first.
    pub async fn fetch_open_items(&self) -> Result<Vec<ParsedOpenItem>, Fail> {
        let items = self.client.list_open_items(&self.sender.handle).await?;
        Ok(parse_open_items(items, current_time()))
    }

    pub async fn fetch_claims(&self) -> Result<LockClaims, Fail> {
        Ok(LockClaims::from_items(&self.fetch_open_items().await?))
    }

    /// The frames from now on. They say when to read the open items again.
    pub async fn open_live_frames(&self) -> Result<FrameStream, Fail> {
        let filter = FrameFilter::default();
        let mut frames = self
            .client
            .open_frame_stream(&self.sender, &filter, None, current_time);
        frames.wait_opened().await?;
        Ok(frames)
    }

    /// Whether this session made the claim.
    pub fn is_holder(&self, claim: &LockClaim) -> bool {
        let own_session = format!("{}@{}", self.sender.instrument, self.sender.session);
        claim.holder == self.sender.handle && claim.session.as_deref() == Some(&own_session)
    }

    /// Sends a frame and prints the result, with `more` added to the hub's answer.
    pub async fn send_and_print(
        &self,
        scope: &FrameScope,
        payload: impl Into<FramePayload>,
        more: Value,
    ) -> Result<SentFrame, Fail> {
        let sent = self.send_frame(scope, payload).await?;
        self.print_sent(&sent, more);
        Ok(sent)
    }

    pub fn print_sent(&self, sent: &SentFrame, more: Value) {
        self.print_sent_as(sent, more, || format::format_submitted(&sent.submitted));
    }

    /// Prints the hub's answer with `more` as JSON, or the text for people.
    pub fn print_sent_as(&self, sent: &SentFrame, more: Value, text: impl FnOnce() -> String) {
        let mut value = json!(sent.submitted);
        if let (Value::Object(fields), Value::Object(more)) = (&mut value, more) {
            fields.extend(more);
        }
        output::print_result(self.common.json, &value, text);
    }
}

/// `~alice` for `alice@chorus` on the hub `chorus`.
async fn own_handle(command: &CommandClient) -> Result<Handle, Fail> {
    let id = &command.credentials.agent_id;
    let host = command.client.fetch_paths().await?.host_name.clone();
    let handle = Handle::parse(id).or_else(|| {
        let address = AgentAddress::parse("agent_id", id).ok()?;
        address.local_handle(host.as_deref().unwrap_or(address.host()))
    });
    let host = host.unwrap_or_default();
    handle.ok_or_else(|| {
        let requirement =
            "frames are for agents with a handle: lower-case letters, digits and dashes";
        Fail::usage_error(format!(
            "{id} owns no handle here; {requirement}, registered as NAME@{host}"
        ))
    })
}

/// The session id of all commands of one terminal, or of one parent process. It includes a hash of the host name, because
/// process ids repeat from machine to machine.
fn terminal_session() -> Result<ScopeIdent, Fail> {
    let by_terminal = std::fs::File::open("/dev/tty").is_ok();
    let leader = nix::unistd::getsid(None)
        .ok()
        .filter(|_| by_terminal)
        .map(nix::unistd::Pid::as_raw);
    let host = rustix::system::uname().nodename().to_bytes().to_vec();
    derive_session_id(leader, std::os::unix::process::parent_id(), &host).ok_or_else(|| {
        Fail::usage_error("which session is this? pass --session or set CHORUS_SESSION")
    })
}

/// A session leader outside the process namespace has the id 0, so the parent's id is used.
fn derive_session_id(leader: Option<i32>, parent: u32, host: &[u8]) -> Option<ScopeIdent> {
    let id = match leader {
        Some(leader) if leader > 0 => format!("t{leader}"),
        Some(_) | None => format!("p{parent}"),
    };
    let host_hash = host.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    ScopeIdent::parse(&format!("{id}-{:04x}", host_hash & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::derive_session_id;

    #[test]
    fn commands_of_one_terminal_share_a_session_and_leader_zero_is_ignored() {
        let id = |leader, parent, host: &str| {
            derive_session_id(leader, parent, host.as_bytes())
                .unwrap()
                .to_string()
        };
        assert_eq!(id(Some(7), 8, "north"), id(Some(7), 9, "north"));
        assert_ne!(id(Some(7), 8, "north"), id(Some(7), 8, "south"));
        assert_eq!(id(Some(0), 8, "north"), id(None, 8, "north"));
        assert_ne!(id(Some(0), 8, "north"), id(Some(0), 9, "north"));
    }
}
