//! Meaning of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::picture::View;

/// Action of a key that is not a matter of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Nothing,
    Quit,
}

/// Changes the view as the key says; the page that scrolls has so many rows.
pub(super) fn press(view: &mut View, key: KeyEvent, rows: usize) -> Pressed {
    if key.kind == KeyEventKind::Release {
        return Pressed::Nothing;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Pressed::Quit,
        KeyCode::Char('q') | KeyCode::Esc => return Pressed::Quit,
        KeyCode::Char('p' | ' ') => view.paused = !view.paused,
        KeyCode::Tab | KeyCode::Left | KeyCode::Right => view.turn(),
        KeyCode::Up | KeyCode::Char('k') => view.scroll(-1, rows),
        KeyCode::Down | KeyCode::Char('j') => view.scroll(1, rows),
        KeyCode::PageUp => view.scroll(-PAGE, rows),
        KeyCode::PageDown => view.scroll(PAGE, rows),
        KeyCode::Home => view.scroll(isize::MIN, rows),
        KeyCode::End => view.scroll(isize::MAX, rows),
        _ => {}
    }
    Pressed::Nothing
}

/// About what a small terminal shows at once.
const PAGE: isize = 8;

#[cfg(test)]
mod tests {
    use super::super::picture::Page;
    use super::*;

    #[test]
    fn keys_scroll_within_the_rows_turn_the_page_pause_and_quit() {
        let mut view = View::default();
        let mut press = |code: KeyCode| {
            let pressed = press(&mut view, KeyEvent::new(code, KeyModifiers::NONE), 59);
            (pressed, view)
        };
        assert_eq!(press(KeyCode::Down).1.scroll, 1);
        assert_eq!(press(KeyCode::Up).1.scroll, 0);
        assert_eq!(press(KeyCode::Up).1.scroll, 0);
        assert_eq!(press(KeyCode::End).1.scroll, 58);
        assert_eq!(press(KeyCode::PageDown).1.scroll, 58);
        assert_eq!(press(KeyCode::PageUp).1.scroll, 50);
        let turned = press(KeyCode::Tab).1;
        assert_eq!((turned.page, turned.scroll), (Page::Signals, 0));
        assert_eq!([press(KeyCode::Tab).1.page, press(KeyCode::Tab).1.page], [Page::Details, Page::Axes]);
        assert!(press(KeyCode::Char('p')).1.paused && !press(KeyCode::Char('p')).1.paused);
        assert_eq!(press(KeyCode::Char('x')).0, Pressed::Nothing);
        assert_eq!(press(KeyCode::Char('q')).0, Pressed::Quit);
    }
}
