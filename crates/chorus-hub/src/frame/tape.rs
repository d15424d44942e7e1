//! A frame as it travels between hubs: decided at one, emitted at all of them in the same order (D-82).

use super::joint::At;
use super::label::{Except, Label, Only};
use super::reach::Reach;
use super::senders::Counted;
use super::submit::coarse;
use crate::Hub;
use crate::bus::{Mesh, Question};
use bytes::Bytes;
use chorus_wire::frame::{Frame, FrameCode, FrameError, Ident, Kind, Submitted};
use chorus_wire::identity::Handle;
use chorus_wire::limits;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// D-94: a part that is not known might be what the frame is kept from somebody by, so a frame with one is not read at all.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Travelling {
    id: Uuid,
    sender: i64,
    targets: Vec<i64>,
    kind: String,
    from: String,
    tool: Option<String>,
    org: Option<String>,
    /// Nothing, an instrument's beginning, or an instrument and a session.
    only: Vec<String>,
    /// Whose session does not hear it: the instrument, if it was said, and the session.
    except: Option<(Option<String>, String)>,
    text: String,
}

impl Travelling {
    fn new(sender: i64, frame: &Frame, label: &Label, reach: &Reach) -> Self {
        Self {
            id: frame.frame_id,
            sender,
            targets: reach.targets.iter().map(|target| target.id).collect(),
            kind: label.kind.as_str().to_owned(),
            from: label.sender.to_string(),
            tool: label.tool.as_ref().map(Ident::to_string),
            org: label.org.as_ref().map(Handle::to_string),
            only: match &label.only {
                Only::All => Vec::new(),
                Only::Prefix(prefix) => vec![prefix.to_string()],
                Only::One(instrument, session) => vec![instrument.to_string(), session.to_string()],
            },
            except: label.except.as_ref().map(|except| {
                (
                    except.instrument.as_ref().map(Ident::to_string),
                    except.session.to_string(),
                )
            }),
            text: frame.text().to_owned(),
        }
    }

    /// Nothing when any part of it is unreadable: what a frame is kept from must not get lost on the way.
    fn label(&self) -> Option<Label> {
        let idents = self
            .only
            .iter()
            .map(|text| Ident::parse(text))
            .collect::<Option<Vec<_>>>()?;
        let only = match idents.as_slice() {
            [] => Only::All,
            [prefix] => Only::Prefix(prefix.clone()),
            [instrument, session] => Only::One(instrument.clone(), session.clone()),
            [_, _, _, ..] => return None,
        };
        let except = match &self.except {
            None => None,
            Some((instrument, session)) => Some(Except {
                principal: self.sender,
                instrument: readable(instrument, Ident::parse)?,
                session: Ident::parse(session)?,
            }),
        };
        Some(Label {
            kind: Kind::parse(&self.kind)?,
            sender: Handle::parse(&self.from)?,
            tool: readable(&self.tool, Ident::parse)?,
            org: readable(&self.org, Handle::parse)?,
            only,
            except,
        })
    }
}

/// What may be absent, but not unreadable.
fn readable<T>(text: &Option<String>, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => parse(text).map(Some),
    }
}

