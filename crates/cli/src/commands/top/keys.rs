//! Meaning of keys.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ratatui::termion::event::Key;
use ratatui::termion::input::TermRead;
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
        Ok(Some(bytes.keys().flatten().collect()))
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

/// True if the rest of an arrow key may be on its way: a slow line or a full buffer cuts its bytes apart.
fn ends_within_a_key(bytes: &[u8]) -> bool {
    [&b"\x1b"[..], b"\x1b[", b"\x1bO"].iter().any(|begin| bytes.ends_with(begin))
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
        assert!(ends_within_a_key(b"x\x1b") && ends_within_a_key(b"\x1b[A\x1b["));
        assert!(!ends_within_a_key(b"\x1b[A") && !ends_within_a_key(b"q"));
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
