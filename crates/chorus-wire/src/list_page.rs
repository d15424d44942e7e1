//! Pages of lists that clients without a key may read: bounded in rows and bytes, with a cursor to continue.

use crate::{Error, Result, limits};
use serde::Serialize;

/// Starts a cursor. No name begins with it: a handle has a letter or a digit after its tilde.
const CURSOR_PREFIX: &str = "~~";

/// Some rows of a list, and the cursor after which it continues.
#[derive(Clone, Debug)]
pub struct ListPage<T> {
    pub rows: Vec<T>,
    /// Given back as `after`; `None` on the last page.
    pub next: Option<String>,
}

/// Collects the rows of a page until it is full.
pub struct ListPageBuilder<T> {
    rows: Vec<T>,
    bytes: usize,
    max_rows: usize,
}

impl<T: Serialize> ListPageBuilder<T> {
    pub fn new(max_rows: usize) -> Self {
        Self {
            rows: Vec::new(),
            bytes: 0,
            max_rows,
        }
    }

    /// Adds a row if the page has room; false when it belongs to the next page. One row always fits.
    pub fn try_push(&mut self, row: T) -> Result<bool> {
        let bytes = serde_json::to_vec(&row).map_err(Error::internal)?.len() + 1;
        let is_full = self.rows.len() >= self.max_rows
            || (!self.rows.is_empty() && self.bytes + bytes > limits::LIST_PAGE_BYTES);
        if !is_full {
            self.bytes += bytes;
            self.rows.push(row);
        }
        Ok(!is_full)
    }

    /// How many rows may still be added, if they are small.
    pub fn rows_left(&self) -> usize {
        self.max_rows.saturating_sub(self.rows.len())
    }

    pub fn finish(self, next: Option<String>) -> ListPage<T> {
        ListPage {
            rows: self.rows,
            next,
        }
    }
}

/// The cursor of a position in a list.
pub fn format_cursor(position: i64) -> String {
    format!("{CURSOR_PREFIX}{position}")
}

/// The position of a cursor; `None` when the text is none.
pub fn parse_cursor(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(CURSOR_PREFIX)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::AgentName;

    //
    #[test]
    fn a_page_ends_at_its_rows_or_at_its_bytes_and_holds_one_row_at_least() {
        let mut by_rows = ListPageBuilder::new(2);
        assert!(by_rows.try_push("a").unwrap() && by_rows.try_push("b").unwrap());
        assert!(!by_rows.try_push("c").unwrap());
        let mut by_bytes = ListPageBuilder::new(100);
        let large = "x".repeat(limits::LIST_PAGE_BYTES / 3);
        let taken = (0..5).filter(|_| by_bytes.try_push(large.clone()).unwrap());
        assert_eq!(taken.count(), 2);
        let mut by_one = ListPageBuilder::new(100);
        assert!(
            by_one
                .try_push("x".repeat(limits::LIST_PAGE_BYTES))
                .unwrap()
        );
        assert_eq!(by_one.finish(None).rows.len(), 1);
    }

    #[test]
    fn a_cursor_is_no_name_and_reads_back() {
        for position in [0, 7, i64::MAX] {
            let cursor = format_cursor(position);
            assert_eq!(parse_cursor(&cursor), Some(position));
            assert!(AgentName::parse("after", &cursor).is_err());
        }
        for other in [
            "",
            "~~",
            "~~-1",
            "~~+1",
            "~7",
            "7",
            "alice@chorus",
            "~~99999999999999999999",
        ] {
            assert_eq!(parse_cursor(other), None, "{other}");
        }
    }
}
