//! Checks that a hosted delivery was signed by its service, with the secrets that this agent keeps by origin (CHN-34).

use super::deliveries::{ReceivedDelivery, callback_origin};
use crate::files::{IdentityFiles, atomic_file, read_list};
use crate::{Error, Result};
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::secret::Secret;
use serde::{Deserialize, Serialize};
use standardwebhooks::Webhook;
use std::path::PathBuf;
use subtle::ConstantTimeEq;

/// What a signature says about a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryTrust {
    /// No secret of its service is kept, so nothing was checked.
    Unchecked,
    Verified,
    /// A secret is kept, and the delivery is not signed with it.
    Forged,
}

/// The signing secret of one service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SigningSecret {
    /// The origin of the service's callbacks.
    pub origin: String,
    pub secret: Secret,
}

impl SigningSecret {
    fn file_path(files: &IdentityFiles) -> PathBuf {
        files.beside_state("signing-secrets.json")
    }

    pub fn read_all(files: &IdentityFiles) -> Result<Vec<Self>> {
        read_list(&Self::file_path(files))
    }

    /// Keeps the secret of an origin in place of the previous one; without a secret, forgets it.
    pub fn save(files: &IdentityFiles, origin: &str, secret: Option<Secret>) -> Result<()> {
        if let Some(secret) = &secret {
            Webhook::new(secret.expose())
                .map_err(|_| Error::Input("a signing secret is whsec_ and base64".into()))?;
        }
        let mut secrets = Self::read_all(files)?;
        secrets.retain(|saved| saved.origin != origin);
        secrets.extend(secret.map(|secret| Self {
            origin: origin.to_owned(),
            secret,
        }));
        let text = serde_json::to_string(&secrets).map_err(|e| Error::Input(e.to_string()))?;
        atomic_file::replace_file(&Self::file_path(files), text.as_bytes())
    }
}

impl ReceivedDelivery {
    /// Checks the signature with the secret of the delivery's origin. The age of the signature is not checked: the hub drops
    /// repeated deliveries, and an agent may read its inbox days later.
    pub fn check_signature(&self, secrets: &[SigningSecret]) -> DeliveryTrust {
        let origin = callback_origin(&self.delivery.callback, &self.delivery.channel.id);
        let Some(known) = secrets.iter().find(|known| known.origin == origin) else {
            return DeliveryTrust::Unchecked;
        };
        match self.is_signed_with(&known.secret) {
            Some(true) => DeliveryTrust::Verified,
            Some(false) | None => DeliveryTrust::Forged,
        }
    }

    /// `None` when the delivery is not signed, or its body is not known exactly.
    fn is_signed_with(&self, secret: &Secret) -> Option<bool> {
        let headers = self.delivery.webhook_headers.as_ref()?;
        let body = match &self.delivery.signed_body {
            Some(body) => body.expose().to_owned(),
            None => ChannelDelivery::cut_signed_body(&self.body)?,
        };
        // What was signed must be what is shown.
        let signed: ChannelDelivery = serde_json::from_str(&body).ok()?;
        if signed.message.content != self.delivery.message.content
            || signed.message.sender != self.delivery.message.sender
            || signed.channel != self.delivery.channel
            || signed.callback.expose() != self.delivery.callback.expose()
        {
            return Some(false);
        }
        let expected = Webhook::new(secret.expose())
            .ok()?
            .sign(
                &headers.id,
                headers.timestamp.parse().ok()?,
                body.as_bytes(),
            )
            .ok()?;
        // A service that rotates its secret sends several signatures, with spaces between them.
        let is_equal = |given: &str| bool::from(given.as_bytes().ct_eq(expected.as_bytes()));
        Some(headers.signature.split(' ').any(is_equal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_bm90IGEgcmVhbCBzZWNyZXQsIG9ubHkgYSB0ZXN0";

    fn received(content: &str, signed_content: &str, exact: Option<&str>) -> ReceivedDelivery {
        let body = |content: &str| {
            format!(
                r#"{{"channel": {{"id": "c"}}, "message": {{"id": "1", "sender": "a", "content": "{content}"}}, "callback": "https://s.example/x""#
            )
        };
        let signed = match exact {
            Some(exact) => exact.to_owned(),
            None => format!("{}}}", body(signed_content)),
        };
        let signature = Webhook::new(SECRET)
            .unwrap()
            .sign("1", 7, signed.as_bytes())
            .unwrap();
        let exact = exact.map_or(String::new(), |exact| {
            format!(r#","signed_body":{}"#, serde_json::json!(exact))
        });
        let data = format!(
            r#"{},"origin":"https://s.example","webhook_headers":{{"webhook-id":"1","webhook-timestamp":"7","webhook-signature":"v1,old {signature}"}}{exact}}}"#,
            body(content)
        );
        ReceivedDelivery {
            delivery: serde_json::from_str(&data).unwrap(),
            body: data,
        }
    }

    fn check(received: &ReceivedDelivery, secret: &str) -> DeliveryTrust {
        received.check_signature(&[SigningSecret {
            origin: "https://s.example".into(),
            secret: Secret::new(secret.to_owned()),
        }])
    }

    /// CHN-34
    #[test]
    fn a_signature_holds_for_exactly_what_the_service_wrote() {
        assert_eq!(
            check(&received("hi", "hi", None), SECRET),
            DeliveryTrust::Verified
        );
        assert_eq!(
            check(&received("hi", "no", None), SECRET),
            DeliveryTrust::Forged
        );
        let other = "whsec_YW5vdGhlciBzZWNyZXQgdGhhdCBpcyBub3QgcmVhbCE=";
        assert_eq!(
            check(&received("hi", "hi", None), other),
            DeliveryTrust::Forged
        );
        assert_eq!(
            received("hi", "hi", None).check_signature(&[]),
            DeliveryTrust::Unchecked
        );
    }

    /// CHN-34
    #[test]
    fn a_body_of_several_lines_is_checked_as_it_was_signed() {
        let lines = "{\"channel\": {\"id\": \"c\"},\n \"message\": {\"id\": \"1\", \"sender\": \"a\", \"content\": \"hi\"}, \"callback\": \"https://s.example/x\"}\n";
        assert_eq!(
            check(&received("hi", "", Some(lines)), SECRET),
            DeliveryTrust::Verified
        );
        assert_eq!(
            check(&received("another text", "", Some(lines)), SECRET),
            DeliveryTrust::Forged
        );
    }
}
