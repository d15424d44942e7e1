//! The options of the command line, and of files that it names.

use crate::exit_with_error;

/// `--name value` pairs; `--name` alone is a flag; `@file` holds more of them, one per line.
#[derive(Clone, Default)]
pub struct CommandOptions(pub Vec<(String, String)>);

impl CommandOptions {
    pub fn parse(words: impl Iterator<Item = String>) -> CommandOptions {
        let mut a = CommandOptions::default();
        let mut words = words.peekable();
        while let Some(w) = words.next() {
            if let Some(path) = w.strip_prefix('@') {
                let text = std::fs::read_to_string(path)
                    .unwrap_or_else(|e| exit_with_error(&format!("{path}: {e}")));
                for line in text
                    .lines()
                    .map(str::trim)
                    .filter(|l| !l.is_empty() && !l.starts_with('#'))
                {
                    let (k, v) = line.split_once(char::is_whitespace).unwrap_or((line, "1"));
                    a.0.push((k.trim_start_matches('-').into(), v.trim().into()));
                }
            } else if let Some(k) = w.strip_prefix("--") {
                let v = words
                    .next_if(|v| !v.starts_with("--"))
                    .unwrap_or_else(|| "1".into());
                a.0.push((k.into(), v));
            } else {
                exit_with_error(&format!("unexpected {w}"));
            }
        }
        a
    }

    pub fn all(&self, k: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|x| x.0 == k)
            .map(|x| x.1.as_str())
            .collect()
    }

    /// The last one given wins, so a command line can override an @file before it.
    pub fn get(&self, k: &str) -> Option<&str> {
        self.all(k).last().copied()
    }

    pub fn need(&self, k: &str) -> &str {
        self.get(k)
            .unwrap_or_else(|| exit_with_error(&format!("--{k} is required")))
    }

    pub fn num<T: std::str::FromStr>(&self, k: &str, default: T) -> T {
        self.get(k).map_or(default, |v| {
            v.parse()
                .unwrap_or_else(|_| exit_with_error(&format!("--{k} {v}: not a number")))
        })
    }
}
