//! The published JSON Schemas of every object that a client sends.

use crate::agent_card::AgentCard;
use crate::agent_key::{KeyRotation, NewAgentKey};
use crate::channel::artifact::{ArtifactPatch, NewArtifact};
use crate::channel::callback_event::{CALLBACK_EVENT, CALLBACK_EVENTS, callback_event_schema};
use crate::channel::channels::{
    ChannelChange, ChannelPost, MemberInvitation, MemberPatch, NewChannel,
};
use crate::channel::delivery::DeliveryBody;
use crate::console::ConsoleSignIn;
use crate::contact::SettingsChange;
use crate::contract::{ObjectShape, SchemaRefs, WireObject, list_nested_shapes, object_schema};
use crate::envelope::Envelope;
use crate::frame::organisation::{NewAccord, NewOrganisation, NewOrganisationMember};
use crate::frame::{FRAME_SHAPE, FrameKind, FramePayload, SUBMISSION_SHAPE, frame_schema};
use crate::invite::NewInvite;
use crate::market::heartbeat::Heartbeat;
use crate::market::job::{JobAnswer, JobBody, JobRejection, JobResultBody};
use crate::market::skill::{SkillOffer, SkillUpdate};
use crate::market::transfer::{CreditIssue, CreditTransfer};
use crate::message::{ReceiverReplyRequest, SendBody};
use crate::registration::{OperatorRegistration, RegistrationBody};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The objects that are whole request bodies, or that documents name.
const PUBLISHED: &[&ObjectShape] = &[
    Envelope::SHAPE,
    AgentCard::SHAPE,
    SendBody::SHAPE,
    ReceiverReplyRequest::SHAPE,
    RegistrationBody::SHAPE,
    OperatorRegistration::SHAPE,
    NewInvite::SHAPE,
    NewAgentKey::SHAPE,
    KeyRotation::SHAPE,
    ConsoleSignIn::SHAPE,
    SUBMISSION_SHAPE,
    NewOrganisation::SHAPE,
    NewOrganisationMember::SHAPE,
    NewAccord::SHAPE,
    NewChannel::SHAPE,
    ChannelChange::SHAPE,
    MemberInvitation::SHAPE,
    ChannelPost::SHAPE,
    MemberPatch::SHAPE,
    NewArtifact::SHAPE,
    ArtifactPatch::SHAPE,
    SettingsChange::SHAPE,
    DeliveryBody::SHAPE,
    SkillOffer::SHAPE,
    SkillUpdate::SHAPE,
    JobBody::SHAPE,
    JobResultBody::SHAPE,
    JobAnswer::SHAPE,
    JobRejection::SHAPE,
    CreditTransfer::SHAPE,
    CreditIssue::SHAPE,
    Heartbeat::SHAPE,
];

/// Every shape with the shapes that it refers to, by name.
pub fn list_shapes() -> BTreeMap<&'static str, &'static ObjectShape> {
    let payloads = FrameKind::ALL
        .iter()
        .map(|kind| FramePayload::shape_of_kind(*kind));
    let events = CALLBACK_EVENTS.iter().map(|(_, shape)| *shape);
    let roots = PUBLISHED.iter().copied().chain(payloads).chain(events);
    roots
        .flat_map(list_nested_shapes)
        .map(|shape| (shape.name, shape))
        .collect()
}

/// The schemas by name. References are `{pointer}{name}`.
pub fn request_schemas(pointer: &'static str) -> BTreeMap<String, Value> {
    let refs = SchemaRefs::At(pointer);
    let mut schemas: BTreeMap<String, Value> = list_shapes()
        .into_iter()
        .map(|(name, shape)| (name.to_owned(), object_schema(shape, refs)))
        .collect();
    schemas.insert(CALLBACK_EVENT.to_owned(), callback_event_schema(refs));
    // A frame is one of fifteen, by its kind: generators make a union of it that a program can switch on.
    let mut kinds = Map::new();
    for kind in FrameKind::ALL {
        let name = format!("{}Frame", FramePayload::shape_of_kind(*kind).name);
        kinds.insert(kind.to_string(), format!("{pointer}{name}").into());
        schemas.insert(name, frame_schema(*kind, refs));
    }
    let alternatives: Vec<Value> = kinds
        .values()
        .map(|pointer| json!({"$ref": pointer}))
        .collect();
    let frame = json!({
        "description": FRAME_SHAPE.about,
        "oneOf": alternatives,
        "discriminator": {"propertyName": "kind", "mapping": kinds},
    });
    schemas.insert(FRAME_SHAPE.name.to_owned(), frame);
    schemas
}
