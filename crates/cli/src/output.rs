//! Standard output and standard error: they may be closed, full, or a terminal that takes nothing.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use control::output::{OutputThread, Unfinished};

use crate::failure::Failure;

/// Time an output may take nothing at the end of a run before it is given up.
pub(crate) const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// The same for what a run prints: its reader may be a person.
const PRINT_PATIENCE: Duration = Duration::from_secs(10);

/// Prints to standard output, and waits as long as it takes. A reader that has seen enough (`| head`) is no failure.
///
/// # Errors
/// An output that cannot take it, as a full disk.
pub fn print(text: impl Display) -> Result<(), Failure> {
    judged(write(&text.to_string()))
}

/// The same, for the end of a run: an output that takes nothing does not keep the process.
///
/// # Errors
/// As [`print()`].
pub fn print_or_give_up(text: String) -> Result<(), Failure> {
    let text: Arc<str> = text.into();
    let shared = Arc::clone(&text);
    let printing = OutputThread::start("print", move |taken| {
        pieces(&shared).try_for_each(|piece| {
            write(piece)?;
            taken.add(1);
            Ok(())
        })
    });
    // A system without room for a thread.
    let Ok(printing) = printing else { return print(text) };
    match printing.finish(PRINT_PATIENCE) {
        Ok(outcome) => judged(outcome),
        Err(Unfinished::Hangs) => Err(Failure::new(format!(
            "standard output took nothing for {} s: what was to be printed is lost; --record keeps a run in a file",
            PRINT_PATIENCE.as_secs()
        ))),
        Err(Unfinished::Panicked) => Err(Failure::new("standard output's thread panicked")),
    }
}

/// Says a line on standard error; nobody to hear it is no reason to stop.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// The same as the last thing: a terminal that takes nothing does not keep the process.
pub fn say_or_give_up(line: String) {
    let shared = line.clone();
    match OutputThread::start("say", move |_| say(shared)) {
        Ok(saying) => drop(saying.finish(LAST_PATIENCE)),
        Err(_) => say(line),
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn judged(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "standard output: {error}; what was to be printed is not whole: make room, or print elsewhere"
        ))),
        _ => Ok(()),
    }
}

/// Parts small enough to see an output take them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}
