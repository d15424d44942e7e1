//! Lists for people: columns as wide as their widest cell and, on a terminal, their titles above them.

use crate::output::{
    FAINT_STYLE, escape_controls, paint_text, print_aside, print_line, print_result,
};
use anstyle::Style;
use serde::Serialize;
use std::io::IsTerminal;

/// A text in a column, safe for a terminal.
pub struct TableCell {
    text: String,
    style: Style,
}

impl TableCell {
    pub fn styled(style: Style, text: &str) -> Self {
        Self {
            text: escape_controls(text),
            style,
        }
    }

    fn count_chars(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: AsRef<str>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::styled(Style::new(), text.as_ref())
    }
}

/// A cell for each column, and the lines below them for what is too long for a column.
pub struct TableRow<const N: usize> {
    cells: [TableCell; N],
    lines: Vec<String>,
}

impl<const N: usize> TableRow<N> {
    pub fn of_cells(cells: [TableCell; N]) -> Self {
        Self {
            cells,
            lines: Vec::new(),
        }
    }

    /// Adds a line below the row, indented.
    pub fn add_line(&mut self, text: &str) {
        self.lines.push(format!("    {}", escape_controls(text)));
    }
}

/// The columns of a list, at least as wide as their titles.
pub struct TableColumns<const N: usize> {
    titles: [&'static str; N],
    widths: [usize; N],
}

impl<const N: usize> TableColumns<N> {
    pub fn of_titles(titles: [&'static str; N]) -> Self {
        Self {
            titles,
            widths: titles.map(|title| title.chars().count()),
        }
    }

    /// Makes the columns as wide as the widest cell of these rows.
    pub fn fit_rows(&mut self, rows: &[TableRow<N>]) {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(&row.cells) {
                *width = cell.count_chars().max(*width);
            }
        }
    }

    /// Prints the titles, on a terminal only: scripts read the rows.
    pub fn print_titles(&self) {
        if std::io::stdout().is_terminal() {
            let titles = TableRow::of_cells(self.titles.map(TableCell::from));
            print_line(&paint_text(FAINT_STYLE, &self.format_row(&titles)));
        }
    }

    /// The cells of a row under each other, and its further lines. No spaces are at the end.
    pub fn format_row(&self, row: &TableRow<N>) -> String {
        let last = row.cells.iter().rposition(|cell| !cell.text.is_empty());
        let mut line = String::new();
        for (at, (cell, width)) in row.cells.iter().zip(self.widths).enumerate() {
            if last.is_none_or(|last| at > last) {
                break;
            }
            line.push_str(&paint_text(cell.style, &cell.text));
            if last != Some(at) {
                line.push_str(&" ".repeat(width.saturating_sub(cell.count_chars()) + 2));
            }
        }
        for further in &row.lines {
            line.push('\n');
            line.push_str(further);
        }
        line
    }
}

/// A row that is no part of a list.
pub fn format_single_row<const N: usize>(row: &TableRow<N>) -> String {
    let mut columns = TableColumns::of_titles([""; N]);
    columns.fit_rows(std::slice::from_ref(row));
    columns.format_row(row)
}

/// Prints a list: JSON lines with `--json`, else a table, and a note if there is nothing in it.
pub fn print_table<T: Serialize, const N: usize>(
    json: bool,
    values: &[T],
    titles: [&'static str; N],
    empty: &str,
    format_row: impl Fn(&T) -> TableRow<N>,
) {
    if values.is_empty() {
        return print_aside(json, empty);
    }
    if json {
        return values
            .iter()
            .for_each(|value| print_result(true, value, String::new));
    }
    let rows: Vec<TableRow<N>> = values.iter().map(format_row).collect();
    let mut columns = TableColumns::of_titles(titles);
    columns.fit_rows(&rows);
    columns.print_titles();
    for row in &rows {
        print_line(&columns.format_row(row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_under_their_titles_without_spaces_at_the_end() {
        let mut row = TableRow::of_cells(["böb".into(), "x\u{1b}[2J".into(), String::new().into()]);
        row.add_line("why");
        let mut columns = TableColumns::of_titles(["AGENT", "A", "B"]);
        columns.fit_rows(std::slice::from_ref(&row));
        let shown = columns.format_row(&row);
        assert!(shown.starts_with("böb    x"), "{shown}");
        assert!(
            shown.ends_with("\n    why") && !shown.contains(" \n"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
