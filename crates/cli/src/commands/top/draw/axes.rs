//! The axes, one a line.

use ipc::state::{Axis, DriveState, StopReason};
use ipc::words;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, Widget};

use super::super::picture::Picture;
use super::{faint, first, range, titled};

/// Lines all of them take.
pub(super) fn rows(picture: &Picture) -> usize {
    picture.state.axes.len()
}

/// Draws them from the one numbered `scroll` on, below their title.
pub(super) fn render(picture: &Picture, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let all = rows(picture);
    let room = usize::from(area.height.saturating_sub(2));
    let from = first(scroll, room, all);
    let title = format!(
        " axes{} (rad, rad/s, N m; target and error in the unit of the mode) ",
        range(from, room, all)
    );
    let inner = titled(title, area, buffer);
    let heads = ["", "mode", "state", "position", "velocity", "torque", "target", "error", "stopped"];
    let heads = heads.into_iter().enumerate().map(|(place, head)| {
        let side = if (3..8).contains(&place) { Alignment::Right } else { Alignment::Left };
        Cell::from(Text::from(head).alignment(side))
    });
    let shown = (from..all).take(room).filter_map(|axis| Some((axis, picture.state.axes.get(axis)?)));
    let table = Table::new(shown.map(|(axis, it)| row(picture, axis, it)), widths(picture, area.width))
        .header(Row::new(heads).style(faint()))
        .column_spacing(1);
    table.render(inner, buffer);
}

/// At 80 columns the longest names and states are cut, and modes are left out; a wider terminal shows all.
fn widths(picture: &Picture, width: u16) -> [Constraint; 9] {
    let longest = picture.description.axes.iter().map(|axis| axis.name.chars().count()).max().unwrap_or(0);
    let name = if width >= WIDE { longest.min(usize::from(24 + width - WIDE)) } else { longest.min(8) };
    let (mode, state) = if width >= WIDE { (4, 22) } else { (0, 18) };
    [
        Constraint::Length(name.max(4) as u16),
        Constraint::Length(mode),
        Constraint::Length(state),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Min(0),
    ]
}

fn row<'a>(picture: &'a Picture, axis: usize, it: &Axis) -> Row<'a> {
    let mode = picture.description.axes.get(axis).map_or("", |axis| axis.mode.name());
    let (target, error) = picture
        .target_and_error(axis)
        .map_or_else(<(String, String)>::default, |(target, error)| (number(target), known(error)));
    let text = |text: String| Cell::from(text);
    let right = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    let fault = DriveState::from_code(it.drive_state).is_some_and(DriveState::is_faulted);
    let style = match (it.stop, it.fresh) {
        _ if fault => Style::new().fg(Color::Red),
        (0, true) => Style::new(),
        (0, false) => faint(),
        _ => Style::new().fg(Color::Yellow),
    };
    Row::new([
        text(picture.axis_name(axis).to_owned()),
        text(mode.to_owned()),
        text(words::drive_state(it.drive_state).into_owned()),
        right(number(it.position)),
        right(number(it.velocity)),
        right(known(picture.effort(axis))),
        right(target),
        right(error),
        text(stopped(it, words::stopped_with(it, &picture.description))),
    ])
    .style(style)
}

/// Reason of its stop, the word that tells most first, for the last column is cut.
fn stopped(axis: &Axis, with: Option<&str>) -> String {
    let short = match StopReason::from_code(axis.stop) {
        _ if axis.stop == 0 && !axis.fresh => "(old)",
        None if axis.stop == 0 => "",
        Some(StopReason::Stale) => "stale command",
        Some(StopReason::PositionLimit) => "position limit",
        Some(StopReason::VelocityLimit) => "velocity limit",
        Some(StopReason::Step) => "step of the set-point",
        Some(StopReason::FollowingError) => "following error",
        Some(StopReason::Fault) => "fault of the drive",
        Some(StopReason::NotFinite) => "not a number",
        Some(StopReason::HomingError) => "homing error",
        Some(StopReason::HomingTimedOut) => "homing took too long",
        Some(StopReason::Outage) => "outage",
        Some(StopReason::Interlock) => "stop signal",
        Some(StopReason::NotPermitted) => "no permission",
        Some(StopReason::Ending) => "ending",
        Some(StopReason::Brake) => "brake output",
        Some(StopReason::OtherAxis) => {
            return with.map_or_else(|| "another axis".to_owned(), |name| format!("with {name}"));
        }
        None => return words::stop(axis.stop).unwrap_or_default().into_owned(),
    };
    short.to_owned()
}

/// A number that not every drive tells.
fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Seven letters at most, with as many decimals as there is room for.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let decimals = match value.abs() {
        0.0..100.0 => 3,
        100.0..1e3 => 2,
        1e3..1e5 => 0,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.decimals$}");
    // Rounded to nothing, a small negative number keeps no sign.
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

/// Columns from which names, states and reasons are shown in full.
const WIDE: u16 = 110;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_find_room_and_zero_has_no_sign() {
        for (value, text) in [
            (0.0, "0.000"),
            (-0.000_1, "0.000"),
            (-99.999, "-99.999"),
            (123.456, "123.46"),
            (-12_345.6, "-12346"),
            (1.0e9, "1.0e9"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number(value), text);
            assert!(number(value).len() <= 7);
        }
    }
}
