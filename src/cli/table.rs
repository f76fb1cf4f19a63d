//! A plain table for people: columns as wide as they need, the last one free; on a terminal no wider than it.

use std::borrow::Cow;
use std::fmt;

use anstyle::Style;

use super::style;
use super::visible::visible;

/// Rows of cells under headings. Cells are foreign text.
#[derive(Debug)]
pub struct Table<const N: usize> {
    headings: [&'static str; N],
    rows: Vec<[Cell; N]>,
    most: Option<usize>,
    hidden: Option<usize>,
}

/// One cell.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// In a style of ours.
    #[must_use]
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: visible(text.as_ref()).into_owned(), style }
    }

    /// In none.
    #[must_use]
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::new(text, Style::new())
    }
}

/// The narrowest that a column is cut to, and the least that the last one keeps.
const NARROW: usize = 10;

/// What stands where text was cut.
const CUT: char = '…';

impl<const N: usize> Table<N> {
    /// An empty table.
    #[must_use]
    pub const fn new(headings: [&'static str; N]) -> Self {
        Self { headings, rows: Vec::new(), most: None, hidden: None }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.styled(cells.map(Cell::plain));
    }

    /// Adds a row with styles.
    pub fn styled(&mut self, cells: [Cell; N]) {
        self.rows.push(cells);
    }

    /// Leaves a column out.
    pub fn hide(&mut self, column: usize) {
        self.hidden = Some(column);
    }

    /// The same, with no line longer than this.
    #[must_use]
    pub fn fitting(mut self, most: Option<usize>) -> Self {
        self.most = most;
        self
    }

    /// How wide each column is. What is too wide gives, the widest first, before the last one is cut.
    fn widths(&self) -> [usize; N] {
        let width = |column: usize| {
            if self.hidden == Some(column) {
                return 0;
            }
            let cells = self.rows.iter().map(|row| row[column].text.chars().count());
            cells.chain([self.headings[column].len()]).max().unwrap_or(0)
        };
        let mut widths: [usize; N] = std::array::from_fn(width);
        let (Some(most), Some(last)) = (self.most, N.checked_sub(1)) else { return widths };
        let room = most.saturating_sub(2 * last);
        let least = widths[last].min(2 * NARROW);
        while widths[..last].iter().sum::<usize>() + least > room {
            let Some(widest) = widths[..last].iter_mut().max().filter(|width| **width > NARROW)
            else {
                break;
            };
            *widest -= 1;
        }
        widths[last] = room.saturating_sub(widths[..last].iter().sum()).max(1);
        widths
    }
}

impl<const N: usize> Table<N> {
    fn line(
        &self,
        f: &mut fmt::Formatter<'_>,
        cells: &[Cell; N],
        widths: &[usize; N],
    ) -> fmt::Result {
        for (at, (Cell { text, style }, width)) in cells.iter().zip(widths).enumerate() {
            if self.hidden == Some(at) {
                continue;
            }
            let text = shortened(text, Some(*width));
            if at + 1 == N {
                write!(f, "{style}{text}{style:#}")?;
            } else {
                write!(f, "{style}{text:<width$}{style:#}  ")?;
            }
        }
        writeln!(f)
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let headings = self.headings.map(|heading| Cell::new(heading, style::FAINT));
        self.line(f, &headings, &widths)?;
        self.rows.iter().try_for_each(|row| self.line(f, row, &widths))
    }
}

/// `text` cut to so many characters.
pub(super) fn shortened(text: &str, most: Option<usize>) -> Cow<'_, str> {
    let Some(most) = most.filter(|most| text.chars().count() > *most) else {
        return Cow::Borrowed(text);
    };
    let kept = text.chars().take(most.saturating_sub(1)).chain([CUT]);
    Cow::Owned(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_where_it_must_and_is_whole_elsewhere() {
        let mut table = Table::new(["CALL", "WHEN", "EXIT", "COMMAND"]);
        table.row(
            ["0123456789abcdef01234567", "2026-01-31 12:00:00", "126", "rm -rf a b c d e f g h"]
                .map(str::to_owned),
        );
        let whole = table.to_string();
        assert!(whole.contains("0123456789abcdef01234567") && whole.contains("f g h"), "{whole}");
        for most in [20, 40, 60, 80, 200] {
            let mut again = Table::new(table.headings);
            again.rows.clone_from(&table.rows);
            let text =
                anstream::adapter::strip_str(&again.fitting(Some(most)).to_string()).to_string();
            // Below the narrowest columns nothing can be done.
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= most.max(32), "{most}: {longest}\n{text}");
            assert!(text.contains("126"), "{text}");
        }
    }
}
