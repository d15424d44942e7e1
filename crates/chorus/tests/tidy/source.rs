//! Reads a source file as its three layers: code, texts in quotes, comments. Enough of a lexer to never mistake one for another.

use std::{fmt, fs, path::Path};

pub struct Piece {
    pub line: usize,
    pub text: String,
}

pub struct Source {
    /// From the root of the repository, with forward slashes.
    pub path: String,
    pub text: String,
    /// The text with comments and the insides of quotes taken out; its lines are the file's lines.
    pub code: String,
    pub quotes: Vec<Piece>,
    pub comments: Vec<Piece>,
}

pub struct Fault {
    place: String,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let mut source = Self {
            path: path.into(),
            text: text.into(),
            code: String::new(),
            quotes: vec![],
            comments: vec![],
        };
        if source.is_rust() {
            source.split();
        }
        source
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// What ships: a crate's sources, without the tests inside them.
    pub fn is_product(&self) -> bool {
        self.is_rust() && self.path.contains("/src/")
    }

    pub fn under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    pub fn fault(&self, line: usize, what: impl Into<String>) -> Fault {
        Fault {
            place: format!("{}:{line}", self.path),
            what: what.into(),
        }
    }

    /// The line from which a file holds tests: its first in a tests folder, else the one of `#[cfg(test)]`.
    pub fn tests_from(&self) -> usize {
        if self.path.contains("/tests/") {
            return 1;
        }
        let at = self
            .code
            .lines()
            .position(|line| line.trim_start().starts_with("#[cfg(test)]"));
        at.map_or(usize::MAX, |line| line + 1)
    }

    fn split(&mut self) {
        let chars: Vec<char> = self.text.chars().collect();
        let (mut at, mut line) = (0, 1);
        while at < chars.len() {
            let (end, layer) = piece(&chars, at);
            let text: String = chars[at..end].iter().collect();
            let breaks = text.matches('\n').count();
            match layer {
                Layer::ErrorCode => self.code.push_str(&text),
                Layer::Quote => {
                    self.code.push_str("\"\"");
                    self.code.push_str(&"\n".repeat(breaks));
                    self.quotes.push(Piece { line, text });
                }
                Layer::Comment => {
                    self.code.push_str(&"\n".repeat(breaks));
                    self.comments.push(Piece { line, text });
                }
            }
            line += breaks;
            at = end;
        }
    }

    /// Every path in the code with its groups opened: `use a::{b, c::d}` is `a::b` and `a::c::d`.
    pub fn paths(&self) -> Vec<Piece> {
        let words = words(&self.code);
        let (mut at, mut found) = (0, Vec::new());
        while at < words.len() {
            if is_name(&words[at].text) {
                chain(&words, &mut at, "", &mut found);
            } else {
                at += 1;
            }
        }
        found
    }
}

enum Layer {
    ErrorCode,
    Quote,
    Comment,
}

/// Where the piece that starts at `at` ends, and what it is.
fn piece(chars: &[char], at: usize) -> (usize, Layer) {
    let is = |i: usize, c: char| chars.get(i) == Some(&c);
    let ends = |from: usize, end: &dyn Fn(usize) -> Option<usize>| {
        (from..chars.len()).find_map(end).unwrap_or(chars.len())
    };
    if is(at, '/') && is(at + 1, '/') {
        return (ends(at, &|i| is(i, '\n').then_some(i)), Layer::Comment);
    }
    if is(at, '/') && is(at + 1, '*') {
        let mut depth = 0;
        let mut i = at;
        while i < chars.len() {
            if is(i, '/') && is(i + 1, '*') {
                depth += 1;
                i += 2;
            } else if is(i, '*') && is(i + 1, '/') {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    break;
                }
            } else {
                i += 1;
            }
        }
        return (i.min(chars.len()), Layer::Comment);
    }
    let inside_name = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if is(at, 'r') && (!inside_name || matches!(chars[at - 1], 'b' | 'c')) {
        let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
        let open = at + 1 + hashes;
        if is(open, '"') {
            let close = |i: usize| {
                (is(i, '"') && (1..=hashes).all(|h| is(i + h, '#'))).then_some(i + 1 + hashes)
            };
            return (ends(open + 1, &close), Layer::Quote);
        }
    }
    if is(at, '"') {
        let mut i = at + 1;
        while i < chars.len() && chars[i] != '"' {
            i += if chars[i] == '\\' { 2 } else { 1 };
        }
        return ((i + 1).min(chars.len()), Layer::Quote);
    }
    if is(at, '\'') && is(at + 1, '\\') {
        return (
            ends(at + 3, &|i| is(i, '\'').then_some(i + 1)),
            Layer::ErrorCode,
        );
    }
    if is(at, '\'') && is(at + 2, '\'') {
        return (at + 3, Layer::ErrorCode);
    }
    (at + 1, Layer::ErrorCode)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names and signs of `code`.
