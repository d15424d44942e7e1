//! URLs that are secrets, read so that they need not stand in a shell's history.

use crate::fail::Fail;
use chorus_wire::secret::Secret;
use std::io::Read;

/// `-` is standard input, `@FILE` a file, `http…` the URL itself; anything else is no URL.
pub fn read_url(word: &str) -> Result<Option<Secret>, Fail> {
    let text = match word.strip_prefix('@') {
        Some(file) => read_file(file)?,
        None if word == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Fail::usage_error(format!("standard input: {e}")))?;
            text
        }
        None if is_url(word) => word.to_owned(),
        None => return Ok(None),
    };
    let text = text.trim();
    // Nothing of it in the message: it may be a secret with a letter too many.
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

/// One word that begins like a URL.
pub fn is_url(word: &str) -> bool {
    (word.starts_with("http://") || word.starts_with("https://"))
        && !word.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_only_begins_with_a_url_is_none() {
        assert!(is_url("https://hub.example/inbox/sk_1"));
        for text in ["https://hub.example is down", "bob@chorus", "", "ftp://x"] {
            assert!(!is_url(text), "{text}");
        }
    }

    #[test]
    fn what_is_read_from_a_file_is_never_repeated_in_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("callback");
        std::fs::write(&file, "https://hub.example/tok_1\n").unwrap();
        let word = format!("@{}", file.display());
        assert_eq!(
            read_url(&word).unwrap().unwrap().expose(),
            "https://hub.example/tok_1"
        );
        std::fs::write(&file, "tok_1").unwrap();
        assert!(!format!("{:?}", read_url(&word).unwrap_err()).contains("tok_1"));
    }
}
