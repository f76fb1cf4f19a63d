//! A difference for people, with colours.

use std::fmt;

use super::style;
use crate::stage::diff::{Kind, Line};

/// The lines of one path, shown.
pub struct DiffView<'a>(pub &'a [Line]);

impl fmt::Display for DiffView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.0 {
            let style = match line.kind {
                Kind::Heading => style::STRONG,
                Kind::Note | Kind::NoLineEnd => style::FAINT,
                Kind::Hunk => style::NOTE,
                Kind::Context => anstyle::Style::new(),
                Kind::Removed => style::REMOVED,
                Kind::Added => style::ADDED,
            };
            writeln!(f, "{style}{line}{style:#}")?;
        }
        Ok(())
    }
}
