//! Messages between hubs as a story sends and reads them, written after D-106 and not with the hub's own code.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::sync::atomic::{AtomicU64, Ordering};

/// The tag, the hub and the number before the body.
const TAG_BYTES: usize = 32;
const HEADER_BYTES: usize = TAG_BYTES + 16;

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; TAG_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Signs as a hub with this id and this seal key does.
pub struct PeerSigner {
    bus_key: [u8; TAG_BYTES],
    hub: u64,
    last_number: AtomicU64,
}

impl PeerSigner {
    /// With the seal key of the stories' hubs.
    pub fn new(hub: u64) -> Self {
        Self::with_seal_key(hub, [0x55; 32])
    }

    pub fn with_seal_key(hub: u64, seal_key: [u8; 32]) -> Self {
        let extracted = hmac(&[0; 32], &[&seal_key]);
        Self {
            bus_key: hmac(&extracted, &[b"chorus bus messages 1", &[1]]),
            hub,
            last_number: AtomicU64::new(0),
        }
    }

    fn sign(&self, code: u8, subject: &str, request: &[u8], body: &str) -> Vec<u8> {
        let number = self.last_number.fetch_add(1, Ordering::SeqCst) + 1;
        let (hub, number) = (self.hub.to_be_bytes(), number.to_be_bytes());
        let signed = [&hub[..], &number[..], body.as_bytes()].concat();
        let length = (subject.len() as u64).to_be_bytes();
        let parts: [&[u8]; 5] = [&[code], &length, subject.as_bytes(), request, &signed];
        [&hmac(&self.bus_key, &parts)[..], &signed[..]].concat()
    }

    pub fn announcement(&self, subject: &str, body: &str) -> Vec<u8> {
        self.sign(b'a', subject, &[], body)
    }

    pub fn request(&self, subject: &str, body: &str) -> Vec<u8> {
        self.sign(b'q', subject, &[], body)
    }

    pub fn frame(&self, subject: &str, body: &str) -> Vec<u8> {
        self.sign(b'f', subject, &[], body)
    }

    /// The answer to this request.
    pub fn reply(&self, subject: &str, request: &[u8], body: &str) -> Vec<u8> {
        self.sign(b'r', subject, &request[..TAG_BYTES], body)
    }
}

/// What a message says, without its tag.
pub fn message_body(message: &[u8]) -> &[u8] {
    &message[HEADER_BYTES..]
}
