//! Signs posts as Standard Webhooks specifies: to channel members that were added with a signing secret (CHN-34), and to agents
//! with an endpoint secret.

use chorus_wire::{Error, Result, limits, secret::Secret, time::UnixMicros};
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook,
};

/// Headers that prove that a post comes from this hub; none where the receiver has no secret.
#[derive(Debug, Default)]
pub struct SignatureHeaders(Vec<(&'static str, String)>);

impl SignatureHeaders {
    /// The headers as the client takes them.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect()
    }
}

/// Checks that the receiver's own library reads the secret as this hub does. The check is made when the secret is given: at
/// delivery time no client is there to get the error, and a receiver that expects a signature must not get posts without one.
pub fn check_signing_secret(field: &str, secret: &Secret) -> Result<()> {
    let text = secret.expose();
    let encoded = text.strip_prefix("whsec_").unwrap_or(text);
    let decoded_len = encoded.trim_end_matches('=').len() * 3 / 4;
    if Webhook::new(text).is_ok() && limits::SIGNING_SECRET_BYTES.contains(&decoded_len) {
        return Ok(());
    }
    let min_bytes = limits::SIGNING_SECRET_BYTES.start();
    let max_bytes = limits::SIGNING_SECRET_BYTES.end();
    Err(Error::invalid_field(
        field,
        format!("{field} must be whsec_ and the base64 of {min_bytes} to {max_bytes} bytes"),
    ))
}

/// The signature headers of one post; `None` when the secret cannot sign. `message_id` is the same for every attempt, so that a
/// receiver recognises a repeated post.
pub fn sign_body(
    secret: &Secret,
    message_id: &str,
    body: &[u8],
    now: UnixMicros,
) -> Option<SignatureHeaders> {
    let seconds = now.0.div_euclid(1_000_000);
    let signature = Webhook::new(secret.expose())
        .ok()?
        .sign(message_id, seconds, body)
        .ok()?;
    Some(SignatureHeaders(vec![
        (HEADER_WEBHOOK_ID, message_id.to_owned()),
        (HEADER_WEBHOOK_TIMESTAMP, seconds.to_string()),
        (HEADER_WEBHOOK_SIGNATURE, signature),
    ]))
}
