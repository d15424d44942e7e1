//! The address of `chorus serve --listen`, in the forms that people type.

use serde::{Deserialize, Deserializer};
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// `127.0.0.1:3001`, `[::1]:3001`, `localhost:3001`, `:3001` or `3001`. Without an address it is the loopback: a hub that other
/// machines can reach is asked for with 0.0.0.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let port = text
            .strip_prefix("localhost:")
            .or_else(|| text.strip_prefix(':'))
            .unwrap_or(text);
        let port: u16 = port
            .parse()
            .map_err(|_| "an address looks like 127.0.0.1:3001, localhost:3001 or 3001")?;
        Ok(Self(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
    }
}

/// A text, or in TOML also a number.
impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "an address or a port")]
        enum ListenText {
            Port(u16),
            Address(String),
        }
        let text = match ListenText::deserialize(from)? {
            ListenText::Port(port) => port.to_string(),
            ListenText::Address(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}
