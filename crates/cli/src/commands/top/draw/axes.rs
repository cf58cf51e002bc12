//! The axes, one a line.

use ipc::state::{Axis, DriveState, StopReason};
use ipc::words;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, Widget};

use super::super::picture::Picture;
use super::{faint, first, length, range, titled};

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
    let columns = Columns::of(picture, area.width);
    let heads = COLUMNS.map(|(head, side, ..)| Cell::from(Text::from(head).alignment(side)));
    let shown = (from..all).take(room).filter_map(|axis| Some((axis, picture.state.axes.get(axis)?)));
    let rows =
        shown.map(|(axis, it)| Row::new(columns.shown(cells(picture, axis, it, columns))).style(style(it)));
    let table = Table::new(rows, columns.widths())
        .header(Row::new(columns.shown(heads)).style(faint()))
        .column_spacing(1);
    table.render(inner, buffer);
}

/// Columns from left to right: head, side, least room in which it is shown, and width; those of the name and of the reason
/// follow from what they show. [`cells`] has a row's in the same order.
const COLUMNS: [(&str, Alignment, Room, u16); 9] = [
    (NAME, Alignment::Left, Room::Small, 0),
    ("mode", Alignment::Left, Room::Wide, 4),
    ("state", Alignment::Left, Room::Small, 9),
    ("position", Alignment::Right, Room::Small, 8),
    ("velocity", Alignment::Right, Room::Usual, 8),
    ("torque", Alignment::Right, Room::Usual, 7),
    ("target", Alignment::Right, Room::Usual, 8),
    ("error", Alignment::Right, Room::Usual, 7),
    ("stopped", Alignment::Left, Room::Small, 0),
];

/// Head of the column of names.
const NAME: &str = "";

/// Columns that a terminal has room for.
#[derive(Clone, Copy)]
struct Columns {
    room: Room,
    name: u16,
}

/// Room of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Room {
    /// Of the numbers there is the position.
    Small,
    /// All numbers; states are a word.
    Usual,
    /// Modes, states and reasons are shown in full.
    Wide,
}

impl Columns {
    fn of(picture: &Picture, width: u16) -> Self {
        let count = |text: &str| length(text.chars().count());
        let longest = picture.description.axes.iter().map(|axis| count(&axis.name)).max().unwrap_or(0);
        let room = match width {
            WIDE.. => Room::Wide,
            USUAL.. => Room::Usual,
            _ => Room::Small,
        };
        let others: u16 = Self { room, name: 0 }.lengths().iter().map(|length| length + 1).sum();
        let with = |axis| words::stopped_with(axis, &picture.description);
        let reason = picture.state.axes.iter().map(|axis| count(&stopped(axis, with(axis)))).max();
        // A reason is not cut for a name that is the longer one.
        let reason = reason.unwrap_or(0).max(count("stopped")).min(LONGEST_REASON);
        let rest = (width + 1).saturating_sub(others + reason + 1);
        Self { room, name: longest.min(rest).max(4) }
    }

    /// Width of each column but the last.
    fn lengths(self) -> Vec<u16> {
        let width = |(head, .., width): (&str, Alignment, Room, u16)| match head {
            NAME => self.name,
            "state" if self.room == Room::Wide => 22,
            _ => width,
        };
        let mut lengths: Vec<u16> = self.shown(COLUMNS).into_iter().map(width).collect();
        lengths.pop();
        lengths
    }

    fn widths(self) -> Vec<Constraint> {
        self.lengths().into_iter().map(Constraint::Length).chain([Constraint::Min(0)]).collect()
    }

    /// Those of a row's cells that are shown.
    fn shown<T>(self, cells: impl IntoIterator<Item = T>) -> Vec<T> {
        let all = COLUMNS.into_iter().zip(cells);
        all.filter(|&((_, _, from, _), _)| from <= self.room).map(|(_, cell)| cell).collect()
    }
}