/// Emits a frame at every hub: the number of sessions that it was for, at all of them.
pub(super) async fn emit(
    hub: &Hub,
    mesh: &Mesh,
    sender: i64,
    frame: &Frame,
    label: &Label,
    reach: &Reach,
) -> Result<Submitted, FrameError> {
    let away = |cause: &str| FrameError {
        cause: Some(cause.into()),
        ..FrameCode::BusUnavailable.into()
    };
    let frames = hub.frames();
    let known = || {
        frames
            .senders
            .known(sender, frame.frame_id, hub.clock().steady())
    };
    // a repeated id is not emitted again, wherever it comes.
    let mut at = frames.rooms.joint.taken();
    if known().is_none() {
        if reach.targets.len() > 1 {
            let sessions = |id| frames.rooms.sessions(id) + mesh.sessions_elsewhere(id);
            if reach
                .targets
                .iter()
                .map(|target| sessions(target.id))
                .sum::<usize>()
                > limits::EXPANSION
            {
                return Err(FrameCode::ExpansionTooLarge.into());
            }
        }
        let travelling = Travelling::new(sender, frame, label, reach);
        let what = serde_json::to_vec(&travelling).map_err(chorus_wire::Error::internal)?;
        at.place = mesh
            .tape_put(what.into())
            .await
            .map_err(|_| away("the shared memory did not take the frame"))?;
    }
    let taken = frames.rooms.joint.when(at, limits::BUS_COUNT, |_| {
        let mine = known();
        if mine.is_none() {
            // It went to a memory that is not the one that is read here.
            mesh.tape_doubt();
        }
        mine
    });
    let mine = taken
        .await
        .ok_or_else(|| away("the frame did not come back from the shared memory"))?;
    let recipient_count = match mine.told {
        Some(told) => told,
        None => {
            let At { epoch, place } = frames.rooms.joint.taken();
            let question = Question::Reached {
                sender,
                id: frame.frame_id,
                epoch,
                place,
            };
            let answers = mesh.ask_all(question, reached).await;
            let answers =
                answers.map_err(|_| away("another hub did not say how many it reached"))?;
            let count = mine.here + answers.iter().map(|(_, (here, _))| here).sum::<u64>();
            // as the first time, also where another hub has answered that.
            let told = answers.iter().find_map(|(_, (_, told))| *told);
            told.unwrap_or(if reach.own { count } else { coarse(count) })
        }
    };
    frames.senders.tell(sender, frame.frame_id, recipient_count);
    Ok(Submitted {
        frame_id: frame.frame_id,
        recipient_count,
    })
}

/// What another hub says of a frame: how many sessions it was for there, and what its sender was told.
fn reached(answer: &[u8]) -> Option<(u64, Option<u64>)> {
    serde_json::from_slice(answer).ok()
}

/// The next frame of all hubs. What cannot be read is a newer hub's, and nobody's here.
pub(crate) fn take(hub: &Hub, place: u64, payload: &[u8]) {
    let (frames, now) = (hub.frames(), hub.clock().steady());
    let travelling = serde_json::from_slice::<Travelling>(payload).ok();
    if let Some((label, travelling)) =
        travelling.and_then(|travelling| Some((travelling.label()?, travelling)))
    {
        let label = Arc::new(label);
        let emit = |target: &i64| {
            frames
                .rooms
                .publish(*target, Some(place), &travelling.text, &label, now)
        };
        let _ = frames
            .senders
            .once(travelling.sender, travelling.id, now, || {
                Ok(travelling.targets.iter().map(emit).sum())
            });
    }
    frames.rooms.joint.took(place);
}

/// What another hub asks of this room. Nothing when it cannot be said yet: then it asks again.
pub(crate) async fn answer(hub: &Hub, question: Question) -> Bytes {
    let answer = match question {
        Question::Sessions { principal, after } => {
            serde_json::to_vec(&super::roster::page(hub, principal, after))
        }
        Question::Reached {
            sender,
            id,
            epoch,
            place,
        } => {
            let (frames, asked) = (hub.frames(), At { epoch, place });
            let count = frames.rooms.joint.when(asked, limits::BUS_WAIT, |at| {
                let known = frames.senders.known(sender, id, hub.clock().steady());
                if at.epoch != epoch && known.is_none() {
                    hub.mesh().into_iter().for_each(|mesh| mesh.tape_doubt());
                }
                // A frame of this memory that was taken and is not known could not be read here, and was for nobody.
                known.or((at.epoch == epoch).then_some(Counted {
                    here: 0,
                    told: None,
                }))
            });
            match count.await {
                Some(count) => serde_json::to_vec(&(count.here, count.told)),
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

    fn label(change: impl FnOnce(&mut Value)) -> Option<Label> {
        let mut travelling = json!({"id": Uuid::nil(), "sender": 1, "targets": [1], "kind": "agent_advisory",
            "from": "~alice", "tool": "cc", "org": "~acme", "only": ["cc-editor", "s1"],
            "except": ["cc-tests", "s2"], "text": "{}"});
        change(&mut travelling);
        serde_json::from_value::<Travelling>(travelling)
            .ok()?
            .label()
    }

    /// D-82
    #[test]
    fn a_frame_that_cannot_be_read_whole_reaches_nobody_rather_than_more() {
        assert!(matches!(label(|_| ()).unwrap().only, Only::One(..)));
        assert!(matches!(
            label(|frame| frame["only"] = json!(["cc-"])).unwrap().only,
            Only::Prefix(_)
        ));
        assert!(matches!(
            label(|frame| frame["only"] = json!([])).unwrap().only,
            Only::All
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
