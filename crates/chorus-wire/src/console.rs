//! The request that exchanges a console link for a session.

use crate::contract::{self, characters};
use crate::{Result, wire_object};

/// A link token has 35 characters; a longer text is none.
const LINK_TOKEN_CHARS: usize = 64;

wire_object! {
    /// A console link to exchange for a session.
    ConsoleSignIn, refuses unknown, example r#"{"link_token": "cl_00000000000000000000000000000000"}"# => {
        /// The token in the fragment of the link.
        required link_token: String = characters(1, LINK_TOKEN_CHARS);
    }
}

impl ConsoleSignIn {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}
