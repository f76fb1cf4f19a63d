//! A plain table for people: columns as wide as they need, the last one free.

use std::fmt;

use super::style;
use super::visible::visible;

/// Rows of cells under headings. Cells are foreign text.
#[derive(Debug)]
pub struct Table<const N: usize> {
    headings: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// An empty table.
    #[must_use]
    pub const fn new(headings: [&'static str; N]) -> Self {
        Self { headings, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| visible(&cell).into_owned()));
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.headings[column].len()]).max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let faint = style::FAINT;
        write!(f, "{faint}")?;
        line(f, &self.headings.map(str::to_owned), &widths)?;
        writeln!(f, "{faint:#}")?;
        for row in &self.rows {
            line(f, row, &widths)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

fn line<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    cells: &[String; N],
    widths: &[usize; N],
) -> fmt::Result {
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if at + 1 == N {
            f.write_str(cell)?;
        } else {
            write!(f, "{cell:<width$}  ")?;
        }
    }
    Ok(())
}
