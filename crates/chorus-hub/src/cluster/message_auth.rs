//! Authenticates what hubs say to one another: NATS carries it, and is not trusted (D-106). A message is a tag, the id of the
//! sending hub, its number, and the body. The tag is an HMAC-SHA-256 over all of it and over where and as what it was sent.

use super::lock_mutex;
use super::protocol::HubId;
use super::replay_window::ReplayGuard;
use crate::seal::BusKey;
use bytes::{BufMut, Bytes, BytesMut};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const TAG_BYTES: usize = 32;
/// The tag, the hub and the number.
const HEADER_BYTES: usize = TAG_BYTES + 8 + 8;
/// How often refused messages are logged, so that a sender without the key does not fill the log.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(10);

pub(super) type MessageTag = [u8; TAG_BYTES];

/// As what a message was sent. A message of one kind is never accepted as another, also where both have the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MessageKind {
    Announcement,
    Request,
    Frame,
}

impl MessageKind {
    fn code(self) -> u8 {
        match self {
            Self::Announcement => b'a',
            Self::Request => b'q',
            Self::Frame => b'f',
        }
    }
}

/// The code of an answer, which is bound to its request instead of being numbered.
const REPLY_CODE: u8 = b'r';

/// A message whose tag is right.
#[derive(Debug)]
pub(super) struct AuthenticMessage {
    pub body: Bytes,
    /// An answer names the request by it.
    pub tag: MessageTag,
}

/// Why a message is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageRefusal {
    /// Not from a hub with this key, or changed, or sent elsewhere or as something else.
    WrongTag,
    /// Received before, or so old that it cannot be told.
    Replayed,
}

impl MessageRefusal {
    fn as_str(self) -> &'static str {
        match self {
            Self::WrongTag => "tag",
            Self::Replayed => "replay",
        }
    }
}

pub(super) struct MessageAuth {
    /// Keyed once; a clone of it starts each tag.
    keyed_mac: Hmac<Sha256>,
    hub_id: HubId,
    last_number: AtomicU64,
    replay_guard: Mutex<ReplayGuard>,
    refusal_log: Mutex<RefusalLog>,
}

#[derive(Default)]
struct RefusalLog {
    refused_count: u64,
    logged_at: Option<Instant>,
}

impl MessageAuth {
    pub fn new(key: &BusKey, hub_id: HubId) -> Self {
        Self {
            keyed_mac: key.start_hmac(),
            hub_id,
            last_number: AtomicU64::new(0),
            replay_guard: Mutex::default(),
            refusal_log: Mutex::default(),
        }
    }

    /// The message to send, and its tag.
    pub fn sign(&self, kind: MessageKind, subject: &str, body: &[u8]) -> (Bytes, MessageTag) {
        self.sign_as(kind.code(), subject, &[], body)
    }

    /// An answer, which is trusted by the sender of this request only.
    pub fn sign_reply(&self, subject: &str, request: &MessageTag, body: &[u8]) -> Bytes {
        self.sign_as(REPLY_CODE, subject, request, body).0
    }

    fn sign_as(&self, code: u8, subject: &str, request: &[u8], body: &[u8]) -> (Bytes, MessageTag) {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let mut message = BytesMut::with_capacity(HEADER_BYTES + body.len());
        message.put_bytes(0, TAG_BYTES);
        message.put_u64(self.hub_id);
        message.put_u64(number);
        message.put_slice(body);
        let tag = self.start_tag(code, subject, request);
        let tag: MessageTag = tag
            .chain_update(&message[TAG_BYTES..])
            .finalize()
            .into_bytes()
            .into();
        message[..TAG_BYTES].copy_from_slice(&tag);
        (message.freeze(), tag)
    }

    /// Everything before the signed part of the message. The length keeps the end of the subject apart from what follows.
    fn start_tag(&self, code: u8, subject: &str, request: &[u8]) -> Hmac<Sha256> {
        self.keyed_mac
            .clone()
            .chain_update([code])
            .chain_update((subject.len() as u64).to_be_bytes())
            .chain_update(subject)
            .chain_update(request)
    }

    /// Checks a received message before anything of it is decoded. `None` when it is not trusted.
    pub fn verify(
        &self,
        kind: MessageKind,
        subject: &str,
        message: &Bytes,
    ) -> Option<AuthenticMessage> {
        let checked = self.check_tag(kind.code(), subject, &[], message);
        let numbered = checked.and_then(|(authentic, hub, number)| {
            let mut replay_guard = lock_mutex(&self.replay_guard);
            match replay_guard.accept_number(hub, kind, number) {
                true => Ok(authentic),
                false => Err(MessageRefusal::Replayed),
            }
        });
        self.count_refusal(numbered)
    }

    /// Checks the answer to the request with this tag.
    pub fn verify_reply(
        &self,
        subject: &str,
        request: &MessageTag,
        message: &Bytes,
    ) -> Option<Bytes> {
        let checked = self.check_tag(REPLY_CODE, subject, request, message);
        self.count_refusal(checked.map(|(authentic, _, _)| authentic.body))
    }

