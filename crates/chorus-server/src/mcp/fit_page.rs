//! Truncates a list to what fits into one tool result.

use chorus_wire::limits;
use serde::Serialize;

/// Drops rows from the end that do not fit; true when any were dropped. The first row always stays.
pub fn keep_first_fitting<T: Serialize>(rows: &mut Vec<T>) -> bool {
    keep_first_within(rows, limits::TOOL_ANSWER_BYTES)
}

/// The same for a part of a result.
pub fn keep_first_within<T: Serialize>(rows: &mut Vec<T>, max_bytes: usize) -> bool {
    let all = rows.len();
    let fitting = count_fitting(rows.iter(), max_bytes);
    rows.truncate(fitting);
    fitting < all
}

/// Drops rows from the beginning that do not fit; true when any were dropped. The last row always stays.
pub fn keep_last_fitting<T: Serialize>(rows: &mut Vec<T>) -> bool {
    keep_last_within(rows, limits::TOOL_ANSWER_BYTES)
}

/// The same for a part of a result.
pub fn keep_last_within<T: Serialize>(rows: &mut Vec<T>, max_bytes: usize) -> bool {
    let all = rows.len();
    let fitting = count_fitting(rows.iter().rev(), max_bytes);
    rows.drain(..all - fitting);
    fitting < all
}

fn count_fitting<'a, T: Serialize + 'a>(
    rows: impl Iterator<Item = &'a T>,
    max_bytes: usize,
) -> usize {
    let mut bytes_left = max_bytes;
    let fits = |(index, row): &(usize, &T)| {
        let size = serde_json::to_string(row).map_or(0, |text| text.len());
        let fits = size <= bytes_left;
        bytes_left = bytes_left.saturating_sub(size);
        fits || *index == 0
    };
    rows.enumerate().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_not_fit_are_dropped_from_the_far_end_and_one_stays() {
        let row = |name: &str| format!("{name}{}", "x".repeat(limits::TOOL_ANSWER_BYTES / 3));
        let rows = || ["a", "b", "c", "d"].map(row).to_vec();
        let mut front = rows();
        let mut back = rows();
        assert!(keep_first_fitting(&mut front) && keep_last_fitting(&mut back));
        let names = |rows: &[String]| {
            rows.iter()
                .map(|row| row[..1].to_owned())
                .collect::<String>()
        };
        assert_eq!(
            (names(&front).as_str(), names(&back).as_str()),
            ("ab", "cd")
        );
        let mut huge = vec![
            "x".repeat(limits::TOOL_ANSWER_BYTES * 2),
            "small".to_owned(),
        ];
        assert!(keep_first_fitting(&mut huge) && huge.len() == 1);
        assert!(!keep_last_fitting(&mut huge) && huge.len() == 1);
        assert!(!keep_first_fitting(&mut Vec::<String>::new()));
    }
}
