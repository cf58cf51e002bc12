//! The line that shows how a run is going: rewritten in place on a terminal, else repeated now and then.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::columns;

/// How often the line is rewritten on a terminal.
const ON_A_TERMINAL: Duration = Duration::from_millis(100);
/// How often it is repeated in a file or pipe.
const ELSEWHERE: Duration = Duration::from_secs(5);

/// The live line on standard error.
pub(crate) struct LiveLine {
    terminal: bool,
    shown: Option<Instant>,
}

impl LiveLine {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), shown: None }
    }

    /// Shows what `line` says, if it is time to.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        let interval = if self.terminal { ON_A_TERMINAL } else { ELSEWHERE };
        if self.shown.is_some_and(|shown| shown.elapsed() < interval) {
            return;
        }
        self.shown = Some(Instant::now());
        let line = line();
        let mut error = io::stderr().lock();
        // Nobody to show it to is no reason to stop.
        let _ = match self.terminal {
            true => write!(error, "\r\x1b[2K{}", clipped(&line, columns(&io::stderr())))
                .and_then(|()| error.flush()),
            false => writeln!(error, "{line}"),
        };
    }

    /// Says something that stays.
    pub(crate) fn say(&mut self, line: &str) {
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        let _ = writeln!(io::stderr().lock(), "{clear}{line}");
    }

    /// Leaves the last line on the terminal.
    pub(crate) fn finish(&mut self) {
        if self.terminal && self.shown.take().is_some() {
            let _ = writeln!(io::stderr().lock());
        }
    }
}

/// A line longer than the terminal is wide could not be rewritten in place.
fn clipped(line: &str, columns: usize) -> String {
    if line.chars().count() < columns {
        return line.to_owned();
    }
    line.chars().take(columns.saturating_sub(2)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_clipped_to_the_terminal() {
        assert_eq!(clipped("1234567", 8), "1234567");
        assert_eq!(clipped("12345678", 8), "123456…");
        assert_eq!(clipped("µµµµµµµµ", 4), "µµ…");
    }
}
