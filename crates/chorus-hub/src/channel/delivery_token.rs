//! The tokens of deliveries. A token states what it admits to and has a tag that only a hub with the seal key can make, so
//! that a delivery stores none (R-71, R-74, D-122).

use crate::random;
use crate::seal::SealKey;
use crate::store::channel_tokens::TokenPurpose;
use crate::store::{ChannelId, MemberId};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chorus_wire::secret::Secret;
use chorus_wire::time::UnixMicros;
use subtle::ConstantTimeEq;

/// 128 bits.
const TAG_BYTES: usize = 16;
/// Channel, member, turn, epoch, expiry and nonce.
const CLAIM_BYTES: usize = 8 + 8 + 4 + 8 + 8 + 8;

/// What one delivery's tokens state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryClaims {
    pub channel: ChannelId,
    pub member: MemberId,
    /// Agent-to-agent steps between a person's message and the delivery.
    pub turn: u32,
    /// The member's `token_epoch` when it was issued.
    pub epoch: i64,
    pub expires_at: UnixMicros,
    /// Two deliveries never have the same tokens.
    nonce: u64,
}

impl DeliveryClaims {
    pub fn new(
        channel: ChannelId,
        member: MemberId,
        turn: u32,
        epoch: i64,
        expires_at: UnixMicros,
    ) -> Self {
        Self {
            channel,
            member,
            turn,
            epoch,
            expires_at,
            nonce: random::random_value(),
        }
    }

    /// The token with these claims for one purpose.
    pub fn issue_token(&self, seal_key: &SealKey, purpose: TokenPurpose) -> Secret {
        let claims = self.to_bytes();
        let tag = seal_key.tag_delivery_token(&[&[purpose_code(purpose)], &claims]);
        let mut token = [0; CLAIM_BYTES + TAG_BYTES];
        token[..CLAIM_BYTES].copy_from_slice(&claims);
        token[CLAIM_BYTES..].copy_from_slice(&tag[..TAG_BYTES]);
        let mut text = String::with_capacity(96);
        text.push_str(purpose_prefix(purpose));
        BASE64_URL_SAFE_NO_PAD.encode_string(token, &mut text);
        Secret::new(text)
    }

    /// The claims of a token and its purpose; `None` if no hub with this key issued it as a delivery's token.
    pub fn read_token(seal_key: &SealKey, token: &str) -> Option<(TokenPurpose, Self)> {
        let purpose = [TokenPurpose::Callback, TokenPurpose::Tools]
            .into_iter()
            .find(|purpose| token.starts_with(purpose_prefix(*purpose)))?;
        let encoded = token.strip_prefix(purpose_prefix(purpose))?;
        let mut decoded = [0; CLAIM_BYTES + TAG_BYTES];
        // One more byte than a token has would not fit, fewer are not one.
        let length = BASE64_URL_SAFE_NO_PAD
            .decode_slice(encoded, &mut decoded)
            .ok()?;
        if length != decoded.len() {
            return None;
        }
        let (claims, tag) = decoded.split_at(CLAIM_BYTES);
        let expected = seal_key.tag_delivery_token(&[&[purpose_code(purpose)], claims]);
        if !bool::from(expected[..TAG_BYTES].ct_eq(tag)) {
            return None;
        }
        Some((purpose, Self::from_bytes(claims.try_into().ok()?)))
    }

    fn to_bytes(&self) -> [u8; CLAIM_BYTES] {
        let mut bytes = [0; CLAIM_BYTES];
        bytes[..8].copy_from_slice(&self.channel.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.member.0.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.turn.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[28..36].copy_from_slice(&self.expires_at.0.to_be_bytes());
        bytes[36..].copy_from_slice(&self.nonce.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; CLAIM_BYTES]) -> Self {
        let number = |at: usize| {
            let mut octets = [0; 8];
            octets.copy_from_slice(&bytes[at..at + 8]);
            i64::from_be_bytes(octets)
        };
        let mut turn = [0; 4];
        turn.copy_from_slice(&bytes[16..20]);
        Self {
            channel: ChannelId(number(0)),
            member: MemberId(number(8)),
            turn: u32::from_be_bytes(turn),
            epoch: number(20),
            expires_at: UnixMicros(number(28)),
            nonce: number(36).cast_unsigned(),
        }
    }
}

/// Part of what is tagged, so that a callback is never taken for a tool token.
fn purpose_code(purpose: TokenPurpose) -> u8 {
    match purpose {
        TokenPurpose::Callback | TokenPurpose::PersistentCallback => b'c',
        TokenPurpose::Tools => b't',
    }
}

fn purpose_prefix(purpose: TokenPurpose) -> &'static str {
    match purpose {
        TokenPurpose::Callback | TokenPurpose::PersistentCallback => "tok_",
        TokenPurpose::Tools => "mcp_",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> DeliveryClaims {
        DeliveryClaims::new(
            ChannelId(7),
            MemberId(-3),
            4,
            1,
            UnixMicros(1_700_000_000_000_000),
        )
    }

    //
    #[test]
    fn a_token_is_read_as_it_was_issued_and_only_with_its_key() {
        let (key, other) = (SealKey::from_key(&[7; 32]), SealKey::from_key(&[8; 32]));
        for purpose in [TokenPurpose::Callback, TokenPurpose::Tools] {
            let claims = claims();
            let token = claims.issue_token(&key, purpose);
            assert_eq!(
                DeliveryClaims::read_token(&key, token.expose()),
                Some((purpose, claims))
            );
            assert_eq!(DeliveryClaims::read_token(&other, token.expose()), None);
        }
    }

    //
    #[test]
    fn a_token_that_was_changed_anywhere_is_not_one() {
        let key = SealKey::from_key(&[7; 32]);
        let token = claims().issue_token(&key, TokenPurpose::Callback);
        let text = token.expose();
        for at in 0..text.len() {
            let mut changed = text.as_bytes().to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(DeliveryClaims::read_token(&key, &changed), None, "{at}");
        }
        let as_tools = text.replacen("tok_", "mcp_", 1);
        for refused in [
            &as_tools,
            &text[..text.len() - 1],
            &format!("{text}A"),
            "tok_",
            "",
        ] {
            assert_eq!(DeliveryClaims::read_token(&key, refused), None, "{refused}");
        }
    }

    //
    #[test]
    fn two_deliveries_of_the_same_moment_have_different_tokens() {
        let key = SealKey::from_key(&[7; 32]);
        let issue = || claims().issue_token(&key, TokenPurpose::Callback);
        assert_ne!(issue().expose(), issue().expose());
    }
}
