//! Set-points of each axis, over the last pictures: a line each.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline, Widget};
use types::CyclicMode;

use super::super::picture::Picture;
use super::{faint, first, number, range, titled};

/// Draws them from the one numbered `scroll` on, below their title.
pub(super) fn render(picture: &Picture, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let all = picture.state.axes.len();
    let room = usize::from(area.height.saturating_sub(2));
    let from = first(scroll, room, all);
    let inner = titled(
        format!(" curves{} (each from its lowest to its highest) ", range(from, room, all)),
        area,
        buffer,
    );
    let longest = picture.description.axes.iter().map(|axis| axis.name.chars().count()).max().unwrap_or(0);
    let name = longest.clamp(4, if area.width < 120 { 20 } else { 40 });
    let names = picture.short_axis_names(name);
    let lines = Layout::vertical(vec![Constraint::Length(1); room + 1]).split(inner);
    let head = format!("{:name$} {:8} {:>8} {:>8}", "", "", "lowest", "highest");
    Paragraph::new(Line::from(head)).style(faint()).render(lines[0], buffer);
    for (axis, line) in (from..all).take(room).zip(lines.iter().skip(1)) {
        let width = name as u16 + 28;
        let [words, beside] =
            Layout::horizontal([Constraint::Length(width), Constraint::Min(0)]).areas(*line);
        let quantity = match picture.mode(axis) {
            CyclicMode::Position => "position",
            CyclicMode::Velocity => "velocity",
            CyclicMode::Torque => "torque",
        };
        let bounds = curve(picture, axis, beside, buffer);
        let ends =
            bounds.map_or(["-".to_owned(), "-".to_owned()], |(low, high)| [number(low), number(high)]);
        let text = format!(
            "{:name$} {quantity:8} {:>8} {:>8} ",
            names.get(axis).map_or("?", String::as_str),
            ends[0],
            ends[1]
        );
        Paragraph::new(text).render(words, buffer);
    }
}

/// Draws the curve of one axis, from its lowest to its highest value in sight, which it returns.
pub(super) fn curve(picture: &Picture, axis: usize, area: Rect, buffer: &mut Buffer) -> Option<(f64, f64)> {
    let seen = picture.history.axes.get(axis);
    let newest = seen.into_iter().flatten().rev().take(usize::from(area.width));
    let mut values: Vec<f64> = newest.copied().collect();
    values.reverse();
    let known = || values.iter().copied().filter(|value| value.is_finite());
    let bounds = known().reduce(f64::min).zip(known().reduce(f64::max));
    let (low, high) = bounds.unwrap_or_default();
    let heights = values.iter().map(|value| height(*value, low, high));
    Sparkline::default()
        .data(heights.collect::<Vec<_>>())
        .max(HIGHEST)
        .style(Style::new().fg(Color::Cyan))
        .render(area, buffer);
    bounds
}

/// Height of a bar; none where there is no value.
fn height(value: f64, low: f64, high: f64) -> u64 {
    if !value.is_finite() {
        return 0;
    }
    let share = if high > low { (value - low) / (high - low) } else { 0.5 };
    1 + (share * (HIGHEST - 1) as f64).round() as u64
}

/// Steps of a bar.
const HIGHEST: u64 = 8;
