//! Parses JSON (RFC 8259) into a tree that borrows from the text.
//!
//! It differs from `serde_json` in what requests need: duplicate keys are refused, depth is bounded, numbers keep their
//! digits, and every value knows the text it was written as, so that a part of a body can be forwarded byte for byte.

use super::fault::ContractFault;
use super::json_tree::{JsonNode, JsonObject, JsonValue};
use crate::limits;
use std::borrow::Cow;
use std::collections::HashSet;

pub struct JsonParser<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    /// How many objects and arrays are open.
    depth: usize,
}

impl<'a> JsonParser<'a> {
    /// Parses one value and nothing after it.
    pub fn parse_text(text: &'a str) -> Result<JsonNode<'a>, ContractFault> {
        let mut parser = Self {
            text,
            at: 0,
            depth: 0,
        };
        parser.skip_blanks();
        let node = parser.parse_node()?;
        parser.skip_blanks();
        if parser.at < text.len() {
            return Err(parser.syntax_error("nothing more was expected"));
        }
        Ok(node)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn syntax_error(&self, reason: &str) -> ContractFault {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        ContractFault::invalid_json(format!("{reason} at line {line} column {column}"))
    }

    fn parse_node(&mut self) -> Result<JsonNode<'a>, ContractFault> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.parse_object()?,
            Some(b'[') => self.parse_array()?,
            Some(b'"') => JsonValue::Text(self.parse_string()?),
            Some(b'-' | b'0'..=b'9') => self.parse_number()?,
            Some(b't') => self.parse_word("true", JsonValue::Bool(true))?,
            Some(b'f') => self.parse_word("false", JsonValue::Bool(false))?,
            Some(b'n') => self.parse_word("null", JsonValue::Null)?,
            Some(_) => return Err(self.syntax_error("a value was expected")),
            None => return Err(self.syntax_error("it ends too early")),
        };
        let text = &self.text[start..self.at];
        Ok(JsonNode { text, value })
    }

    fn parse_word(
        &mut self,
        word: &str,
        value: JsonValue<'a>,
    ) -> Result<JsonValue<'a>, ContractFault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.syntax_error("a value was expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn parse_number(&mut self) -> Result<JsonValue<'a>, ContractFault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first_digit = self.peek();
        let whole_digits = self.skip_digits();
        if whole_digits == 0 || (first_digit == Some(b'0') && whole_digits > 1) {
            return Err(self.syntax_error("that is not a number"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.skip_digits() == 0 {
                return Err(self.syntax_error("that is not a number"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.skip_digits() == 0 {
                return Err(self.syntax_error("that is not a number"));
            }
            let is_finite = |digits: &str| digits.parse().is_ok_and(f64::is_finite);
            if !is_finite(&self.text[start..self.at]) {
                return Err(self.syntax_error("the number is out of range"));
            }
        }
        Ok(JsonValue::Number)
    }

    fn parse_string(&mut self) -> Result<Cow<'a, str>, ContractFault> {
        self.at += 1;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let Some(plain) = find_special_byte(rest) else {
            self.at = self.text.len();
            return Err(self.syntax_error("it ends inside a string"));
        };
        self.at += plain;
        let text = &self.text[start..self.at];
        match rest[plain] {
            b'"' => {
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            b'\\' => self.parse_escaped_string(text.to_owned()).map(Cow::Owned),
            _ => Err(self.syntax_error("a control character is not escaped")),
        }
    }

    /// The rest of a string from its first backslash on; `text` is what came before.
    fn parse_escaped_string(&mut self, mut text: String) -> Result<String, ContractFault> {
        loop {
            let rest = &self.text[self.at..];
            let plain = find_special_byte(rest.as_bytes())
                .ok_or_else(|| self.syntax_error("it ends inside a string"))?;
            text.push_str(&rest[..plain]);
            self.at += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => {
                    self.at += 1;
                    text.push(self.parse_escape()?);
                }
                _ => return Err(self.syntax_error("a control character is not escaped")),
            }
        }
    }

    fn parse_escape(&mut self) -> Result<char, ContractFault> {
        let escape = self
            .peek()
            .ok_or_else(|| self.syntax_error("it ends inside a string"))?;
        self.at += 1;
        Ok(match escape {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.parse_unicode_escape(),
            _ => return Err(self.syntax_error("there is no such escape")),
        })
    }

    fn parse_unicode_escape(&mut self) -> Result<char, ContractFault> {
        let high = self.parse_hex4()?;
        let code = match high {
            0xd800..=0xdbff if self.text[self.at..].starts_with("\\u") => {
                self.at += 2;
                match self.parse_hex4()? {
                    low @ 0xdc00..=0xdfff => 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                    _ => return Err(self.syntax_error("half of a surrogate pair is missing")),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.syntax_error("half of a surrogate pair is missing"))
    }

    fn parse_hex4(&mut self) -> Result<u32, ContractFault> {
        let digits = self.text.get(self.at..self.at + 4);
        let code = digits
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.syntax_error("\\u needs four hex digits"))?;
        self.at += 4;
        Ok(code)
    }

    fn open_container(&mut self) -> Result<(), ContractFault> {
        if self.depth == limits::JSON_DEPTH {
            return Err(ContractFault::invalid_json(format!(
                "it is nested deeper than {} levels",
                limits::JSON_DEPTH
            )));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_blanks();
        Ok(())
    }

    /// Whether another item follows; otherwise the container is closed.
    fn continue_container(&mut self, close: u8) -> Result<bool, ContractFault> {
        self.skip_blanks();
        let byte = self.peek();
        if byte == Some(b',') {
            self.at += 1;
            self.skip_blanks();
            return Ok(true);
        }
        if byte == Some(close) {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        let reason = match byte {
            Some(_) => format!("a comma or {} was expected", char::from(close)),
            None => "it ends too early".to_owned(),
        };
        Err(self.syntax_error(&reason))
    }

    fn parse_array(&mut self) -> Result<JsonValue<'a>, ContractFault> {
        self.open_container()?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.depth -= 1;
            return Ok(JsonValue::Array(items));
        }
        loop {
            let item = self
                .parse_node()
                .map_err(|fault| fault.inside_item(items.len()))?;
            items.push(item);
            if !self.continue_container(b']')? {
                return Ok(JsonValue::Array(items));
            }
        }
    }

    fn parse_object(&mut self) -> Result<JsonValue<'a>, ContractFault> {
        self.open_container()?;
        let mut fields = Vec::with_capacity(8);
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.depth -= 1;
            return Ok(JsonValue::Object(JsonObject(fields)));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.syntax_error("a key was expected"));
            }
            let key = self.parse_string()?;
            self.skip_blanks();
            if self.peek() != Some(b':') {
                return Err(self.syntax_error("a colon was expected"));
            }
            self.at += 1;
            self.skip_blanks();
            let node = self.parse_node().map_err(|fault| fault.inside(&key))?;
            fields.push((key, node));
            if !self.continue_container(b'}')? {
                break;
            }
        }
        match find_duplicate_key(&fields) {
            Some(key) => Err(ContractFault::duplicate_key(key)),
            None => Ok(JsonValue::Object(JsonObject(fields))),
        }
    }
}

