//! The URL fields of request bodies: endpoints, callbacks and connection strings.

use crate::{Error, Result, json::JsonFields, limits};

/// An absolute http or https URL without user information. The hub checks the address it resolves to, not this function.
pub(crate) fn parse_endpoint(fields: &mut JsonFields, key: &str) -> Result<Option<String>> {
    let Some(text) = fields.optional_string(key)? else {
        return Ok(None);
    };
    let url_error = || Error::validation(format!("{key} must be an absolute http or https URL"));
    if text.len() > limits::URL_CHARS {
        return Err(Error::validation(format!(
            "{key} is longer than {} characters",
            limits::URL_CHARS
        )));
    }
    let url = match url::Url::parse(&text) {
        Ok(url) => url,
        // The jobs document prints `https://agent-host:port/jobs`, so that text is accepted although no post can reach it.
        Err(url::ParseError::InvalidPort)
            if key == "api_endpoint" && !text.contains('@') && text.starts_with("http") =>
        {
            return Ok(Some(text));
        }
        Err(_) => return Err(url_error()),
    };
    let is_plain_url = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none();
    if is_plain_url {
        Ok(Some(text))
    } else {
        Err(url_error())
    }
}
