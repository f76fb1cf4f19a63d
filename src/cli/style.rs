//! The few styles that text output uses, and the colours of `--help`.

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;

/// A denial, an error.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// A question, a warning.
pub const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// A permission, a success.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// A hint, a pointer to a place.
pub const NOTE: Style = AnsiColor::Cyan.on_default();
/// A line that goes.
pub const REMOVED: Style = AnsiColor::Red.on_default();
/// A line that comes.
pub const ADDED: Style = AnsiColor::Green.on_default();
/// What the eye should find first.
pub const STRONG: Style = Style::new().bold();
/// What the eye may skip.
pub const FAINT: Style = Style::new().dimmed();

/// The colours of `--help` and of clap's own errors.
pub const HELP: Styles = Styles::styled()
    .header(STRONG)
    .usage(STRONG)
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(FAINT)
    .error(BAD)
    .valid(AnsiColor::Green.on_default())
    .invalid(WARN);