fn words(code: &str) -> Vec<Piece> {
    let mut words = Vec::new();
    for (line, text) in code.lines().enumerate() {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let name = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let length = if name > 0 {
                name
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                words.push(Piece {
                    line: line + 1,
                    text: rest[..length].to_owned(),
                });
            }
            rest = &rest[length..];
        }
    }
    words
}

/// One path, from its first name on; `prefix` is what stands before a group.
fn chain(words: &[Piece], at: &mut usize, prefix: &str, found: &mut Vec<Piece>) {
    let word = |at: usize| words.get(at).map_or("", |w| w.text.as_str());
    let line = words[*at].line;
    let mut path = prefix.to_owned();
    loop {
        if word(*at) == "{" {
            *at += 1;
            while *at < words.len() && word(*at) != "}" {
                match word(*at) {
                    "as" => *at += 2,
                    name if is_name(name) || name == "*" => chain(words, at, &path, found),
                    _ => *at += 1,
                }
            }
            *at += 1;
            return;
        }
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(word(*at));
        *at += 1;
        let next = word(*at + 1);
        if word(*at) != "::" || !(is_name(next) || next == "{" || next == "*") {
            break;
        }
        *at += 1;
    }
    found.push(Piece { line, text: path });
}

/// Folders that hold what was built or made by running, never sources.
const MADE: [&str; 9] = [
    "target",
    ".git",
    "node_modules",
    "dist",
    "chorus-data",
    "work",
    "corpus",
    "artifacts",
    "coverage",
];
const READ: [&str; 9] = ["rs", "md", "toml", "json", "html", "js", "css", "py", "ts"];

/// Every source and paper of the repository.
pub fn tree() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    walk(&root, "", &mut found);
    found
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !MADE.contains(&name.as_str()) {
            walk(&entry.path(), &format!("{path}/"), found);
        }
        let read = name
            .rsplit_once('.')
            .is_none_or(|(_, ending)| READ.contains(&ending));
        // Others write in the tree while this reads it; a file that is gone by now is no fault.
        if let (true, true, Ok(text)) = (kind.is_file(), read, fs::read_to_string(entry.path())) {
            found.push(Source::new(&path, &text));
        }
    }
}

#[test]
fn code_quotes_and_comments_are_told_apart() {
    let text = concat!(
        "let a = \"// not a comment\"; // \"not a quote\"\n",
        "let b = r#\"a \" in it\"#; let c = '\"'; /* one /* two */ still\n */ fn d<'x>() {}\n",
        "let e = b\"\\\\\"; let f = '\\'';\n",
    );
    let source = Source::new("x.rs", text);
    let quotes: Vec<&str> = source.quotes.iter().map(|q| q.text.as_str()).collect();
    assert_eq!(
        quotes,
        ["\"// not a comment\"", "r#\"a \" in it\"#", "\"\\\\\""]
    );
    assert_eq!(source.comments.len(), 2);
    assert_eq!(source.code.lines().count(), text.lines().count());
    assert!(source.code.contains("fn d<'x>() {}") && source.code.contains("let f = '\\'';"));
}

#[test]
fn the_groups_of_a_path_are_opened() {
    let source = Source::new(
        "x.rs",
        "use a::{b, c::{d, e as f}, g::*};\nlet x = h::i::<J>();",
    );
    let paths: Vec<String> = source.paths().into_iter().map(|p| p.text).collect();
    for path in ["a::b", "a::c::d", "a::c::e", "a::g::*", "h::i"] {
        assert!(
            paths.iter().any(|p| p == path),
            "{path} is not in {paths:?}"
        );
    }
    assert!(
        !paths.iter().any(|p| p.ends_with("::f")),
        "a new name is not a path: {paths:?}"
    );
}
