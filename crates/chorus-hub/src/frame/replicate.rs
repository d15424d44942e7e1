//! Replication: a frame is authorised at one hub and emitted at all of them, in the order of the frame stream (D-82).

use super::Frames;
use super::frame_label::{ExcludedSession, FrameLabel, SessionSelector};
use super::recent_submissions::SubmissionCount;
use super::resolve_scope::ResolvedScope;
use super::stream_position::StreamPosition;
use super::submit::coarsen_count;
use crate::cluster::{FrameQuery, FrameStream};
use crate::store::AgentId;
use bytes::Bytes;
use chorus_wire::frame::{Frame, FrameCode, FrameError, FrameKind, ScopeIdent, SubmissionReply};
use chorus_wire::identity::Handle;
use chorus_wire::limits;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// A frame as a message of the frame stream. D-94: an unknown field could be a restriction on who receives the frame, so a frame
/// with one is delivered to no session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameMessage {
    id: Uuid,
    sender: AgentId,
    targets: Vec<AgentId>,
    kind: String,
    from: String,
    tool: Option<String>,
    org: Option<String>,
    /// Empty, the prefix of an instrument, or an instrument and a session.
    only: Vec<String>,
    /// The excluded session: its instrument, if it was given, and its id.
    except: Option<(Option<String>, String)>,
    text: String,
}

impl FrameMessage {
    fn new(sender: AgentId, frame: &Frame, label: &FrameLabel, resolved: &ResolvedScope) -> Self {
        Self {
            id: frame.frame_id,
            sender,
            targets: resolved.targets.iter().map(|target| target.id).collect(),
            kind: label.kind.as_str().to_owned(),
            from: label.sender.to_string(),
            tool: label.tool.as_ref().map(ScopeIdent::to_string),
            org: label.org.as_ref().map(Handle::to_string),
            only: match &label.selector {
                SessionSelector::All => Vec::new(),
                SessionSelector::Prefix(prefix) => vec![prefix.to_string()],
                SessionSelector::Session(instrument, session) => {
                    vec![instrument.to_string(), session.to_string()]
                }
            },
            except: label.excluded.as_ref().map(|except| {
                (
                    except.instrument.as_ref().map(ScopeIdent::to_string),
                    except.session.to_string(),
                )
            }),
            text: frame.submitted_json().to_owned(),
        }
    }

    /// The frame, checked as if a client had submitted it: text on several lines would be events of its own in a stream. `None`
    /// when it is not valid, is not the frame that the other fields describe, or has more targets than a scope can name.
    fn parse_frame(&self) -> Option<Frame> {
        let frame = Frame::parse(&self.text).ok()?;
        let is_described = frame.frame_id == self.id
            && frame.kind().as_str() == self.kind
            && frame.sender_handle.as_str() == self.from;
        (is_described && self.targets.len() <= limits::MEMBERS_PER_ORG).then_some(frame)
    }

    /// `None` when a field cannot be parsed: a restriction must not get lost.
    fn parse_label(&self) -> Option<FrameLabel> {
        let idents = self
            .only
            .iter()
            .map(|text| ScopeIdent::parse(text))
            .collect::<Option<Vec<_>>>()?;
        let only = match idents.as_slice() {
            [] => SessionSelector::All,
            [prefix] => SessionSelector::Prefix(prefix.clone()),
            [instrument, session] => SessionSelector::Session(instrument.clone(), session.clone()),
            [_, _, _, ..] => return None,
        };
        let except = match &self.except {
            None => None,
            Some((instrument, session)) => Some(ExcludedSession {
                principal: self.sender,
                instrument: parse_optional(instrument, ScopeIdent::parse)?,
                session: ScopeIdent::parse(session)?,
            }),
        };
        Some(FrameLabel {
            kind: FrameKind::parse(&self.kind)?,
            sender: Handle::parse(&self.from)?,
            tool: parse_optional(&self.tool, ScopeIdent::parse)?,
            org: parse_optional(&self.org, Handle::parse)?,
            selector: only,
            excluded: except,
        })
    }
}

/// A field that may be absent, but not invalid.
fn parse_optional<T>(
    text: &Option<String>,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => parse(text).map(Some),
    }
}

