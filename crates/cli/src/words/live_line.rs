//! Lines of a run on standard error, and the progress line: rewritten in place on a terminal, else
//! repeated now and then. A separate thread writes: a stopped terminal blocks no other thread.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use ipc::bus::Severity;
use rt::output::{OutputThread, Taken};

use super::{USUAL_COLUMNS, columns};
use crate::journal::{self, Fields};
use crate::output::{self, LAST_TIMEOUT};

/// Interval at which the line is rewritten on a terminal.
const ON_A_TERMINAL: Duration = Duration::from_millis(100);
/// Interval at which it is repeated in a file or pipe.
const ELSEWHERE: Duration = Duration::from_secs(5);

/// Lines between their writers and standard error.
const ROOM: usize = 1024;

/// The live line on standard error. Dropped, it waits for what was said as long as standard error
/// takes something.
pub(crate) struct LiveLine {
    voice: Voice,
    terminal: bool,
    shown: Option<Instant>,
    writer: Option<OutputThread<()>>,
}

/// Says lines that stay, from any thread; never waits.
#[derive(Clone)]
pub(crate) struct Voice {
    lines: SyncSender<Said>,
    missing: Arc<AtomicU64>,
    /// Only errors are written.
    quiet: bool,
}

/// One thing said.
enum Said {
    /// Progress.
    Shown(String),
    /// A line that stays, with additional fields for the journal.
    Sentence(Severity, String, Fields),
    /// An entry of the journal's.
    Kept(Severity, String, Fields),
    /// The last line shown stays, too.
    Finished,
    End,
}

impl Voice {
    /// Prints a line that stays; if the queue is full, the line is counted as lost.
    pub(crate) fn say(&self, line: &str) {
        self.tell(Severity::Ok, line);
    }

    /// The same with a severity, which the journal keeps.
    pub(crate) fn tell(&self, severity: Severity, line: &str) {
        self.tell_with(severity, line, Fields::new());
    }

    /// The same with fields, which the journal keeps, too.
    pub(crate) fn tell_with(&self, severity: Severity, line: &str, fields: Fields) {
        if !self.quiet || severity == Severity::Error {
            self.hand_over(Said::Sentence(severity, line.to_owned(), fields));
        }
    }

    /// Says something to the journal alone, if there is one.
    pub(crate) fn keep(&self, severity: Severity, line: &str, fields: Fields) {
        if journal::is_there() {
            self.hand_over(Said::Kept(severity, line.to_owned(), fields));
        }
    }

    fn hand_over(&self, said: Said) {
        match self.lines.try_send(said) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                // Relaxed: a count, nothing hangs on it.
                self.missing.fetch_add(1, Ordering::Relaxed);
            }
            // The system had no room for a thread.
            Err(TrySendError::Disconnected(Said::Sentence(_, line, _))) => output::say(line),
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

#[cfg(test)]
impl Voice {
    /// One for a test, which takes the lines so far.
    pub(crate) fn overheard() -> (Self, impl FnMut() -> Vec<String>) {
        let (lines, said) = mpsc::sync_channel(ROOM);
        let heard = move || {
            let sentence = |said| if let Said::Sentence(_, line, _) = said { Some(line) } else { None };
            said.try_iter().filter_map(sentence).collect()
        };
        (Self { lines, missing: Arc::default(), quiet: false }, heard)
    }
}

impl LiveLine {
    pub(crate) fn new() -> Self {
        Self::new_quiet(false)
    }

    /// The same; a quiet one writes errors only.
    pub(crate) fn new_quiet(quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let (lines, said) = mpsc::sync_channel(ROOM);
        let voice = Voice { lines, missing: Arc::default(), quiet };
        let missing = Arc::clone(&voice.missing);
        let writer = OutputThread::start("live line", move |taken| write(terminal, &said, &missing, taken));
        Self { voice, terminal, shown: None, writer: writer.ok() }
    }