    fn check_tag(
        &self,
        code: u8,
        subject: &str,
        request: &[u8],
        message: &Bytes,
    ) -> Result<(AuthenticMessage, HubId, u64), MessageRefusal> {
        let (tag, signed) = message
            .split_first_chunk::<TAG_BYTES>()
            .ok_or(MessageRefusal::WrongTag)?;
        let (hub, rest) = signed
            .split_first_chunk::<8>()
            .ok_or(MessageRefusal::WrongTag)?;
        let (number, _) = rest
            .split_first_chunk::<8>()
            .ok_or(MessageRefusal::WrongTag)?;
        self.start_tag(code, subject, request)
            .chain_update(signed)
            .verify_slice(tag)
            .map_err(|_| MessageRefusal::WrongTag)?;
        let authentic = AuthenticMessage {
            body: message.slice(HEADER_BYTES..),
            tag: *tag,
        };
        Ok((
            authentic,
            u64::from_be_bytes(*hub),
            u64::from_be_bytes(*number),
        ))
    }

    fn count_refusal<T>(&self, outcome: Result<T, MessageRefusal>) -> Option<T> {
        match outcome {
            Ok(accepted) => Some(accepted),
            Err(refusal) => {
                let reason = refusal.as_str();
                metrics::counter!("chorus_bus_messages_refused_total", "reason" => reason)
                    .increment(1);
                if let Some(count) = lock_mutex(&self.refusal_log).record(Instant::now()) {
                    tracing::warn!(
                        reason,
                        count,
                        "refused what no hub with this seal key has sent over the bus"
                    );
                }
                None
            }
        }
    }
}

impl RefusalLog {
    /// The number of refusals to log now, if it is time.
    fn record(&mut self, now: Instant) -> Option<u64> {
        self.refused_count += 1;
        let is_due = self
            .logged_at
            .is_none_or(|at| now.duration_since(at) >= REFUSAL_LOG_INTERVAL);
        is_due.then(|| {
            self.logged_at = Some(now);
            std::mem::take(&mut self.refused_count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(key: u8, hub: HubId) -> MessageAuth {
        MessageAuth::new(&BusKey::from_bytes([key; 32]), hub)
    }

    /// D-106
    #[test]
    fn a_message_is_believed_once_from_a_hub_with_the_key_and_as_what_it_was_sent() {
        let (sender, receiver) = (auth(1, 7), auth(1, 8));
        let (message, _) = sender.sign(MessageKind::Announcement, "chorus.1.all", b"{}");
        for (kind, subject) in [
            (MessageKind::Request, "chorus.1.all"),
            (MessageKind::Frame, "chorus.1.all"),
            (MessageKind::Announcement, "chorus.2.all"),
            (MessageKind::Announcement, "chorus.1.al"),
        ] {
            let accepted = receiver.verify(kind, subject, &message);
            assert!(accepted.is_none(), "{kind:?} {subject}");
        }
        let accept =
            |message: &Bytes| receiver.verify(MessageKind::Announcement, "chorus.1.all", message);
        let other_key = auth(2, 7).sign(MessageKind::Announcement, "chorus.1.all", b"{}");
        assert!(accept(&other_key.0).is_none());
        for length in 0..message.len() {
            assert!(accept(&message.slice(..length)).is_none(), "{length}");
        }
        for index in 0..message.len() {
            let mut changed = message.to_vec();
            changed[index] ^= 1;
            assert!(accept(&changed.into()).is_none(), "{index}");
        }
        assert_eq!(accept(&message).unwrap().body, "{}");
        assert!(accept(&message).is_none(), "a replay");
    }

    /// D-106
    #[test]
    fn an_answer_is_believed_for_its_own_request_only() {
        let (asking, answering) = (auth(1, 7), auth(1, 8));
        let (first, first_tag) = asking.sign(MessageKind::Request, "chorus.1.hub.8", b"\"Alike\"");
        let (_, second_tag) = asking.sign(MessageKind::Request, "chorus.1.hub.8", b"\"Alike\"");
        let request = answering.verify(MessageKind::Request, "chorus.1.hub.8", &first);
        let request_tag = request.unwrap().tag;
        let reply = answering.sign_reply("_INBOX.a", &request_tag, b"[]");
        assert_eq!(
            asking.verify_reply("_INBOX.a", &first_tag, &reply).unwrap(),
            "[]"
        );
        assert!(
            asking
                .verify_reply("_INBOX.a", &second_tag, &reply)
                .is_none()
        );
        assert!(
            asking
                .verify_reply("_INBOX.b", &first_tag, &reply)
                .is_none()
        );
        assert!(
            asking
                .verify(MessageKind::Announcement, "_INBOX.a", &reply)
                .is_none(),
            "an answer is no announcement, wherever it is sent"
        );
    }

    /// Invariant 6
    #[test]
    fn refusals_are_logged_at_a_bounded_rate() {
        let mut log = RefusalLog::default();
        let now = Instant::now();
        assert_eq!(log.record(now), Some(1));
        assert_eq!([log.record(now), log.record(now)], [None, None]);
        assert_eq!(log.record(now + REFUSAL_LOG_INTERVAL), Some(3));
    }
}