/// Publishes a frame to all hubs. The reply has the number of sessions at all of them.
pub(super) async fn replicate_frame(
    frames: &Frames,
    frame_stream: &FrameStream,
    sender: AgentId,
    frame: &Frame,
    label: &FrameLabel,
    resolved: &ResolvedScope,
) -> Result<SubmissionReply, FrameError> {
    let find_recorded = || {
        frames
            .recent_submissions()
            .find_count(sender, frame.frame_id, frames.monotonic_now())
    };
    // a repeated id is not emitted again, at whichever hub it is submitted.
    let mut position = frames.registry().progress.current_position();
    if find_recorded().is_none() {
        check_expansion(frames, frame_stream, resolved)?;
        let message = FrameMessage::new(sender, frame, label, resolved);
        let payload = serde_json::to_vec(&message).map_err(chorus_wire::Error::internal)?;
        position.seq = frame_stream
            .publish_frame(&payload)
            .await
            .map_err(|_| unavailable("the frame stream did not take the frame"))?;
    }
    let recorded =
        frames
            .registry()
            .progress
            .wait_until(position, crate::limits::PEER_COUNT_TIMEOUT, |_| {
                let own_record = find_recorded();
                if own_record.is_none() {
                    // It may have gone to a stream of another epoch than the one that is read here.
                    frame_stream.recheck();
                }
                own_record
            });
    let own_record = recorded
        .await
        .ok_or_else(|| unavailable("the frame did not come back from the frame stream"))?;
    let recipient_count = match own_record.reported_count {
        Some(reported) => reported,
        None => {
            let StreamPosition { epoch, seq } = frames.registry().progress.current_position();
            let query = FrameQuery::Reached {
                sender,
                id: frame.frame_id,
                epoch,
                seq,
            };
            count_recipients(frame_stream, query, own_record.local_count, resolved.is_own).await?
        }
    };
    frames
        .recent_submissions()
        .record_reported_count(sender, frame.frame_id, recipient_count);
    Ok(SubmissionReply {
        frame_id: frame.frame_id,
        recipient_count,
        kept: None,
        kept_until: None,
        coarse: !resolved.is_own,
    })
}

fn unavailable(cause: &str) -> FrameError {
    FrameError {
        cause: Some(cause.into()),
        ..FrameCode::BusUnavailable.into()
    }
}

/// a scope of several handles is refused when it has more live sessions, at all hubs, than one frame may reach.
fn check_expansion(
    frames: &Frames,
    frame_stream: &FrameStream,
    resolved: &ResolvedScope,
) -> Result<(), FrameError> {
    if resolved.targets.len() < 2 {
        return Ok(());
    }
    let session_count =
        |id| frames.registry().session_count(id) + frame_stream.remote_session_count(id);
    let total: usize = resolved
        .targets
        .iter()
        .map(|target| session_count(target.id))
        .sum();
    if total > limits::SCOPE_EXPANSION_MAX {
        return Err(FrameCode::ExpansionTooLarge.into());
    }
    Ok(())
}

/// The number of recipients at all hubs, as the sender gets it.
async fn count_recipients(
    frame_stream: &FrameStream,
    query: FrameQuery,
    local_count: u64,
    is_own: bool,
) -> Result<u64, FrameError> {
    let answers = frame_stream.query_all_peers(query, parse_reached).await;
    let answers =
        answers.map_err(|_| unavailable("another hub did not say how many it reached"))?;
    // a repeated id gets the first answer, also when another hub gave it.
    if let Some(reported) = answers.iter().find_map(|(_, (_, reported))| *reported) {
        return Ok(reported);
    }
    let peer_counts = answers.iter().map(|(_, (local_count, _))| local_count);
    let total_count = local_count + peer_counts.sum::<u64>();
    Ok(if is_own {
        total_count
    } else {
        coarsen_count(total_count)
    })
}

/// A peer's answer about a frame: its recipients there, and the count that the peer reported to the sender.
fn parse_reached(answer: &[u8]) -> Option<(u64, Option<u64>)> {
    serde_json::from_slice(answer).ok()
}

