//! The axes, one a line.

use ipc::state::{Axis, DriveState, InputLevel, StopReason};
use ipc::words;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Widget};
use types::time::span;

use super::super::picture::Picture;
use super::curves::curve;
use super::{faint, first, length, number, range, titled};

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
    let inner = match columns.curves {
        Some(left) => render_curves(picture, from, left, inner, buffer),
        None => inner,
    };
    let names = picture.short_axis_names(usize::from(columns.name));
    let heads = COLUMNS.map(|(head, side, ..)| Cell::from(Text::from(head).alignment(side)));
    let shown = (from..all).take(room).filter_map(|axis| Some((axis, picture.state.axes.get(axis)?)));
    let rows = shown.map(|(axis, it)| {
        Row::new(columns.shown(cells(picture, axis, it, &names[axis], columns))).style(style(it))
    });
    let table = Table::new(rows, columns.widths())
        .header(Row::new(columns.shown(heads)).style(faint()))
        .column_spacing(1);
    table.render(inner, buffer);
}

/// Draws curves of the axes from the first one shown on, right of so many columns, and gives the
/// place left of them.
fn render_curves(picture: &Picture, first: usize, left: u16, area: Rect, buffer: &mut Buffer) -> Rect {
    let [table, curves] = Layout::horizontal([Constraint::Length(left), Constraint::Min(0)]).areas(area);
    Paragraph::new("latest values, in the unit of the mode").style(faint()).render(curves, buffer);
    for (axis, line) in (first..rows(picture)).zip(curves.rows().skip(1)) {
        curve(picture, axis, line, buffer);
    }
    table
}

/// Columns from left to right: head, alignment, least space in which the column is shown, and
/// width; widths of the name and of the reason follow from their contents. [`cells`] has a row's in
/// the same order.
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
    /// Columns of the table if curves fit next to it.
    curves: Option<u16>,
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
        let others: u16 =
            Self { room, name: 0, curves: None }.lengths().iter().map(|length| length + 1).sum();
        let reason = picture.state.axes.iter().map(|axis| count(&stopped(axis, picture))).max();
        let whole = reason.unwrap_or(0).max(count("stopped"));
        // A reason is not cut for a name that is the longer one.
        let reason = whole.min(LONGEST_REASON);
        let rest = (width + 1).saturating_sub(others + reason + 1);
        let name = longest.min(rest).max(4);
        let table = others + name + whole.max(LONGEST_REASON) + GAP;
        let is_wide = table + LEAST_CURVE <= width;
        Self { room, name, curves: Some(table).filter(|_| is_wide && picture.history.has_curves()) }
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

    /// Cells of a row that are shown.
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
fn cells<'a>(
    picture: &'a Picture,
    axis: usize,
    it: &Axis,
    name: &str,
    columns: Columns,
) -> [Cell<'a>; COLUMNS.len()] {
    let configured = || picture.description.axes.get(axis).map_or("", |axis| axis.mode.name());
    let mode = words::mode(it.mode).unwrap_or_else(|| configured().into());
    let (target, error) = picture
        .target_and_error(axis)
        .map_or_else(<(String, String)>::default, |(target, error)| (number(target), known(error)));
    let text = |text: String| Cell::from(text);
    let right = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    let silent = words::silent_for(it, &picture.description);
    let state = match DriveState::from_code(it.drive_state) {
        _ if silent.is_some() && columns.room != Room::Wide => "no data".to_owned(),
        _ if silent.is_some() => format!("no data for {}", span(silent.unwrap_or_default())),
        Some(state) if columns.room != Room::Wide => in_a_word(state).to_owned(),
        _ => words::drive_state(it.drive_state).into_owned(),
    };
    [
        text(name.to_owned()),
        text(mode.into_owned()),
        text(state),
        right(number(it.position)),
        right(known(Some(it.velocity).filter(|_| it.fresh))),
        right(known(picture.effort(axis).filter(|_| it.fresh))),
        right(target),
        right(error),
        text(stopped(it, picture)),
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

/// Reason of its stop, the most telling word first, for the last column is cut.
fn stopped(axis: &Axis, picture: &Picture) -> String {
    if let Some(interlock) = interlock(axis, picture) {
        return interlock;
    }
    let silent = words::silent_for(axis, &picture.description);
    let short = match StopReason::from_code(axis.stop) {
        None | Some(StopReason::Stale | StopReason::Outage) if silent.is_some() => {
            return format!("no data {}", span(silent.unwrap_or_default()));
        }
        _ if axis.stop == 0 && !axis.fresh => "(old)",
        None if axis.stop == 0 => "",
        Some(StopReason::Stale) if axis.ended => "no command",
        Some(StopReason::Stale) => "stale command",
        Some(StopReason::PositionLimit) => "position limit",
        Some(StopReason::VelocityLimit) => "velocity limit",
        Some(StopReason::AccelerationLimit) => "acceleration limit",
        Some(StopReason::Runaway) => "runaway",
        Some(StopReason::BrakeNotOpen) => "brake not open",
        Some(StopReason::BrakeNotClosed) => "brake not closed",
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
        Some(StopReason::AwaitsStart) => "waits for start",
        Some(StopReason::Brake) => "brake output",
        Some(StopReason::Implausible) => "implausible feedback",
        Some(
            StopReason::UnreferencedRestart
            | StopReason::UnreferencedChange
            | StopReason::UnreferencedCount
            | StopReason::UnreferencedSensor
            | StopReason::UnreferencedMemory
            | StopReason::UnreferencedStart
            | StopReason::UnreferencedInUse
            | StopReason::UnreferencedMoved,
        ) => "unreferenced",
        Some(StopReason::Jog) => "jog",
        Some(StopReason::JogTorque) => "jog torque",
        Some(StopReason::NotHomed) => "not homed",
        Some(StopReason::OutsideLimits | StopReason::InwardsOnly) => "outside limits",
        Some(StopReason::SetUp) => "set-up mode",
        Some(StopReason::AfterSetUp) => "after set-up",
        Some(StopReason::OtherAxis | StopReason::Chain) => {
            let with = words::stopped_with(axis, &picture.description);
            return with.map_or_else(|| "another axis".to_owned(), |name| format!("with {name}"));
        }
        None => return words::stop(axis.stop).unwrap_or_default().into_owned(),
    };
    short.to_owned()
}

/// The interlock that has stopped an axis, and its level; once it permits again, what ends the
/// stop.
fn interlock(axis: &Axis, picture: &Picture) -> Option<String> {
    let name = words::interlock_name(axis, &picture.description)?;
    let interlock = picture.state.interlocks.get(usize::from(axis.interlock?))?;
    let level = match InputLevel::from_code(interlock.level)? {
        _ if interlock.permits => return Some(format!("{name}: reset")),
        InputLevel::Unknown => "not read",
        InputLevel::Low => "low",
        InputLevel::High => "high",
        InputLevel::Lost => "lost",
        InputLevel::ForcedLow => "forced low",
        InputLevel::ForcedHigh => "forced high",
    };
    Some(format!("{name} {level}"))
}

/// A number that not every drive has.
fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Columns from which names, states and reasons are shown in full.
const WIDE: u16 = 110;

/// Columns from which all numbers are.
const USUAL: u16 = 72;

/// Columns between the table and the curves next to it.
const GAP: u16 = 2;

/// Least width of a readable curve, in columns.
const LEAST_CURVE: u16 = 36;

/// Letters of the reasons that are not cut.
const LONGEST_REASON: u16 = 15;
