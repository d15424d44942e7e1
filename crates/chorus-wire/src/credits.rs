//! Credits: stored as whole hundredths, printed with two decimals, never a float (R-64, failure 20).

use crate::{Error, Result, limits};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;
use std::{fmt, iter::Sum};
use utoipa::ToSchema;

/// The name of the currency (JOB-18).
pub const CURRENCY: &str = "chorus_credits_v1";

/// An amount or a balance in hundredths. An amount from a client is above zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(value_type = f64, example = 0.10)]
pub struct Credits(i64);

impl Credits {
    pub const ZERO: Self = Self(0);

    pub const fn from_hundredths(hundredths: i64) -> Self {
        Self(hundredths)
    }

    pub const fn to_hundredths(self) -> i64 {
        self.0
    }

    /// The most that one request may name.
    pub const MAX_AMOUNT: Self = Self(limits::CREDITS_AMOUNT_MAX);

    /// Parses an amount from the JSON text: a number above zero with at most two decimals and no exponent.
    pub fn parse(field: &str, text: &str) -> Result<Self> {
        match parse_decimal(text) {
            Some(amount) if amount.is_amount(false) => Ok(amount),
            Some(_) | None => Err(Error::validation(format!(
                "{field} must be a number above 0 with at most two decimals, up to {}",
                Self::MAX_AMOUNT
            ))),
        }
    }

    /// The digits of a JSON number, if it has at most two decimals and no exponent.
    pub fn parse_digits(digits: &str) -> Option<Self> {
        parse_decimal(digits)
    }

    /// Whether a request may name it.
    pub const fn is_amount(self, may_be_zero: bool) -> bool {
        let min = if may_be_zero { 0 } else { 1 };
        min <= self.0 && self.0 <= limits::CREDITS_AMOUNT_MAX
    }

    /// Parses a price from the JSON text: like an amount, but it may be zero.
    pub fn parse_price(field: &str, text: &str) -> Result<Self> {
        match parse_decimal(text) {
            Some(price) if price.0 <= limits::CREDITS_AMOUNT_MAX => Ok(price),
            Some(_) | None => Err(Error::validation(format!(
                "{field} must be a number of at least 0 with at most two decimals, up to {}",
                Self(limits::CREDITS_AMOUNT_MAX)
            ))),
        }
    }

    /// The result is negative if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Digits, with at most two more after a point. `0.100` is refused: a client that sends a third decimal expects a
/// precision that credits do not have.
fn parse_decimal(text: &str) -> Option<Credits> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 2 || whole.len() > 15 {
        return None;
    }
    let hundredths = fraction.parse::<i64>().ok()? * if fraction.len() == 1 { 10 } else { 1 };
    Some(Credits(
        whole
            .parse::<i64>()
            .ok()?
            .checked_mul(100)?
            .checked_add(hundredths)?,
    ))
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let magnitude = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", magnitude / 100, magnitude % 100)
    }
}

impl Sum for Credits {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.map(|amount| amount.0).sum())
    }
}

/// A JSON number with both its decimals: `0.10`.
impl Serialize for Credits {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string())
            .map_err(ser::Error::custom)?
            .serialize(to)
    }
}

/// Parses the printed form, negative amounts included: for clients that read replies, not for requests.
impl<'de> Deserialize<'de> for Credits {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        let (magnitude, sign) = raw
            .get()
            .strip_prefix('-')
            .map_or((raw.get(), 1), |magnitude| (magnitude, -1));
        let credits = parse_decimal(magnitude)
            .ok_or_else(|| de::Error::custom("an amount has at most two decimals"))?;
        Ok(Self(sign * credits.0))
    }
}
