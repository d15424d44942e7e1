//! Channel deliveries at rest: the log has the message as it was written, and the credentials in it sealed (D-105).

use crate::Result;
use crate::seal::SealKey;
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use chorus_wire::{Error, secret::Secret};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How a body with sealed credentials begins. No JSON begins with it, so bodies from before D-105 are told apart.
const SEALED_PREFIX: &str = "sealed:";
/// What the stored body has in place of a credential: the body stays JSON.
const PLACEHOLDER: &str = "null";

/// The values with credentials, as they are written in the body: the callback, and the URL and headers of the MCP server.
#[derive(Deserialize)]
struct CredentialFields<'a> {
    #[serde(borrow, default)]
    callback: Option<&'a RawValue>,
    #[serde(borrow, default)]
    mcp: Option<&'a RawValue>,
    /// A copy of the whole body.
    #[serde(borrow, default)]
    signed_body: Option<&'a RawValue>,
}

/// A value that was cut out of a body, and the offset of its placeholder there.
#[derive(Serialize, Deserialize)]
struct CutValue {
    offset: usize,
    text: String,
}

/// The body as the log keeps it.
pub(crate) fn seal_credentials(seal_key: &SealKey, body: &str) -> Result<String> {
    CutBody::cut_credentials(body)?.seal(seal_key)
}

/// A body and the credentials that were cut out of it. The deliveries of one message differ in their credentials alone, so the
/// body is cut once for all of them.
pub(crate) struct CutBody {
    open_part: String,
    cut_values: Vec<CutValue>,
}

impl CutBody {
    pub fn cut_credentials(body: &str) -> Result<Self> {
        let fields: CredentialFields = serde_json::from_str(body).map_err(Error::internal)?;
        Ok(Self::cut_fields(body, fields))
    }

    /// The same body with other credentials, which are JSON and come in the order of their fields.
    pub fn replace_values(&mut self, values: impl IntoIterator<Item = String>) {
        for (cut, text) in self.cut_values.iter_mut().zip(values) {
            cut.text = text;
        }
    }

    /// The body as the log keeps it.
    pub fn seal(&self, seal_key: &SealKey) -> Result<String> {
        let secret = Secret::new(serde_json::to_string(&self.cut_values).map_err(Error::internal)?);
        let sealed = seal_key.seal_secret(&secret)?;
        let sealed_len = sealed.len().div_ceil(3) * 4;
        let mut stored =
            String::with_capacity(SEALED_PREFIX.len() + sealed_len + 1 + self.open_part.len());
        stored.push_str(SEALED_PREFIX);
        BASE64_STANDARD_NO_PAD.encode_string(sealed, &mut stored);
        stored.push(' ');
        stored.push_str(&self.open_part);
        Ok(stored)
    }

    fn cut_fields(body: &str, fields: CredentialFields<'_>) -> Self {
        // The values are slices of the body, so their addresses tell where they are.
        let offset_of = |value: &str| value.as_ptr().addr() - body.as_ptr().addr();
        let mut values: Vec<&str> = [fields.callback, fields.mcp, fields.signed_body]
            .into_iter()
            .flatten()
            .map(RawValue::get)
            .collect();
        values.sort_by_key(|value| offset_of(value));
        let mut open_part = String::with_capacity(body.len());
        let mut cut_values = Vec::with_capacity(values.len());
        let mut copied_to = 0;
        for text in values {
            let start = offset_of(text);
            open_part.push_str(&body[copied_to..start]);
            cut_values.push(CutValue {
                offset: open_part.len(),
                text: text.to_owned(),
            });
            open_part.push_str(PLACEHOLDER);
            copied_to = start + text.len();
        }
        open_part.push_str(&body[copied_to..]);
        Self {
            open_part,
            cut_values,
        }
    }
}

