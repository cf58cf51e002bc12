//! The signals, one a line.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Row, Table, Widget};

use super::super::picture::Picture;
use super::{faint, first, range, titled};
use crate::words::signals;

/// Lines all of them take.
pub(super) fn rows(picture: &Picture) -> usize {
    picture.state.signals.len().min(picture.description.signals.len())
}

/// Draws them from the one numbered `scroll` on, below their title.
pub(super) fn render(picture: &Picture, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let all = rows(picture);
    let room = usize::from(area.height.saturating_sub(1));
    let from = first(scroll, room, all);
    let inner = titled(format!(" signals{} ", range(from, room, all)), area, buffer);
    let described = picture.description.signals.iter();
    let shown = described.zip(&picture.state.signals).skip(from).take(room);
    let longest = picture.description.signals.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let widths = [
        Constraint::Length(longest.min(usize::from((area.width / 2).max(40))) as u16),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Min(0),
    ];
    let row = |(it, signal)| row(it, signal);
    Table::new(shown.map(row), widths).column_spacing(1).render(inner, buffer);
}

fn row<'a>(it: &'a ipc::description::SignalDescription, signal: &ipc::state::Signal) -> Row<'a> {
    let style = if signal.fresh { Style::new() } else { faint() };
    Row::new([
        it.name.clone(),
        it.direction.to_string(),
        it.value_type.to_string(),
        signals::text(it, signal),
    ])
    .style(style)
}
