//! Random ids and secrets.

use base64::Engine as _;

/// A new secret: `prefix` and 32 hex digits, 128 bits of the system's randomness.
pub(crate) fn new_secret(prefix: &str) -> chorus_wire::secret::Secret {
    chorus_wire::secret::Secret::new(format!("{prefix}{:032x}", rand::random::<u128>()))
}

/// A new secret of Standard Webhooks: `whsec_` and the base64 of 32 octets.
pub(crate) fn new_signing_secret() -> chorus_wire::secret::Secret {
    let octets: [u8; 32] = rand::random();
    let encoded = base64::engine::general_purpose::STANDARD.encode(octets);
    chorus_wire::secret::Secret::new(format!("whsec_{encoded}"))
}

/// A new id that is no secret.
pub fn new_id() -> uuid::Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

/// A random epoch that tells one ring or stream from every other; 48 bits keep event ids short.
pub(crate) fn new_epoch() -> u64 {
    (rand::random::<u64>() >> 16).max(1)
}

/// The id of one request in replies and logs. It is no credential, so eight random bytes are enough.
pub fn new_request_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}
