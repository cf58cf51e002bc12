//! Standard output and standard error: they may be closed, full, or a terminal that takes nothing.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::exit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rt::output::{OutputThread, Unfinished};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::Failure;

/// Time an output may take nothing at the end of a run before it is given up.
pub(crate) const LAST_TIMEOUT: Duration = Duration::from_secs(3);

/// The same for what a run prints: its reader may be a person.
const PRINT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time from one look to the next while something is waited for.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Text that is safe on a terminal. Names come from files, buses and other programs. Their control
/// and bidirectional-override characters are written as JSON escapes; line feeds and tabs stay.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| robot::is_unseen(letter) && !matches!(letter, '\n' | '\t');
    if !text.contains(is_escaped) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if is_escaped(letter) => shown.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => shown.push(letter),
        }
    }
    shown.into()
}

/// Prints to standard output, and waits as long as it takes. A reader that ends early (`| head`) is
/// no failure.
///
/// # Errors
/// An output that cannot take it, as a full disk.
pub fn print(text: impl Display) -> Result<(), Failure> {
    judged(write(&shown(&text.to_string())))
}

/// The same for a text with control sequences of the program's own, in which others are escaped
/// already.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_drawn(text: &str) -> Result<(), Failure> {
    judged(write(text))
}

/// The same, for the end of a run: an output that takes nothing does not keep the process.
///
/// # Errors
/// As [`print()`].
pub fn print_or_give_up(text: String) -> Result<(), Failure> {
    let text: Arc<str> = shown(&text).into();
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
    match printing.finish(PRINT_TIMEOUT) {
        Ok(outcome) => judged(outcome),
        Err(Unfinished::Hangs) => Err(Failure::new(format!(
            "standard output took nothing for {} s: what was to be printed is lost; --record keeps a run in a file",
            PRINT_TIMEOUT.as_secs()
        ))),
        Err(Unfinished::Panicked) => Err(Failure::new("standard output's thread panicked")),
    }
}

/// True once the reader of standard output is gone (`| head`), also while there is nothing to
/// print.
pub(crate) fn is_closed() -> bool {
    gone(Some(Timespec::default()))
}

/// From now on the program ends, as one that has done its work, once the reader of standard output
/// is gone.
pub(crate) fn end_when_closed() {
    let watch = || {
        while !gone(None) {}
        exit(0)
    };
    // Without room for a thread the next line ends it.
    let _ = thread::Builder::new().name("reader".to_owned()).spawn(watch);
}

/// Waits up to `limit` for the reader of standard output to go.
fn gone(limit: Option<Timespec>) -> bool {
    let output = io::stdout();
    let mut watched = [PollFd::new(&output, PollFlags::empty())];
    let told = poll(&mut watched, limit.as_ref());
    told.is_ok_and(|told| told > 0) && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Writes a line to standard error; an error of that is no reason to stop.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(&line.to_string()));
}

/// The same, with something under way that must not wait for it.
pub(crate) fn say_beside(line: String) {
    // Without room for a thread it stays unsaid.
    let _ = OutputThread::start("say", move |_| say(line));
}

/// The same as the last thing: a terminal that takes nothing does not keep the process.
pub fn say_or_give_up(line: String) {
    let shared = line.clone();
    match OutputThread::start("say", move |_| say(shared)) {
        Ok(saying) => drop(saying.finish(LAST_TIMEOUT)),
        Err(_) => say(line),
    }
}

pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Outcome of a print: a reader that has seen enough is no failure.
pub(crate) fn judged(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "standard output: {error}; the output is incomplete: free some disk space, or print elsewhere"
        ))),
        _ => Ok(()),
    }
}

/// Parts small enough to see an output take them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn control_characters_of_names_are_escaped_and_lines_stay() {
        assert_eq!(shown("left wheel\n\tµ 1\n"), "left wheel\n\tµ 1\n");
        assert_eq!(
            shown("a\u{1b}[2J\rb\u{9b}c\u{202e}d\u{7f}"),
            "a\\u001b[2J\\u000db\\u009bc\\u202ed\\u007f"
        );
        // JSON stays the same JSON.
        let text = "\u{7f}\u{9b}\u{202e}";
        let json = serde_json::to_string(text).expect("JSON");
        assert_eq!(serde_json::from_str::<String>(&shown(&json)).expect("JSON"), text);
    }
}