    /// Shows what `line` says, if it is time to.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        if self.voice.quiet {
            return;
        }
        let interval = if self.terminal { ON_A_TERMINAL } else { ELSEWHERE };
        if self.shown.is_some_and(|shown| shown.elapsed() < interval) {
            return;
        }
        self.shown = Some(Instant::now());
        // The next one will say more.
        let _ = self.voice.lines.try_send(Said::Shown(line()));
    }

    /// Says something that stays.
    pub(crate) fn say(&self, line: &str) {
        self.voice.say(line);
    }

    /// The same with a severity.
    pub(crate) fn tell(&self, severity: Severity, line: &str) {
        self.voice.tell(severity, line);
    }

    /// For writers on threads of their own.
    pub(crate) fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// Leaves the last line on the terminal.
    pub(crate) fn finish(&mut self) {
        if self.shown.take().is_some() {
            let _ = self.voice.lines.try_send(Said::Finished);
        }
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        let begin = Instant::now();
        while let Err(TrySendError::Full(_)) = self.voice.lines.try_send(Said::End) {
            if begin.elapsed() > LAST_TIMEOUT {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = writer.finish(LAST_TIMEOUT);
    }
}

/// Writes the lines until the end. A closed standard error is no reason to stop.
fn write(terminal: bool, said: &Receiver<Said>, missing: &AtomicU64, taken: &Taken) {
    let clear = if terminal { CLEAR } else { "" };
    let mut last = None;
    for said in said {
        let mut error = io::stderr().lock();
        let _ = match said {
            Said::Shown(line) if terminal => {
                let line = output::shown(&line).into_owned();
                let shown = write!(error, "{clear}{UNBROKEN}{}{BROKEN}\r", fitting(&line));
                let shown = shown.and_then(|()| error.flush());
                last = Some(line);
                shown
            }
            // The journal keeps what happens; how it goes is `onbeat top`'s and --metrics's.
            Said::Shown(_) if journal::is_there() => Ok(()),
            Said::Shown(line) => writeln!(error, "{}", output::shown(&line)),
            Said::Sentence(severity, line, fields) => {
                last = None;
                let line = output::shown(&line);
                match !fields.is_empty() && journal::send(severity, &line, &fields) {
                    true => Ok(()),
                    false => writeln!(error, "{clear}{}", journal::with_priority(severity, &line)),
                }
            }
            Said::Kept(severity, line, fields) => {
                journal::send(severity, &output::shown(&line), &fields);
                Ok(())
            }
            Said::Finished => match last.take() {
                Some(line) => writeln!(error, "{clear}{}", fitting(&line)),
                None => Ok(()),
            },
            Said::End => {
                let missing = missing.load(Ordering::Relaxed);
                if missing > 0 {
                    let _ =
                        writeln!(error, "{missing} lines are missing here: standard error was too slow");
                }
                return;
            }
        };
        taken.add(1);
    }
}

/// Takes the line shown from a terminal. The cursor waits at its first letter: where a terminal
/// that becomes narrower breaks the line into several, they are below.
const CLEAR: &str = "\r\x1b[J";

/// Between these sequences the terminal cuts a long line (DECAWM): it reports a new size with a
/// delay.
const UNBROKEN: &str = "\x1b[?7l";
const BROKEN: &str = "\x1b[?7h";

/// As much of a line as this terminal, of this size, has room for.
fn fitting(line: &str) -> String {
    clipped(line, columns(&io::stderr()).unwrap_or(USUAL_COLUMNS))
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

    #[test]
    fn writers_never_wait_and_overflow_is_counted() {
        let (lines, said) = mpsc::sync_channel(2);
        let voice = Voice { lines, missing: Arc::default(), quiet: false };
        (0..5).for_each(|_| voice.say("hello"));
        assert_eq!(voice.missing.load(Ordering::Relaxed), 3);
        drop(said);
    }
}