fn style(it: &Axis) -> Style {
    let fault = DriveState::from_code(it.drive_state).is_some_and(DriveState::is_faulted);
    match (it.stop, it.fresh) {
        _ if fault => Style::new().fg(Color::Red),
        (0, true) => Style::new(),
        (0, false) => faint(),
        _ => Style::new().fg(Color::Yellow),
    }
}

/// Cells of an axis, one for each of [`COLUMNS`].
fn cells<'a>(picture: &'a Picture, axis: usize, it: &Axis, columns: Columns) -> [Cell<'a>; COLUMNS.len()] {
    let configured = || picture.description.axes.get(axis).map_or("", |axis| axis.mode.name());
    let mode = words::mode(it.mode).unwrap_or_else(|| configured().into());
    let (target, error) = picture
        .target_and_error(axis)
        .map_or_else(<(String, String)>::default, |(target, error)| (number(target), known(error)));
    let text = |text: String| Cell::from(text);
    let right = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    let state = match DriveState::from_code(it.drive_state) {
        Some(state) if columns.room != Room::Wide => in_a_word(state).to_owned(),
        _ => words::drive_state(it.drive_state).into_owned(),
    };
    [
        text(shortened(picture.axis_name(axis), usize::from(columns.name))),
        text(mode.into_owned()),
        text(state),
        right(number(it.position)),
        right(number(it.velocity)),
        right(known(picture.effort(axis))),
        right(target),
        right(error),
        text(stopped(it, words::stopped_with(it, &picture.description))),
    ]
}

/// The state of a drive where there is no room for its name.
fn in_a_word(state: DriveState) -> &'static str {
    match state {
        DriveState::NotReadyToSwitchOn => "not ready",
        DriveState::SwitchOnDisabled => "disabled",
        DriveState::ReadyToSwitchOn => "ready",
        DriveState::SwitchedOn => "on",
        DriveState::OperationEnabled => "enabled",
        DriveState::QuickStopActive => "quickstop",
        DriveState::FaultReactionActive => "faulting",
        DriveState::Fault => "fault",
    }
}

/// A name that is too long, without its middle: names differ mostly at their ends.
pub(super) fn shortened(name: &str, room: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= room || room == 0 {
        return name.to_owned();
    }
    let end = (room - 1).div_ceil(2);
    let begin = room - 1 - end;
    letters[..begin].iter().chain(&['\u{2026}']).chain(&letters[letters.len() - end..]).collect()
}

/// Reason of its stop, the most telling word first, for the last column is cut.
fn stopped(axis: &Axis, with: Option<&str>) -> String {
    let short = match StopReason::from_code(axis.stop) {
        _ if axis.stop == 0 && !axis.fresh => "(old)",
        None if axis.stop == 0 => "",
        Some(StopReason::Stale) => "stale command",
        Some(StopReason::PositionLimit) => "position limit",
        Some(StopReason::VelocityLimit) => "velocity limit",
        Some(StopReason::Step) => "set-point step",
        Some(StopReason::FollowingError) => "following error",
        Some(StopReason::Fault) => "drive fault",
        Some(StopReason::NotFinite) => "not a number",
        Some(StopReason::HomingError) => "homing error",
        Some(StopReason::HomingTimedOut) => "homing timeout",
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

/// A number that not every drive has.
fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Seven letters at most, with as many decimals as there is room for.
pub(super) fn number(value: f64) -> String {
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

/// Columns from which all numbers are.
const USUAL: u16 = 72;

/// Letters of the reasons that are not cut.
const LONGEST_REASON: u16 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("left-leg-hip-yaw", 16), "left-leg-hip-yaw");
        assert_eq!(shortened("left-leg-hip-yaw", 10), "left\u{2026}p-yaw");
        assert_eq!(shortened("left-leg-hip-yaw", 1), "\u{2026}");
        assert_ne!(shortened("left-leg-hip-yaw", 9), shortened("left-leg-hip-roll", 9));
    }

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
