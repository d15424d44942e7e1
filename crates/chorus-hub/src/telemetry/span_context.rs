//! The identity of a span, and its form in the header `traceparent` of W3C Trace Context.

use std::fmt;

/// Which span of which trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// Never zero.
    pub trace_id: u128,
    /// Never zero.
    pub span_id: u64,
    /// The program that began the trace records it.
    pub is_sampled: bool,
}

/// Characters of a header of version 00; later versions may append to it.
const HEADER_CHARS: usize = 55;

impl SpanContext {
    /// Parses `traceparent`. `None` when the header is not valid: then the request begins a trace of its own.
    pub fn parse(header: &str) -> Option<Self> {
        let later_version = match header.as_bytes().get(HEADER_CHARS) {
            None => false,
            Some(b'-') => true,
            Some(_) => return None,
        };
        let mut fields = header.get(..HEADER_CHARS)?.split('-');
        let version = parse_hex(fields.next()?, 2)?;
        let trace_id = parse_hex(fields.next()?, 32)?;
        let span_id = parse_hex(fields.next()?, 16)?;
        let flags = parse_hex(fields.next()?, 2)?;
        let is_known_form = match version {
            0 => !later_version,
            0xff => false,
            _ => true,
        };
        let is_valid = is_known_form && fields.next().is_none() && trace_id > 0 && span_id > 0;
        is_valid.then_some(Self {
            trace_id,
            span_id: span_id as u64,
            is_sampled: flags & 1 == 1,
        })
    }
}

/// The text of `traceparent`.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(
            f,
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        )
    }
}

/// Exactly `digits` lower-case hex digits, as the standard asks.
fn parse_hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(is_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    // OPS-05
    #[test]
    fn a_valid_header_is_read_and_written_again() {
        let context = SpanContext::parse(VALID).unwrap();
        assert_eq!(context.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(context.span_id, 0xb7ad_6b71_6920_3331);
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), VALID);
        let unsampled = VALID.replace("-01", "-00");
        assert!(!SpanContext::parse(&unsampled).unwrap().is_sampled);
        // A later version may have further flags and fields.
        let later = VALID
            .replacen("00", "cc", 1)
            .replace("-01", "-03-what-follows");
        assert!(SpanContext::parse(&later).unwrap().is_sampled);
    }

    // OPS-05
    #[test]
    fn a_header_that_breaks_the_standard_is_none() {
        let zero_trace = format!("00-{:032x}-b7ad6b7169203331-01", 0);
        let zero_span = format!("00-0af7651916cd43dd8448eb211c80319c-{:016x}-01", 0);
        for bad in [
            "",
            "00",
            &zero_trace,
            &zero_span,
            &VALID.to_uppercase(),
            &VALID.replacen("00", "ff", 1),
            &VALID.replace("-01", "-0g"),
            &VALID.replace("-01", ""),
            &format!("{VALID}-more"),
            &format!("{VALID}x"),
            &VALID.replace("0af7", "0äf"),
            &VALID.replace('-', "_"),
        ] {
            assert_eq!(SpanContext::parse(bad), None, "{bad}");
        }
    }
}