/// Emits the next frame of the stream to local sessions. One that cannot be parsed is from a newer hub and emitted to none, and
/// neither is one without a payload, which no hub of this cluster has sent (D-106).
pub(super) fn apply_frame_message(frames: &Frames, seq: u64, payload: Option<&[u8]>) {
    let now = frames.monotonic_now();
    let message = payload.and_then(|payload| serde_json::from_slice::<FrameMessage>(payload).ok());
    let parsed =
        message.and_then(|message| Some((message.parse_frame()?, message.parse_label()?, message)));
    if let Some((frame, label, message)) = parsed {
        let label = Arc::new(label);
        let registry = frames.registry();
        let emit = || {
            Ok(registry.publish_frame(
                &message.targets,
                Some(seq),
                frame.submitted_json(),
                &label,
                now,
            ))
        };
        let _ = frames
            .recent_submissions()
            .emit_once(message.sender, message.id, now, emit);
    }
    frames.registry().progress.advance_to(seq);
}

/// Answers the query of a peer. Empty when there is no answer yet: then the peer asks again.
pub(super) async fn answer_frame_query(frames: &Frames, query: FrameQuery) -> Bytes {
    let answer = match query {
        FrameQuery::Sessions { principal, after } => {
            serde_json::to_vec(&super::roster::build_roster_page(frames, principal, after))
        }
        FrameQuery::Reached {
            sender,
            id,
            epoch,
            seq,
        } => {
            let target = StreamPosition { epoch, seq };
            let recorded = frames.registry().progress.wait_until(
                target,
                crate::limits::PEER_REQUEST_TIMEOUT,
                |position| {
                    let recorded =
                        frames
                            .recent_submissions()
                            .find_count(sender, id, frames.monotonic_now());
                    if position.epoch != epoch && recorded.is_none() {
                        frames
                            .frame_stream()
                            .into_iter()
                            .for_each(FrameStream::recheck);
                    }
                    // A frame of this epoch that was read and not recorded could not be parsed here: no session received it.
                    recorded.or((position.epoch == epoch).then_some(SubmissionCount {
                        local_count: 0,
                        reported_count: None,
                    }))
                },
            );
            match recorded.await {
                Some(recorded) => {
                    serde_json::to_vec(&(recorded.local_count, recorded.reported_count))
                }
                None => return Bytes::new(),
            }
        }
    };
    answer.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn label(change: impl FnOnce(&mut Value)) -> Option<FrameLabel> {
        let mut travelling = json!({"id": Uuid::nil(), "sender": 1, "targets": [1], "kind": "agent_advisory",
            "from": "~alice", "tool": "cc", "org": "~acme", "only": ["cc-editor", "s1"],
            "except": ["cc-tests", "s2"], "text": "{}"});
        change(&mut travelling);
        serde_json::from_value::<FrameMessage>(travelling)
            .ok()?
            .parse_label()
    }

    /// D-82
    #[test]
    fn a_frame_that_cannot_be_read_whole_reaches_nobody_rather_than_more() {
        assert!(matches!(
            label(|_| ()).unwrap().selector,
            SessionSelector::Session(..)
        ));
        assert!(matches!(
            label(|frame| frame["only"] = json!(["cc-"]))
                .unwrap()
                .selector,
            SessionSelector::Prefix(_)
        ));
        assert!(matches!(
            label(|frame| frame["only"] = json!([])).unwrap().selector,
            SessionSelector::All
        ));
        for (field, odd) in [
            ("only", json!(["not a session"])),
            ("only", json!(["cc-editor", "not a session"])),
            ("only", json!(["cc-editor", "s1", "s2"])),
            ("except", json!(["not an instrument", "s2"])),
            ("except", json!([null, "not a session"])),
            ("tool", json!("not a tool")),
            ("org", json!("not an organisation")),
            ("kind", json!("agent_newer")),
        ] {
            assert!(
                label(|frame| frame[field] = odd.clone()).is_none(),
                "{field} {odd}"
            );
        }
    }

    /// D-94
    #[test]
    fn a_frame_with_a_part_that_only_newer_hubs_know_reaches_nobody_here() {
        assert!(label(|frame| frame["kept_from"] = json!("s3")).is_none());
    }
}
