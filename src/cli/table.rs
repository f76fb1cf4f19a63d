//! A plain table for people: columns as wide as they need. On a terminal the last one is cut to what is left, and columns
//! that can be spared go before that; no name, time or state is ever cut.

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
    hidden: Vec<usize>,
    spare: &'static [usize],
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

/// What the last column should have, if it needs as much: columns that can be spared go before it gets less.
const LAST: usize = 20;

/// What stands where text was cut.
const CUT: char = '…';

impl<const N: usize> Table<N> {
    /// An empty table.
    #[must_use]
    pub const fn new(headings: [&'static str; N]) -> Self {
        Self { headings, rows: Vec::new(), most: None, hidden: Vec::new(), spare: &[] }
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
        self.hidden.push(column);
    }

    /// Names columns that are left out where there is too little room, the least important first.
    #[must_use]
    pub const fn sparing(mut self, columns: &'static [usize]) -> Self {
        self.spare = columns;
        self
    }

    /// The same, fitted into lines of this length: columns that can be spared go, then the last one is cut.
    #[must_use]
    pub fn fitting(mut self, most: Option<usize>) -> Self {
        self.most = most;
        if let (Some(most), Some(last)) = (most, N.checked_sub(1)) {
            let wanted = self.width(last).min(LAST);
            for column in self.spare {
                if self.before_last() + wanted <= most {
                    break;
                }
                self.hide(*column);
            }
        }
        self
    }

    /// How wide a column is by itself.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].text.chars().count());
        cells.chain([self.headings[column].len()]).max().unwrap_or(0)
    }

    fn is_shown(&self, column: usize) -> bool {
        !self.hidden.contains(&column)
    }

    /// What stands before the last column, with the space between columns.
    fn before_last(&self) -> usize {
        let others = (0..N.saturating_sub(1)).filter(|column| self.is_shown(*column));
        others.map(|column| self.width(column) + 2).sum()
    }

    fn widths(&self) -> [usize; N] {
        let mut widths: [usize; N] = std::array::from_fn(|column| self.width(column));
        if let (Some(most), Some(last)) = (self.most, widths.last_mut()) {
            *last = (*last).min(most.saturating_sub(self.before_last()).max(1));
        }
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
            if !self.is_shown(at) {
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

    fn calls() -> Table<4> {
        let mut table = Table::new(["CALL", "WHEN", "EXIT", "COMMAND"]).sparing(&[2, 1]);
        table.row(
            ["0123456789abcdef01234567", "2026-01-31 12:00:00", "126", "rm -rf a b c d e f g h"]
                .map(str::to_owned),
        );
        table
    }

    #[test]
    fn a_table_fits_where_it_can_and_is_whole_elsewhere() {
        let whole = calls().to_string();
        assert!(whole.contains("0123456789abcdef01234567") && whole.contains("f g h"), "{whole}");
        for most in [20, 40, 48, 60, 80, 200] {
            let table = calls().fitting(Some(most)).to_string();
            let text = anstream::adapter::strip_str(&table).to_string();
            // What names a call is never cut: below that nothing can be done.
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= most.max(27), "{most}: {longest}\n{text}");
            assert!(text.contains("0123456789abcdef01234567"), "{text}");
        }
    }

    #[test]
    fn what_can_be_spared_goes_before_the_last_column_is_cut_short() {
        let shown = |most| calls().fitting(Some(most)).to_string();
        assert!(shown(76).contains("126") && shown(76).contains("12:00:00"));
        assert!(!shown(70).contains("126") && shown(70).contains("12:00:00"));
        let narrow = shown(48);
        assert!(
            !narrow.contains("12:00:00") && narrow.contains("rm -rf a b c d e f g"),
            "{narrow}"
        );
    }
}
