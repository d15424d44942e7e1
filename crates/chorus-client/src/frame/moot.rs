//! What is still open among the frames heard: work that nobody has taken, decisions that nobody has made.

use super::seen::Seen;
use crate::limits;
use chorus_wire::frame::{Frame, Payload, payload};
use uuid::Uuid;

/// How a claim names the handover it takes: frames refer, they do not contain (FRM-47).
pub fn frame_ref(id: &Uuid) -> String {
    format!("frame:{id}")
}

/// Handovers and who took them (FRM-31, FRM-32).
#[derive(Debug, Default)]
pub struct Handovers {
    offered: Vec<Frame>,
    /// In the order in which they came: of two that take the same, the first has it.
    taken: Vec<(Uuid, Frame)>,
}

impl Handovers {
    pub fn hear(&mut self, frame: &Frame) {
        let Payload::AgentHandover(handover) = &frame.payload else {
            return;
        };
        if handover
            .next_session_id
            .as_ref()
            .is_none_or(String::is_empty)
        {
            self.offered.push(frame.clone());
        } else if let Some(offer) = self.offered.iter().find(|offer| takes(handover, offer)) {
            self.taken.push((offer.frame_id, frame.clone()));
        }
    }

    /// What nobody has taken yet, oldest first.
    pub fn open(&self) -> Vec<&Frame> {
        self.offered
            .iter()
            .filter(|offer| self.taker(&offer.frame_id).is_none())
            .collect()
    }

    pub fn offer(&self, id: &Uuid) -> Option<&Frame> {
        self.offered.iter().find(|offer| offer.frame_id == *id)
    }

    /// The frame that took it first.
    pub fn taker(&self, id: &Uuid) -> Option<&Frame> {
        self.taken
            .iter()
            .find(|(offer, _)| offer == id)
            .map(|(_, frame)| frame)
    }
}

/// By the reference that our own claims carry, else by the words: other clients may know no more than the draft.
fn takes(claim: &payload::AgentHandover, offer: &Frame) -> bool {
    let Payload::AgentHandover(offered) = &offer.payload else {
        return false;
    };
    let refs = claim.pointer_refs.as_deref().unwrap_or_default();
    let named = refs.iter().any(|reference| reference.starts_with("frame:"));
    match named {
        true => refs.contains(&frame_ref(&offer.frame_id)),
        false => {
            claim.previous_session_id == offered.previous_session_id
                && claim.handover_body == offered.handover_body
        }
    }
}

/// Binding moments and their answers (FRM-39). A moment has no id beside its frame's, so that is what answers name.
#[derive(Debug)]
pub struct Moments {
    asked: Vec<Frame>,
    answered: Seen,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            asked: Vec::new(),
            answered: Seen::new(limits::FRAMES_SEEN),
        }
    }
}

impl Moments {
    pub fn hear(&mut self, frame: &Frame) {
        if matches!(frame.payload, Payload::AgentBindingMoment(_)) {
            self.asked.push(frame.clone());
        } else if let Payload::AgentResponse(response) = &frame.payload {
            for id in response
                .responded_to_frame_id
                .into_iter()
                .chain([response.query_id])
            {
                self.answered.first(id);
            }
        }
    }

    /// Undecided ones, oldest first.
    pub fn open(&self) -> Vec<&Frame> {
        self.asked
            .iter()
            .filter(|moment| !self.answered.has(&moment.frame_id))
            .collect()
    }
}
