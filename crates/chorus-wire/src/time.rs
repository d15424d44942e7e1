//! Timestamps in whole microseconds, and their two printed forms.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, time::Duration};

/// Microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMicros(pub i64);

/// 0000-01-01T00:00:00Z
const YEAR_ZERO: i64 = -62_167_219_200_000_000;

impl UnixMicros {
    pub const fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.as_micros() as i64))
    }

    pub const fn saturating_sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by.as_micros() as i64))
    }

    /// `…T10:00:00.000Z`, the form of `metadata.timestamp` (TRN-40).
    pub fn to_rfc3339_millis(self) -> String {
        self.to_rfc3339(3)
    }

    /// RFC 3339 in UTC with a fixed number of decimals, so that texts sort like their timestamps.
    fn to_rfc3339(self, digits: usize) -> String {
        let at = jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let utc = jiff::tz::Offset::UTC.to_datetime(at);
        let mut out = String::with_capacity(27);
        let micros = self.0.rem_euclid(1_000_000) as u32;
        push_padded(&mut out, utc.year().unsigned_abs().into(), 4);
        for (separator, value) in [
            ('-', utc.month()),
            ('-', utc.day()),
            ('T', utc.hour()),
            (':', utc.minute()),
            (':', utc.second()),
        ] {
            out.push(separator);
            push_padded(&mut out, value.unsigned_abs().into(), 2);
        }
        out.push('.');
        push_padded(
            &mut out,
            if digits == 3 { micros / 1_000 } else { micros },
            digits,
        );
        out.push('Z');
        out
    }

    /// Parses RFC 3339 and rounds up to the microsecond, so that `>=` means the same as on the unrounded time.
    pub fn parse(text: &str) -> Option<Self> {
        // jiff also accepts other formats, so the form is checked first.
        if !is_rfc3339(text.as_bytes()) {
            return None;
        }
        let at: jiff::Timestamp = text.parse().ok()?;
        let round_up = i64::from(at.as_nanosecond().rem_euclid(1_000) != 0);
        let at = Self(at.as_nanosecond().div_euclid(1_000) as i64 + round_up);
        // An offset or the rounding can leave the years 0 to 9999. There the text needs a sign and sorts wrongly.
        (YEAR_ZERO <= at.0 && jiff::Timestamp::from_microsecond(at.0).is_ok()).then_some(at)
    }
}

/// Checks only the form. The parser checks whether such a day and minute exist.
fn is_rfc3339(text: &[u8]) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let Some((head, tail)) = text.split_at_checked(FORM.len()) else {
        return false;
    };
    let is_date_time = FORM.iter().zip(head).all(|(form, byte)| match form {
        b'0' => byte.is_ascii_digit(),
        separator => byte.eq_ignore_ascii_case(separator),
    });
    let zone = match tail {
        [b'.', fraction @ ..] => {
            let digits = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                &[]
            } else {
                &fraction[digits..]
            }
        }
        whole => whole,
    };
    let is_zone = match zone {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', hour @ .., b':', minute_tens, minute_ones] => {
            matches!(hour, [b'0' | b'1', b'0'..=b'9'] | [b'2', b'0'..=b'3'])
                && minute_tens.is_ascii_digit()
                && minute_ones.is_ascii_digit()
        }
        _ => false,
    };
    is_date_time && is_zone
}

/// The lowest `width` decimal digits of `value`, with leading zeros.
fn push_padded(out: &mut String, value: u32, width: usize) {
    for exponent in (0..width as u32).rev() {
        out.push(char::from(b'0' + (value / 10u32.pow(exponent) % 10) as u8));
    }
}

/// Always six decimals: clients compare timestamps as text (lesson 9).
impl fmt::Display for UnixMicros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339(6))
    }
}

impl Serialize for UnixMicros {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_rfc3339(6))
    }
}

impl<'de> Deserialize<'de> for UnixMicros {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 instant"))
    }
}
