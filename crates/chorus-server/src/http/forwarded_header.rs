//! Parses `Forwarded` (RFC 7239) and `X-Forwarded-For` into the hops that a request passed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Parses the hops of one header line, as written. A hop is `None` when it names no address; the result is `None` when the
/// line is malformed.
pub type HopParser = fn(&str) -> Option<Vec<Option<String>>>;

/// `X-Forwarded-For`: addresses separated by commas.
pub fn parse_x_forwarded_for(line: &str) -> Option<Vec<Option<String>>> {
    Some(
        line.split(',')
            .map(|hop| Some(hop.trim().to_owned()))
            .collect(),
    )
}

/// `Forwarded` (RFC 7239): hops separated by commas, pairs by semicolons; values may be quoted.
pub fn parse_forwarded(line: &str) -> Option<Vec<Option<String>>> {
    Some(
        split_unquoted(line, ',')?
            .into_iter()
            .map(parse_for_pair)
            .collect(),
    )
}

/// The value of the only `for=` of a hop.
fn parse_for_pair(hop: &str) -> Option<String> {
    let mut found = None;
    for pair in split_unquoted(hop, ';')?
        .into_iter()
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=')?;
        if name.eq_ignore_ascii_case("for") && found.replace(unquote(value)?).is_some() {
            return None;
        }
    }
    found
}

/// Splits at a separator outside quotes; `None` when a quote is not closed.
fn split_unquoted(text: &str, separator: char) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    let mut escaped = false;
    for (index, symbol) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if quoted && symbol == '\\' {
            escaped = true;
        } else if symbol == '"' {
            quoted = !quoted;
        } else if symbol == separator && !quoted {
            parts.push(&text[start..index]);
            start = index + symbol.len_utf8();
        }
    }
    parts.push(&text[start..]);
    (!quoted).then_some(parts)
}

fn unquote(value: &str) -> Option<String> {
    let Some(inside) = value.strip_prefix('"') else {
        return Some(value.to_owned());
    };
    let mut text = String::new();
    let mut symbols = inside.strip_suffix('"')?.chars();
    while let Some(symbol) = symbols.next() {
        text.push(if symbol == '\\' {
            symbols.next()?
        } else {
            symbol
        });
    }
    Some(text)
}

/// Parses an address with or without a port. `unknown` and obfuscated identifiers (`_proxy7`) give `None`.
pub fn parse_node(text: &str) -> Option<IpAddr> {
    if let Some(inside) = text.strip_prefix('[') {
        let (ip, rest) = inside.split_once(']')?;
        let is_valid_rest = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return ip
            .parse::<Ipv6Addr>()
            .ok()
            .filter(|_| is_valid_rest)
            .map(|ip| IpAddr::V6(ip).to_canonical());
    }
    match text.split_once(':') {
        Some((ip, port)) if is_port(port) => ip.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        Some(_) | None => text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical()),
    }
}

/// A port number, or an obfuscated port such as `_hidden`.
fn is_port(text: &str) -> bool {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let is_obfuscated_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    digits
        || text
            .strip_prefix('_')
            .is_some_and(|name| !name.is_empty() && name.bytes().all(is_obfuscated_byte))
}
