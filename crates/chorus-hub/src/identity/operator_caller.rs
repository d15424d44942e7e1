//! Operator keys of the configuration, and the operator as the caller of a request.

use super::hash_secret;
use crate::limits;
use crate::start_error::StartError;
use crate::store::{WriteTxn, record_activity};
use chorus_wire::secret::Secret;
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;

/// An operator key: `label:KEY`, or the key alone.
#[derive(Clone, Debug)]
pub(crate) struct OperatorKey {
    pub label: Option<Arc<str>>,
    pub hash: [u8; 32],
}

impl OperatorKey {
    /// What is before the first colon is the label if it has the form of one. A short key could be guessed, so it is refused.
    pub fn parse(text: &Secret) -> Result<Self, StartError> {
        let text = text.expose();
        let is_label = |label: &str| {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
            (1..=limits::OPERATOR_LABEL_CHARS).contains(&label.len()) && label.bytes().all(is_plain)
        };
        let (label, key) = match text.split_once(':') {
            Some((label, key)) if is_label(label) => (Some(label), key),
            Some(_) | None => (None, text),
        };
        if key.chars().count() < limits::OPERATOR_KEY_MIN_CHARS {
            let which = match label {
                Some(label) => format!("the operator key {label}"),
                None => "an operator key".to_owned(),
            };
            let min = limits::OPERATOR_KEY_MIN_CHARS;
            let message = format!("{which} is too short: it needs at least {min} characters");
            return Err(StartError::OperatorKey(message));
        }
        Ok(Self {
            label: label.map(Into::into),
            hash: hash_secret(key),
        })
    }

    pub fn parse_all(keys: &[Secret]) -> Result<Vec<Self>, StartError> {
        keys.iter().map(Self::parse).collect()
    }

    /// Tells one key from another.
    pub fn fingerprint(&self) -> u64 {
        let head = self.hash.iter().take(8);
        head.fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
    }
}

/// The holder of an operator key, as it makes a request.
#[derive(Clone, Debug)]
pub struct OperatorCaller {
    /// Tells one key from another.
    pub fingerprint: u64,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) address: Option<IpAddr>,
    /// The hash of the console session that stands for the key.
    pub(crate) console_session: Option<[u8; 32]>,
}

impl OperatorCaller {
    pub(super) fn new(key: &OperatorKey, address: Option<IpAddr>) -> Self {
        Self {
            fingerprint: key.fingerprint(),
            label: key.label.clone(),
            address,
            console_session: None,
        }
    }

    /// Appends an activity entry about an act of the operator, in the transaction of the act.
    pub(crate) fn record_act(&self, txn: &mut WriteTxn<'_>, act: &str, target: &str) {
        let data = json!({
            "label": self.label.as_deref(),
            "act": act,
            "target": target,
            "address": self.address.map(|address| address.to_string()),
        });
        record_activity(txn, "operator_act", &data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn an_operator_key_is_long_and_may_have_a_label() {
        let parse = |text: &str| OperatorKey::parse(&Secret::new(text));
        let key = "0123456789abcdef0123";
        let plain = parse(key).unwrap();
        let labelled = parse(&format!("ops-1:{key}")).unwrap();
        assert_eq!(plain.hash, labelled.hash);
        assert_eq!(
            (plain.label, labelled.label.as_deref()),
            (None, Some("ops-1"))
        );
        let with_colon = parse("not a label:0123456789").unwrap();
        assert_eq!(with_colon.label, None, "the colon belongs to the key");
        for short in ["0123456789abcdef012", "ops:0123456789abcdef012", ""] {
            let error = parse(short).unwrap_err().to_string();
            assert!(error.contains("20"), "{error}");
            assert!(!error.contains("0123"), "the key is not repeated: {error}");
        }
    }
}
