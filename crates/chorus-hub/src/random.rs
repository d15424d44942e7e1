//! Random ids, secrets and numbers. A simulation seeds them, so that a history repeats (D-110).

use base64::Engine as _;
use rand::distr::{Distribution, StandardUniform};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;

thread_local! {
    /// The generator of a simulation on this thread; a hub that serves clients never has one.
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// From here on all randomness of this thread follows from `seed`; `None` returns to the system's. For simulations only: with
/// a seed every secret can be guessed.
pub fn seed_this_thread(seed: Option<u64>) {
    SEEDED.set(seed.map(StdRng::seed_from_u64));
}

/// A random value, from the system's randomness.
pub(crate) fn random_value<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    SEEDED.with_borrow_mut(|seeded| match seeded {
        Some(generator) => generator.random(),
        None => rand::random(),
    })
}

/// A new secret: `prefix` and 32 hex digits, 128 bits of the system's randomness.
pub(crate) fn new_secret(prefix: &str) -> chorus_wire::secret::Secret {
    chorus_wire::secret::Secret::new(format!("{prefix}{:032x}", random_value::<u128>()))
}

/// A new secret of Standard Webhooks: `whsec_` and the base64 of 32 octets.
pub(crate) fn new_signing_secret() -> chorus_wire::secret::Secret {
    let octets: [u8; 32] = random_value();
    let encoded = base64::engine::general_purpose::STANDARD.encode(octets);
    chorus_wire::secret::Secret::new(format!("whsec_{encoded}"))
}

/// A new id that is no secret.
pub fn new_id() -> uuid::Uuid {
    uuid::Builder::from_random_bytes(random_value()).into_uuid()
}

/// A random epoch that tells one ring or stream from every other; 48 bits keep event ids short.
pub(crate) fn new_epoch() -> u64 {
    (random_value::<u64>() >> 16).max(1)
}

/// The id of one request in replies and logs. It is no credential, so eight random bytes are enough.
pub fn new_request_id() -> String {
    format!("{:016x}", random_value::<u64>())
}
