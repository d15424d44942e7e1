//! Open items among the received frames: handovers without a claim, binding moments without an answer.

use super::seen_ids::SeenIds;
use crate::limits;
use chorus_wire::frame::{Frame, FramePayload, payload};
use uuid::Uuid;

/// How a claim names the handover that it takes: frames refer to content, they do not contain it (FRM-47).
pub fn format_frame_ref(id: &Uuid) -> String {
    format!("frame:{id}")
}

/// Handovers and their claims (FRM-31, FRM-32).
#[derive(Debug, Default)]
pub struct HandoverLog {
    offers: Vec<Frame>,
    /// In order of arrival: of two claims on one handover the first one counts.
    claims: Vec<(Uuid, Frame)>,
}

impl HandoverLog {
    pub fn apply_frame(&mut self, frame: &Frame) {
        let FramePayload::AgentHandover(handover) = &frame.payload else {
            return;
        };
        if handover
            .next_session_id
            .as_ref()
            .is_none_or(String::is_empty)
        {
            self.offers.push(frame.clone());
        } else if let Some(offer) = self
            .offers
            .iter()
            .find(|offer| is_claim_of(handover, offer))
        {
            self.claims.push((offer.frame_id, frame.clone()));
        }
    }

    /// Handovers without a claim, oldest first.
    pub fn open_offers(&self) -> Vec<&Frame> {
        self.offers
            .iter()
            .filter(|offer| self.find_claim(&offer.frame_id).is_none())
            .collect()
    }

    pub fn find_offer(&self, id: &Uuid) -> Option<&Frame> {
        self.offers.iter().find(|offer| offer.frame_id == *id)
    }

    /// The first claim of a handover.
    pub fn find_claim(&self, id: &Uuid) -> Option<&Frame> {
        self.claims
            .iter()
            .find(|(offer, _)| offer == id)
            .map(|(_, frame)| frame)
    }
}

/// Compares the frame reference that our own claims carry. Without one it compares the texts, because other clients may
/// implement only the draft.
fn is_claim_of(claim: &payload::AgentHandover, offer: &Frame) -> bool {
    let FramePayload::AgentHandover(offered_handover) = &offer.payload else {
        return false;
    };
    let refs = claim.pointer_refs.as_deref().unwrap_or_default();
    let names_frame = refs.iter().any(|reference| reference.starts_with("frame:"));
    match names_frame {
        true => refs.contains(&format_frame_ref(&offer.frame_id)),
        false => {
            claim.previous_session_id == offered_handover.previous_session_id
                && claim.handover_body == offered_handover.handover_body
        }
    }
}

/// Binding moments and their answers (FRM-39). A moment has no id of its own, so answers name its frame id.
#[derive(Debug)]
pub struct BindingMomentLog {
    moments: Vec<Frame>,
    answered_ids: SeenIds,
}

impl Default for BindingMomentLog {
    fn default() -> Self {
        Self {
            moments: Vec::new(),
            answered_ids: SeenIds::new(limits::MAX_SEEN_FRAMES),
        }
    }
}

impl BindingMomentLog {
    pub fn apply_frame(&mut self, frame: &Frame) {
        if matches!(frame.payload, FramePayload::AgentBindingMoment(_)) {
            self.moments.push(frame.clone());
        } else if let FramePayload::AgentResponse(response) = &frame.payload {
            for id in response
                .responded_to_frame_id
                .into_iter()
                .chain([response.query_id])
            {
                self.answered_ids.insert_new(id);
            }
        }
    }

    /// Binding moments without an answer, oldest first.
    pub fn open_moments(&self) -> Vec<&Frame> {
        self.moments
            .iter()
            .filter(|moment| !self.answered_ids.contains(&moment.frame_id))
            .collect()
    }
}
