//! Content negotiation by the `Accept` header.

use http::{HeaderMap, header};

/// The quality of `media` in thousandths and the specificity of the range that matched; the most specific range decides
/// (RFC 9110 §12.5.1).
fn media_weight(accept: &str, media: &str) -> (u32, u32) {
    let kind = media.split('/').next().unwrap_or_default();
    let mut best = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let rank = match name.split_once('/') {
            Some(("*", "*")) => 1,
            Some((found, "*")) if found == kind => 2,
            Some(_) if name == media => 3,
            Some(_) | None => continue,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        // A malformed weight counts as 1.
        let quality = quality
            .and_then(|text| text.parse::<f32>().ok())
            .unwrap_or(1.0)
            .clamp(0.0, 1.0);
        if rank > best.0 {
            best = (rank, (quality * 1000.0) as u32);
        }
    }
    (best.1, best.0)
}

fn accept_header(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ACCEPT)?.to_str().ok()
}

/// Whether the client prefers `other` to the route's default. No header, or `*/*`, means the default.
pub fn prefers_media(headers: &HeaderMap, other: &str, default: &str) -> bool {
    accept_header(headers).is_some_and(|accept| {
        let wanted = media_weight(accept, other);
        wanted.0 > 0 && wanted > media_weight(accept, default)
    })
}

/// Whether the header names `media` itself, with a quality above 0.
pub fn is_media_named(headers: &HeaderMap, media: &str) -> bool {
    accept_header(headers).is_some_and(|accept| {
        let matches_media = |range: &str| {
            range
                .split(';')
                .next()
                .is_some_and(|name| name.trim().eq_ignore_ascii_case(media))
        };
        accept.split(',').any(matches_media) && media_weight(accept, media).0 > 0
    })
}

/// Whether the client takes gzip: the header names it, with a quality above 0 (RFC 9110 §12.5.3).
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let Some(accepted) = headers.get(header::ACCEPT_ENCODING) else {
        return false;
    };
    let codings = accepted.to_str().unwrap_or_default().split(',');
    let mut gzip = codings.filter_map(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").unwrap_or_default();
        name.trim()
            .eq_ignore_ascii_case("gzip")
            .then(|| weight.parse::<f32>().is_ok_and(|q| q > 0.0))
    });
    gzip.next().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())])
    }

    /// TRN-61, TRN-62
    #[test]
    fn a_client_that_prefers_json_gets_it_and_a_browser_gets_html() {
        let json = |accept: &str| prefers_media(&headers(accept), "application/json", "text/html");
        assert!(json("application/json"));
        assert!(json("application/json, text/plain, */*"));
        assert!(json("text/html;q=0.5, application/json"));
        assert!(!json(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        ));
        assert!(!json("*/*"));
        assert!(!json("application/json;q=0"));
        assert!(!prefers_media(
            &HeaderMap::new(),
            "application/json",
            "text/html"
        ));
    }

    /// R-29
    #[test]
    fn a_wildcard_does_not_ask_for_a_stream() {
        assert!(is_media_named(
            &headers("text/event-stream"),
            "text/event-stream"
        ));
        assert!(is_media_named(
            &headers("application/json, Text/Event-Stream;q=0.5"),
            "text/event-stream"
        ));
        assert!(!is_media_named(&headers("*/*"), "text/event-stream"));
        assert!(!is_media_named(
            &headers("text/event-stream;q=0"),
            "text/event-stream"
        ));
    }

    #[test]
    fn gzip_is_sent_only_to_clients_that_name_it() {
        let accepts = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            accepts_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]))
        };
        for yes in ["gzip", "gzip, deflate, br", "br;q=1.0, GZIP;q=0.8"] {
            assert!(accepts(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "identity", "gzip;q=x"] {
            assert!(!accepts(no), "{no}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
