//! Signs channel deliveries as Standard Webhooks specifies, for members that were added with a
//! signing secret (CHN-34).

use crate::Result;
use chorus_wire::{Error, limits, secret::Secret, time::UnixMicros};
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook,
};

/// Checks that the member's own library reads the secret as this hub does. The check is made when
/// the member is added: at delivery time no client is there to get the error, and a member that
/// expects a signature must not get deliveries without one.
pub(super) fn check_signing_secret(secret: &Secret) -> Result<()> {
    let text = secret.expose();
    let encoded = text.strip_prefix("whsec_").unwrap_or(text);
    let decoded_len = encoded.trim_end_matches('=').len() * 3 / 4;
    if Webhook::new(text).is_ok() && limits::SIGNING_SECRET_BYTES.contains(&decoded_len) {
        return Ok(());
    }
    let min_bytes = limits::SIGNING_SECRET_BYTES.start();
    let max_bytes = limits::SIGNING_SECRET_BYTES.end();
    Err(Error::validation(format!(
        "signing_secret must be whsec_ and the base64 of {min_bytes} to {max_bytes} bytes"
    )))
}

/// The signature headers of one delivery; `None` when the secret cannot sign.
pub(super) fn sign_headers(
    secret: &Secret,
    message_id: &str,
    body: &str,
    now: UnixMicros,
) -> Option<Vec<(&'static str, String)>> {
    let seconds = now.0.div_euclid(1_000_000);
    let signature = Webhook::new(secret.expose())
        .ok()?
        .sign(message_id, seconds, body.as_bytes())
        .ok()?;
    Some(vec![
        (HEADER_WEBHOOK_ID, message_id.to_owned()),
        (HEADER_WEBHOOK_TIMESTAMP, seconds.to_string()),
        (HEADER_WEBHOOK_SIGNATURE, signature),
    ])
}
