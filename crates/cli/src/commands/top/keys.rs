//! Meaning of keys.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ratatui::termion::event::Key;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::picture::View;

/// Action of a key that is not a matter of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Nothing,
    Quit,
}

/// Keyboard of the terminal that is drawn on.
pub(crate) struct Keyboard(OwnedFd);

impl Keyboard {
    /// Standard input, or the controlling terminal where that is a file or a pipe.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn open() -> io::Result<Self> {
        let input = io::stdin();
        let terminal = match input.is_terminal() {
            true => input.as_fd().try_clone_to_owned()?,
            false => File::open("/dev/tty")?.into(),
        };
        Ok(Self(terminal))
    }

    /// Keys pressed within `time`, at once when there are some; `None` when the terminal is gone.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn keys(&self, time: Duration) -> io::Result<Option<Vec<Key>>> {
        let mut bytes = Vec::new();
        let mut time = time;
        while self.is_ready(time)? {
            let mut more = [0; 256];
            match rustix::io::read(&self.0, &mut more)? {
                0 => return Ok(None),
                length => bytes.extend_from_slice(&more[..length]),
            }
            if !ends_within_a_key(&bytes) || bytes.len() > MOST_BYTES {
                break;
            }
            time = REST_OF_A_KEY;
        }
        Ok(Some(decoded(&bytes)))
    }

    /// True if there is something to read within `time`.
    fn is_ready(&self, time: Duration) -> io::Result<bool> {
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&time)) {
            Err(rustix::io::Errno::INTR) => Ok(false),
            outcome => Ok(outcome? > 0),
        }
    }
}

const ESC: u8 = 0x1b;

/// True if the rest of a key may follow: a slow line or a full buffer splits its bytes.
fn ends_within_a_key(bytes: &[u8]) -> bool {
    let begin = bytes.iter().rposition(|&byte| byte == ESC);
    match begin.map_or(&[][..], |begin| &bytes[begin..]) {
        [ESC] | [ESC, b'O'] => true,
        [ESC, b'[', rest @ ..] => rest.iter().all(|byte| PARAMETERS.contains(byte)),
        _ => false,
    }
}

/// Bytes of a control sequence before its last one (ECMA-48, 5.4).
const PARAMETERS: RangeInclusive<u8> = 0x20..=0x3f;

/// Keys of these bytes that mean something here. Control sequences that are none of them, or are
/// cut off, are left out: what a terminal answers or pastes is no key. The parser of termion panics
/// on some.
fn decoded(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        let key;
        (key, bytes) = match (*first, rest) {
            (ESC, [b'[', rest @ ..]) => sequence(rest),
            (ESC, [b'O', last @ b'@'..=b'~', rest @ ..]) => (named(b"", *last), rest),
            (ESC, [] | [..b' ', ..]) => (Some(Key::Esc), rest),
            // With Alt a letter is what it is without.
            (ESC, _) => (None, rest),
            (b'\t', rest) => (Some(Key::Char('\t')), rest),
            (letter @ 0x01..=0x1a, rest) => (Some(Key::Ctrl(char::from(letter - 1 + b'a'))), rest),
            (letter @ b' '..=b'~', rest) => (Some(Key::Char(char::from(letter))), rest),
            (_, rest) => (None, rest),
        };
        keys.extend(key);
    }
    keys
}

/// Key of a control sequence, from behind its introducer on, and the bytes behind it.
fn sequence(bytes: &[u8]) -> (Option<Key>, &[u8]) {
    let end = bytes.iter().position(|byte| !PARAMETERS.contains(byte)).unwrap_or(bytes.len());
    match (&bytes[..end], &bytes[end..]) {
        // Function keys of the Linux console.
        (b"", [b'[', b'A'..=b'E', rest @ ..]) => (None, rest),
        (parameters, [last @ b'@'..=b'~', rest @ ..]) => (named(parameters, *last), rest),
        (_, rest) => (None, rest),
    }
}

fn named(parameters: &[u8], last: u8) -> Option<Key> {
    match (parameters, last) {
        (b"", b'A') => Some(Key::Up),
        (b"", b'B') => Some(Key::Down),
        (b"", b'C') => Some(Key::Right),
        (b"", b'D') => Some(Key::Left),
        (b"", b'H') | (b"1" | b"7", b'~') => Some(Key::Home),
        (b"", b'F') | (b"4" | b"8", b'~') => Some(Key::End),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    }
}

/// Time for the rest of a key; Esc alone is taken after it.
const REST_OF_A_KEY: Duration = Duration::from_millis(50);

/// Bytes of keys that are taken at once.
const MOST_BYTES: usize = 4096;

