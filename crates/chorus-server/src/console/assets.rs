//! The answers with the console's files, and its security headers (failure 7, R-74).

use super::embedded_files::{self, EmbeddedFile};
use crate::http::{negotiate, reply};
use crate::pages::html::escape_html;
use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

pub const INDEX_FILE: &str = "index.html";

/// No external and no inline resources, no framing. Trusted types forbid making markup from strings, so that a mistake in the
/// page cannot become an injection.
const CONSOLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The file of this name, or 304 when the client's copy is current. Names carry no version, so clients revalidate on every use.
pub fn file_response(headers: &HeaderMap, name: &str) -> Option<Response> {
    let file = embedded_files::find_file(name)?;
    let is_compressed = negotiate::accepts_gzip(headers);
    let etag = compute_etag(file, is_compressed);
    let client_etags = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let is_unchanged = client_etags
        .flat_map(|value| value.split(','))
        .any(|candidate| {
            let candidate = candidate.trim();
            candidate == "*" || candidate.trim_start_matches("W/") == etag
        });
    let mut response = if is_unchanged {
        let mut unchanged = Response::new(Body::empty());
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else if is_compressed {
        reply::text_response(StatusCode::OK, media_type(name), file.compressed.clone())
    } else {
        reply::text_response(StatusCode::OK, media_type(name), file.decompress())
    };
    let out = response.headers_mut();
    if is_compressed && !is_unchanged {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    out.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        out.insert(header::ETAG, etag);
    }
    add_security_headers(out);
    Some(response)
}

/// A page with the console's style; `title` is escaped here, `body` is HTML already.
pub fn render_console_page(title: &str, script: &str, body: &str) -> Response {
    let title = escape_html(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"/console/icon.svg\" type=\"image/svg+xml\">\n\
         <link rel=\"stylesheet\" href=\"/console/style.css\">\n\
         <script type=\"module\" src=\"/console/{script}\"></script>\n</head>\n<body>\n\
         <header class=\"top\"><a class=\"brand\" href=\"/\"><img src=\"/console/icon.svg\" alt=\"\" width=\"26\" \
         height=\"26\"><span>Chorus</span></a></header>\n{body}</body>\n</html>\n"
    );
    let mut response = reply::text_response(StatusCode::OK, "text/html; charset=utf-8", html);
    add_security_headers(response.headers_mut());
    response
}

fn add_security_headers(headers: &mut HeaderMap) {
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONSOLE_POLICY),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(
        "cross-origin-opener-policy",
        HeaderValue::from_static("same-origin"),
    );
}

fn compute_etag(file: &EmbeddedFile, is_compressed: bool) -> String {
    let encoding = if is_compressed { "-gzip" } else { "" };
    format!("\"{}{encoding}\"", file.digits)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some(_) | None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get_index(tag: Option<&str>) -> Response {
        let tag = tag.map(|tag| (header::IF_NONE_MATCH, HeaderValue::from_str(tag).unwrap()));
        file_response(&HeaderMap::from_iter(tag), INDEX_FILE).unwrap()
    }

    #[test]
    fn a_current_copy_is_answered_with_304() {
        let first = get_index(None);
        assert_eq!(first.status(), 200);
        let tag = first.headers()[header::ETAG].to_str().unwrap();
        for same in [tag.to_owned(), format!("\"other\", W/{tag}"), "*".into()] {
            assert_eq!(get_index(Some(&same)).status(), 304, "{same}");
        }
        assert_eq!(get_index(Some("\"other\"")).status(), 200);
    }

    /// Failure 7
    #[test]
    fn no_file_of_the_page_has_script_or_style_within_markup() {
        for (name, file) in embedded_files::list_files() {
            let text = String::from_utf8(file.decompress()).unwrap();
            assert_ne!(media_type(name), "application/octet-stream", "{name}");
            for inline in [
                "<style",
                " style=",
                "onclick=",
                "onload=",
                "javascript:",
                "innerHTML",
                "outerHTML",
                "eval(",
            ] {
                assert!(!text.contains(inline), "{name} has {inline}");
            }
            for url in text
                .split("http")
                .skip(1)
                .filter(|rest| rest.starts_with("://") || rest.starts_with("s://"))
            {
                assert!(
                    url.starts_with("://www.w3.org/2000/svg"),
                    "{name} has an external URL: {}",
                    &url[..20]
                );
            }
        }
    }

    #[test]
    fn a_client_that_takes_gzip_gets_it_and_a_tag_of_its_own() {
        let gzip = (
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("br, gzip"),
        );
        let response = file_response(&HeaderMap::from_iter([gzip]), INDEX_FILE).unwrap();
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        let plain = get_index(None);
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        assert_ne!(
            response.headers()[header::ETAG],
            plain.headers()[header::ETAG]
        );
        for response in [response, plain] {
            assert_eq!(response.headers()[header::VARY], "accept-encoding");
        }
        let file = embedded_files::find_file(INDEX_FILE).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../console/index.html");
        assert_eq!(file.decompress(), std::fs::read(source).unwrap());
    }

    /// docs/console.md promises these sizes: what a browser fetches, and what it has to parse.
    #[test]
    fn the_whole_page_is_smaller_than_150_kilobytes_on_the_wire() {
        let (mut fetched, mut parsed) = (0, 0);
        for (_, file) in embedded_files::list_files() {
            fetched += file.compressed.len();
            parsed += file.decompress().len();
        }
        assert!(fetched < 150 * 1000, "{fetched}");
        assert!(parsed < 400 * 1000, "{parsed}");
    }
}