/// The first byte that ends a string, begins an escape, or may not be in a string. Most bytes of a body are in strings, so
/// it looks at eight at once.
fn find_special_byte(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    // The high bit of the first byte that is zero, and of none before it.
    let mark_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quotes = mark_zero(word ^ (ONES * u64::from(b'"')));
        let backslashes = mark_zero(word ^ (ONES * u64::from(b'\\')));
        let controls = word.wrapping_sub(ONES * 0x20) & !word;
        let marks = (quotes | backslashes | controls) & HIGH_BITS;
        if marks != 0 {
            return Some(index * 8 + marks.trailing_zeros() as usize / 8);
        }
    }
    let at = rest
        .iter()
        .position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f))?;
    Some(words.len() * 8 + at)
}

/// The first duplicate key: two parsers would read such an object differently.
fn find_duplicate_key<'a>(fields: &'a [(Cow<'_, str>, JsonNode<'_>)]) -> Option<&'a str> {
    // Comparing all pairs is fastest for an ordinary object, but quadratic: an attacker could send thousands of keys.
    if fields.len() <= 32 {
        // Keys of different lengths or first bytes need no comparison.
        let mut seen_marks = 0u64;
        let is_mark_new = |(key, _): &(Cow<'_, str>, JsonNode<'_>)| {
            let first_byte = key.as_bytes().first().copied().unwrap_or_default();
            let mark = 1u64 << ((key.len() * 5 + usize::from(first_byte)) % 64);
            let is_new = seen_marks & mark == 0;
            seen_marks |= mark;
            is_new
        };
        if fields.iter().all(is_mark_new) {
            return None;
        }
        let is_duplicate = |index: usize| {
            fields[..index]
                .iter()
                .any(|(key, _)| *key == fields[index].0)
        };
        return (1..fields.len())
            .find(|index| is_duplicate(*index))
            .map(|index| &*fields[index].0);
    }
    let mut seen = HashSet::with_capacity(fields.len());
    fields
        .iter()
        .find(|(key, _)| !seen.insert(&**key))
        .map(|(key, _)| &**key)
}