/// The body as it was written. If the credentials were sealed with another key, it is the message without them.
pub(super) fn unseal_credentials<'a>(seal_key: &SealKey, stored: &'a str) -> Cow<'a, str> {
    let Some((sealed, open_part)) = stored
        .strip_prefix(SEALED_PREFIX)
        .and_then(|rest| rest.split_once(' '))
    else {
        return Cow::Borrowed(stored);
    };
    match unseal_body(seal_key, sealed, open_part) {
        Some(body) => Cow::Owned(body),
        None => {
            tracing::error!("cannot unseal the credentials of a delivery: wrong seal key");
            Cow::Borrowed(open_part)
        }
    }
}

fn unseal_body(seal_key: &SealKey, sealed: &str, open_part: &str) -> Option<String> {
    let sealed = BASE64_STANDARD_NO_PAD.decode(sealed).ok()?;
    let secret = seal_key.unseal(&sealed)?;
    let cut_values: Vec<CutValue> = serde_json::from_str(secret.expose()).ok()?;
    let mut body = String::with_capacity(open_part.len() + secret.expose().len());
    let mut copied_to = 0;
    for CutValue { offset, text } in cut_values {
        body.push_str(open_part.get(copied_to..offset)?);
        body.push_str(&text);
        copied_to = offset + PLACEHOLDER.len();
    }
    body.push_str(open_part.get(copied_to..)?);
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal_key(dir: &tempfile::TempDir) -> SealKey {
        SealKey::load_or_create(dir.path(), None, crate::seal::SealedData::Nothing).unwrap()
    }

    /// D-105, R-78
    #[test]
    fn a_delivery_is_rendered_as_it_was_written_and_stored_without_its_credentials() {
        let dir = tempfile::tempdir().unwrap();
        let key = seal_key(&dir);
        let bodies = [
            r#"{ "mcp" : {"url":"https://s/m?t=mcp_1","headers":{"A":"Bearer mcp_2"}},"callback":"https://s/tok_3","message":{"content":"é \"callback\" \u00e9"} }"#,
            r#"{"callb\u0061ck":"https:\/\/s\/tok_3","x":[1.0e2],"mcp":null}"#,
            r#"{"channel":{"id":"c","callback":"not one"}}"#,
        ];
        for body in bodies {
            let stored = seal_credentials(&key, body).unwrap();
            assert_eq!(unseal_credentials(&key, &stored), body);
            for secret in ["tok_3", "mcp_1", "mcp_2"] {
                assert!(!stored.contains(secret), "{stored}");
            }
        }
    }

    /// R-71: each receiver of a message gets its own credentials.
    #[test]
    fn a_body_that_was_cut_once_is_sealed_with_the_credentials_of_each_receiver() {
        let dir = tempfile::tempdir().unwrap();
        let key = seal_key(&dir);
        let render = |n: u32| {
            format!(
                r#"{{"message":"m","callback":"https://s/tok_{n}","mcp":{{"url":"mcp_{n}"}},"backlog":[]}}"#
            )
        };
        let mut cut = CutBody::cut_credentials(&render(1)).unwrap();
        assert_eq!(
            unseal_credentials(&key, &cut.seal(&key).unwrap()),
            render(1)
        );
        cut.replace_values([r#""https://s/tok_22""#.into(), r#"{"url":"mcp_22"}"#.into()]);
        assert_eq!(
            unseal_credentials(&key, &cut.seal(&key).unwrap()),
            render(22)
        );
    }

    /// Rows of an older hub have the body as it was.
    #[test]
    fn a_body_that_was_stored_open_is_rendered_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let body = r#"{"sealed":"no","callback":"https://s/tok_3"}"#;
        assert_eq!(unseal_credentials(&seal_key(&dir), body), body);
    }

    #[test]
    fn with_another_key_the_message_is_still_readable() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let body = r#"{"message":{"content":"hello"},"callback":"https://s/tok_3"}"#;
        let stored = seal_credentials(&seal_key(&dirs[0]), body).unwrap();
        assert_eq!(
            unseal_credentials(&seal_key(&dirs[1]), &stored),
            r#"{"message":{"content":"hello"},"callback":null}"#
        );
    }
}
