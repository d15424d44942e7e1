//! Reads secret URLs from a file or standard input, so that they do not get into the shell's history.

use crate::fail::Fail;
use chorus_wire::secret::Secret;
use std::io::Read;

/// The URL that an argument names: `-` is standard input, `@FILE` a file, `http…` the URL itself; `None` for any other
/// argument.
pub fn read_url(arg: &str) -> Result<Option<Secret>, Fail> {
    let text = match arg.strip_prefix('@') {
        Some(file) => read_file(file)?,
        None if arg == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Fail::usage_error(format!("standard input: {e}")))?;
            text
        }
        None if is_url(arg) => arg.to_owned(),
        None => return Ok(None),
    };
    let text = text.trim();
    // The message does not repeat the text: it may be a secret with a typing error.
    if is_url(text) {
        Ok(Some(Secret::new(text)))
    } else {
        Err(Fail::usage_error(
            "what was read there is no http or https URL",
        ))
    }
}

fn read_file(file: &str) -> Result<String, Fail> {
    std::fs::read_to_string(file).map_err(|e| Fail::usage_error(format!("{file}: {e}")))
}

/// Whether the text is one http or https URL without spaces.
pub fn is_url(arg: &str) -> bool {
    (arg.starts_with("http://") || arg.starts_with("https://"))
        && !arg.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_only_starts_with_a_url_is_no_url() {
        assert!(is_url("https://hub.example/inbox/sk_1"));
        for text in ["https://hub.example is down", "bob@chorus", "", "ftp://x"] {
            assert!(!is_url(text), "{text}");
        }
    }

    #[test]
    fn an_error_never_repeats_the_content_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("callback");
        std::fs::write(&file, "https://hub.example/tok_1\n").unwrap();
        let arg = format!("@{}", file.display());
        assert_eq!(
            read_url(&arg).unwrap().unwrap().expose(),
            "https://hub.example/tok_1"
        );
        std::fs::write(&file, "tok_1").unwrap();
        assert!(!format!("{:?}", read_url(&arg).unwrap_err()).contains("tok_1"));
    }
}
