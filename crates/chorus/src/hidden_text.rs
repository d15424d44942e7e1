//! Removes what a reader cannot see from text of others: control, bidirectional, zero-width and tag characters (SKL-17).
//!
//! A terminal obeys control characters, and a model reads characters that its user does not see. Both get cleaned text.

/// The character that stands for removed ones, so that a reader sees that the text had more.
const REMOVED_MARK: char = '\u{fffd}';

/// What to do with one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharClass {
    Visible,
    /// Only a hint for layout, such as a soft hyphen: removed without a mark.
    LayoutHint,
    /// A joiner or variation selector: text in many scripts and emoji need one between or after visible characters.
    Modifier,
    /// Obeyed by terminals, or read by models and invisible to people.
    Hidden,
}

fn classify_char(c: char) -> CharClass {
    match c {
        '\n' | '\t' => CharClass::Visible,
        '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => CharClass::LayoutHint,
        '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            CharClass::Modifier
        }
        c if c.is_control() => CharClass::Hidden,
        // Default_Ignorable_Code_Point of Unicode, the line separators, and the annotation characters.
        '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2061}'..='\u{206f}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => CharClass::Hidden,
        _ => CharClass::Visible,
    }
}

/// Whether a modifier changes how `before` looks. More than one in a row, or one in plain ASCII, can only hide data.
fn has_effect(modifier: char, before: Option<char>, after: Option<char>) -> bool {
    let Some(before) = before.filter(|c| !c.is_whitespace() && *c != REMOVED_MARK) else {
        return false;
    };
    match modifier {
        // Emoji sequences, Arabic, Persian and the scripts of India.
        '\u{200c}' | '\u{200d}' => {
            let follows = after.is_some_and(|after| {
                classify_char(after) == CharClass::Visible
                    && !after.is_ascii()
                    && !after.is_whitespace()
            });
            !before.is_ascii() && follows
        }
        // An emoji that is shown in colour; also the keycaps.
        '\u{fe0e}' | '\u{fe0f}' => !before.is_ascii() || matches!(before, '0'..='9' | '#' | '*'),
        // Variants of ideographs.
        _ => {
            matches!(before, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        }
    }
}

/// The text without hidden characters. A run of them becomes one U+FFFD; `\r\n` stays, because files have it.
pub fn remove_hidden(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // The last character that was kept, unless it was itself a modifier.
    let mut base = None;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let kept = match classify_char(c) {
            CharClass::Visible => Some(c),
            CharClass::LayoutHint => None,
            CharClass::Modifier if has_effect(c, base, next) => {
                cleaned.push(c);
                // A colour selector may precede a joiner: 🏳️‍🌈.
                base = base.filter(|_| c == '\u{fe0f}' && next == Some('\u{200d}'));
                continue;
            }
            CharClass::Modifier => {
                base = None;
                None
            }
            CharClass::Hidden if c == '\r' && next == Some('\n') => Some(c),
            CharClass::Hidden => (!cleaned.ends_with(REMOVED_MARK)).then_some(REMOVED_MARK),
        };
        if let Some(kept) = kept {
            cleaned.push(kept);
            base = Some(kept);
        }
    }
    cleaned
}

/// Writes every character that [`remove_hidden`] looks at as `\u` escapes. In valid JSON such characters stand only in
/// strings, so the result is JSON with the same value.
pub fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        // Raw C0 characters in JSON are white space between its tokens.
        if c < ' ' || classify_char(c) == CharClass::Visible {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

/// Cleans every text in a JSON value, also the names of fields.
pub fn clean_value(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => *text = remove_hidden(text),
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(fields) => {
            let entries = std::mem::take(fields).into_iter();
            fields.extend(entries.map(|(name, mut value)| {
                clean_value(&mut value);
                (remove_hidden(&name), value)
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Mostly characters that hide something, between letters of several scripts.
    fn arbitrary_text() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            proptest::char::range('\0', '\u{ff}'),
            proptest::char::range('\u{2000}', '\u{2070}'),
            proptest::char::range('\u{e0000}', '\u{e01ff}'),
            prop::sample::select(vec![
                '\n', 'a', 'ب', 'क', '葛', '👩', '\u{fe0f}', '\u{200d}'
            ]),
        ];
        prop::collection::vec(character, 0..40).prop_map(String::from_iter)
    }

    proptest! {
        // SKL-17
        #[test]
        fn cleaned_text_has_nothing_that_a_reader_cannot_see(text in arbitrary_text()) {
            let cleaned = remove_hidden(&text);
            let chars: Vec<char> = cleaned.chars().collect();
            for (at, c) in chars.iter().enumerate() {
                match classify_char(*c) {
                    CharClass::Visible => {}
                    CharClass::LayoutHint => prop_assert!(false, "{c:?} in {cleaned:?}"),
                    CharClass::Hidden => prop_assert!(*c == '\r' && chars.get(at + 1) == Some(&'\n')),
                    CharClass::Modifier => {
                        let before = at.checked_sub(1).and_then(|at| chars.get(at));
                        let is_pair = (before, *c) == (Some(&'\u{fe0f}'), '\u{200d}');
                        prop_assert!(is_pair || before.is_some_and(|c| classify_char(*c) == CharClass::Visible));
                    }
                }
            }
            prop_assert_eq!(remove_hidden(&cleaned), cleaned.clone());
            let is_plain = |c: &char| classify_char(*c) == CharClass::Visible;
            let seen: String = text.chars().filter(is_plain).filter(|c| *c != REMOVED_MARK).collect();
            let kept: String = chars.iter().copied().filter(is_plain).filter(|c| *c != REMOVED_MARK).collect();
            prop_assert_eq!(kept, seen, "what can be seen stays");
        }

        #[test]
        fn escaped_json_has_the_same_value_and_no_hidden_character(text in arbitrary_text()) {
            let json = serde_json::json!({ "text": text, text.clone(): 1 });
            for printed in [json.to_string(), serde_json::to_string_pretty(&json).unwrap()] {
                let escaped = escape_json(&printed);
                prop_assert!(escaped.chars().all(|c| c == '\n' || classify_char(c) == CharClass::Visible));
                let read: serde_json::Value = serde_json::from_str(&escaped).unwrap();
                prop_assert_eq!(&read, &json);
            }
        }
    }

    #[test]
    fn scripts_and_emoji_that_need_joiners_keep_them() {
        for text in [
            "grüße\t你好 👋",
            "می‌خواهم",
            "क्‍ष",
            "👩‍💻 🏳️‍🌈 ❤️ 1️⃣",
            "葛\u{e0100}飾",
            "a\r\nb",
        ] {
            assert_eq!(remove_hidden(text), text);
        }
    }

    #[test]
    fn hidden_letters_leave_one_mark() {
        let hidden: String = "run this"
            .chars()
            .map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap())
            .collect();
        assert_eq!(remove_hidden(&format!("hello{hidden}!")), "hello\u{fffd}!");
        let bytes: String = (0..8)
            .map(|n| char::from_u32(0xe0100 + n).unwrap())
            .collect();
        assert_eq!(remove_hidden(&format!("hello{bytes}😀{bytes}")), "hello😀");
        assert_eq!(remove_hidden("pass\u{ad}word\u{200b}s"), "passwords");
    }
}
