//! The width of the output.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

const DEFAULT_WIDTH: u16 = 80;

/// The layout of all tables of the program.
static LAYOUT: OnceLock<Layout> = OnceLock::new();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A table fits this number of columns.
    Narrow(u16),
    /// A table shows whole values in all columns.
    Wide,
}

impl Layout {
    /// Sets the layout of all tables, once, at the start of the program.
    pub(crate) fn set(wide: bool) {
        let layout = if wide { Self::Wide } else { Self::Narrow(terminal_width()) };
        LAYOUT.get_or_init(|| layout);
    }

    pub(super) fn current() -> Self {
        LAYOUT.get().copied().unwrap_or(Self::Narrow(DEFAULT_WIDTH))
    }
}

/// The width of messages on standard error, at most that of the help, or nothing outside a terminal.
pub(super) fn message_width() -> Option<u16> {
    let size = terminal_size::terminal_size_of(io::stderr());
    let width = size.map_or(DEFAULT_WIDTH, |(width, _)| width.0.min(DEFAULT_WIDTH));
    io::stderr().is_terminal().then_some(width)
}

fn terminal_width() -> u16 {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(DEFAULT_WIDTH, |(width, _)| width.0.max(DEFAULT_WIDTH))
}