/// Changes the view as the key says; the page that scrolls has so many rows.
pub(super) fn press(view: &mut View, key: Key, rows: usize) -> Pressed {
    match key {
        Key::Char('h' | '?') => view.help = !view.help,
        Key::Esc if view.help => view.help = false,
        Key::Ctrl('c') | Key::Char('q') | Key::Esc => return Pressed::Quit,
        Key::Char('p' | ' ') => view.paused = !view.paused,
        Key::Char('\t') => view.turn(),
        Key::Left => view.move_across(-ACROSS),
        Key::Right => view.move_across(ACROSS),
        Key::Up | Key::Char('k') => view.scroll(-1, rows),
        Key::Down | Key::Char('j') => view.scroll(1, rows),
        Key::PageUp => view.scroll(-PAGE, rows),
        Key::PageDown => view.scroll(PAGE, rows),
        Key::Home => view.scroll(isize::MIN, rows),
        Key::End => view.scroll(isize::MAX, rows),
        _ => {}
    }
    Pressed::Nothing
}

/// Columns of a key to the side.
const ACROSS: i16 = 16;

/// About what a small terminal shows at once.
const PAGE: isize = 8;

#[cfg(test)]
mod tests {
    use super::super::picture::Page;
    use super::*;

    #[test]
    fn an_arrow_that_is_cut_apart_is_one_key() {
        for part in [&b"x\x1b"[..], b"\x1b[A\x1b[", b"\x1bO", b"\x1b[6", b"\x1b[1;5"] {
            assert!(ends_within_a_key(part), "{part:?}");
        }
        for whole in [&b"\x1b[A"[..], b"q", b"\x1b[6~", b"\x1bOA", b"\x1b[1;5A", b"\x1b[q1", b""] {
            assert!(!ends_within_a_key(whole), "{whole:?}");
        }
    }

    #[test]
    fn keys_are_distinguished_from_other_terminal_input() {
        let bytes =
            b"\x1b[A\x1bOB\x1b[C\x1b[D\x1b[5~\x1b[6~\x1b[1~\x1b[F\t\x03q+\x1b\x1b[H\xc3\xa4\x1bq.\x1b";
        let ends = [Key::Home, Key::End, Key::Char('\t'), Key::Ctrl('c'), Key::Char('q'), Key::Char('+')];
        let arrows = [Key::Up, Key::Down, Key::Right, Key::Left, Key::PageUp, Key::PageDown];
        let last = [Key::Esc, Key::Home, Key::Char('q'), Key::Char('.'), Key::Esc];
        assert_eq!(decoded(bytes), [&arrows[..], &ends, &last].concat());
        // Nothing takes a stop with it.
        for begin in [&b"\x1b"[..], b"\x1bO", b"\x1b[", b"\x1b[1;", b"\x1b[[", b"\x1b[M"] {
            assert!(decoded(&[begin, b"\x03"].concat()).contains(&Key::Ctrl('c')), "{begin:?}");
        }
        for none in [
            &b"\x1b[6"[..],
            b"\x1b[",
            b"\x1bO",
            b"\x1b[999~",
            b"\x1b[1;~",
            b"\x1b[1M",
            b"\x1b[Mqqq",
            b"\x1b[<0;q",
            b"\x1b[<q;1;1M\x1b[M",
            b"\x1b[[A",
            b"\x1b[?1;2c",
            b"\x1b[200~",
        ] {
            let keys = decoded(none);
            assert!(keys.iter().all(|key| matches!(key, Key::Char(_))), "{none:?}: {keys:?}");
        }
        // All of five bytes out of these.
        let letters = b"\x1b[O<;M09~mA\xff";
        for number in 0..letters.len().pow(5) {
            let bytes: Vec<u8> =
                (0..5).map(|place| letters[number / letters.len().pow(place) % letters.len()]).collect();
            assert!(decoded(&bytes).len() <= bytes.len(), "{bytes:?}");
        }
    }

    #[test]
    fn keys_scroll_within_the_rows_turn_the_page_pause_and_quit() {
        let mut view = View::default();
        let mut press = |key: Key| {
            let pressed = press(&mut view, key, 59);
            (pressed, view)
        };
        assert_eq!(press(Key::Down).1.scroll, 1);
        assert_eq!(press(Key::Up).1.scroll, 0);
        assert_eq!(press(Key::Up).1.scroll, 0);
        assert_eq!(press(Key::End).1.scroll, 58);
        assert_eq!(press(Key::PageDown).1.scroll, 58);
        assert_eq!(press(Key::PageUp).1.scroll, 50);
        let turned = press(Key::Char('\t')).1;
        assert_eq!((turned.page, turned.scroll), (Page::Curves, 0));
        let pages = [(); 4].map(|()| press(Key::Char('\t')).1.page);
        assert_eq!(pages, [Page::Signals, Page::Bus, Page::Details, Page::Axes]);
        assert_eq!(
            [press(Key::Right).1.across, press(Key::Left).1.across, press(Key::Left).1.across],
            [16, 0, 0]
        );
        assert!(press(Key::Char('?')).1.help);
        assert_eq!((press(Key::Esc).0, press(Key::Char('h')).1.help), (Pressed::Nothing, true));
        assert!(!press(Key::Char('h')).1.help);
        assert!(press(Key::Char('p')).1.paused && !press(Key::Char('p')).1.paused);
        assert_eq!(press(Key::Char('x')).0, Pressed::Nothing);
        assert_eq!(press(Key::Char('q')).0, Pressed::Quit);
    }
}
