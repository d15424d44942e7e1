//! HTML pages: everything is escaped, and the policy allows no script and no external resource (failure 7, R-74).

use crate::http::reply;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

const STYLE: &str = include_str!("../../assets/page.css");

/// Escapes text for an element and for a quoted attribute.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A page with the hub's style; `title` is escaped here, `body` is HTML already.
pub fn render_page(lang: &str, title: &str, body: &str) -> Response {
    let title = escape_html(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"{lang}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    );
    let mut response = reply::text_response(StatusCode::OK, "text/html; charset=utf-8", html);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        content_security_policy().clone(),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Allows the style above by its hash; injected styles and scripts have no effect.
fn content_security_policy() -> &'static HeaderValue {
    static POLICY: OnceLock<HeaderValue> = OnceLock::new();
    POLICY.get_or_init(|| {
        let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Failure 7
    #[test]
    fn every_character_with_a_meaning_in_html_is_escaped() {
        let escaped = escape_html("<script>alert(\"1\")</script>&'x'");
        assert_eq!(
            escaped,
            "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;x&#39;"
        );
    }

    #[test]
    fn a_page_allows_only_its_own_style() {
        let response = render_page("en", "<t>", "<p>x</p>");
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"));
    }
}
