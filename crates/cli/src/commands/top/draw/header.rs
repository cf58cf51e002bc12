//! The lines that are always there: the cycle, its bus, its timing, its commands, what moves it.

use std::collections::VecDeque;
use std::time::Duration;

use ipc::state::{Freshness, LockState, Spread, TrajectoryStatus};
use ipc::words;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, Widget};

use super::super::picture::{Picture, Standing};
use super::{bold, faint, rounded};

/// Lines it takes.
pub(super) fn height(picture: &Picture) -> u16 {
    let optional = [
        clock(picture).is_some(),
        refused(picture).is_some(),
        clamped(picture).is_some(),
        picture.description.base.is_some(),
    ];
    9 + optional.map(u16::from).iter().sum::<u16>()
}

/// Lines of the short one.
pub(super) const SHORT: u16 = 2;

/// Draws it, in fewer lines if the space is small.
pub(super) fn render(picture: &Picture, paused: bool, area: Rect, buffer: &mut Buffer) {
    let mut lines = vec![title(picture, paused)];
    lines.extend(bus(picture));
    if area.height < height(picture) {
        lines.truncate(usize::from(SHORT));
        return Paragraph::new(lines).render(area, buffer);
    }
    lines.extend(clock(picture));
    let [above, times, below] = Layout::vertical([
        Constraint::Length(lines.len() as u16),
        Constraint::Length(4),
        Constraint::Min(0),
    ])
    .areas(area);
    Paragraph::new(lines).render(above, buffer);
    timing(picture, times, buffer);
    let mut lines = vec![command(picture)];
    lines.extend(refused(picture));
    lines.extend(clamped(picture));
    lines.push(control(picture));
    lines.extend(base(picture));
    Paragraph::new(lines).render(below, buffer);
}

fn title(picture: &Picture, paused: bool) -> Line<'static> {
    let it = &picture.description;
    let period = it.period_ns as f64 / 1e6;
    let standing = match &picture.standing {
        Standing::Live if paused => Span::styled("paused", Style::new().fg(Color::Yellow)),
        Standing::Live => Span::styled("live", Style::new().fg(Color::Green)),
        Standing::Still(since) => {
            Span::styled(format!("no cycle for {}", span(*since)), Style::new().fg(Color::Yellow))
        }
        Standing::Ended(why, since) => {
            let words = format!("{why} ({} ago)", span(*since));
            Span::styled(words, Style::new().fg(Color::Red))
        }
    };
    Line::from(vec![
        Span::styled(format!(" {}", it.robot), bold()),
        Span::raw(format!("  every {period} ms  cycle {}  ", picture.state.cycle)),
        standing,
        Span::styled(format!("  onbeat {}", it.version), faint()),
    ])
}

fn bus(picture: &Picture) -> [Line<'static>; 2] {
    let it = &picture.state.bus;
    let inputs = match (it.all_fresh, it.absent) {
        (true, 0) => "all inputs fresh".to_owned(),
        (true, absent) => format!("inputs fresh, {absent} absent"),
        (false, 0) => "inputs not all fresh".to_owned(),
        (false, absent) => format!("inputs not all fresh, {absent} absent"),
    };
    let clocks = if has_clocks(picture) {
        format!("   clocks within {} us", micros(it.clock_difference_ns))
    } else {
        String::new()
    };
    let first = format!(
        "{}, {inputs}   WKC errors {} now, {} ever{clocks}",
        words::bus_phase(it.phase),
        it.working_counter_errors,
        it.broken_cycles,
    );
    let second = format!(
        "frames {} sent, {} taken, {} {}, {} rejected   link errors {}",
        it.frames_sent,
        it.frames_accepted,
        it.frames_lost,
        if picture.is_simulated() { "late" } else { "lost" },
        it.frames_rejected,
        it.link_errors
    );
    let well = it.all_fresh && it.working_counter_errors == 0;
    let style = if well { Style::new() } else { Style::new().fg(Color::Yellow) };
    [row("bus", Span::styled(first, style)), row("", Span::raw(second))]
}

/// True on a bus with distributed clocks, once a value of them was received.
fn has_clocks(picture: &Picture) -> bool {
    let (bus, clock) = (&picture.state.bus, &picture.state.clock);
    clock.fresh || clock.frame_phase_ns != 0 || bus.clock_difference_ns != 0
}

/// Offset of the cycle to the reference clock; `None` if its time was never received.
fn clock(picture: &Picture) -> Option<Line<'static>> {
    let it = &picture.state.clock;
    let follows = it.lock != LockState::Off as u8;
    if !follows && !it.fresh && it.frame_phase_ns == 0 {
        return None;
    }
    let lock = if follows {
        format!("{}, error {} us   ", words::clock_lock(it.lock), signed_micros(it.phase_error_ns))
    } else {
        String::new()
    };
    let text = format!(
        "{lock}frame {} us behind SYNC0   differs {} us",
        micros(it.frame_phase_ns),
        signed_micros(it.difference_ns)
    );
    let well = !follows || it.lock == LockState::Locked as u8;
    let style = if well { Style::new() } else { Style::new().fg(Color::Yellow) };
    Some(row("clock", Span::styled(text, style)))
}

/// The three times, each with the last ones seen as a sparkline, and what went wrong.
fn timing(picture: &Picture, area: Rect, buffer: &mut Buffer) {
    let it = &picture.state.timing;
    let rows = Layout::vertical([Constraint::Length(1); 4]).split(area);
    let last = if it.overruns > 0 { format!(" (cycle {})", it.last_overrun) } else { String::new() };
    let overruns = format!("skipped {}  overruns {}{last}", it.skipped, it.overruns);
    let style = if it.overruns > 0 { Style::new().fg(Color::Yellow) } else { faint() };
    let head = Line::from(vec![
        Span::styled(" timing, us ", bold()),
        Span::styled(format!("{:>15}{:>9}{:>9} ", "last", "mean", "max"), faint()),
        Span::styled(overruns, style),
    ]);
    Paragraph::new(head).render(rows[0], buffer);
    let history = &picture.history;
    time("wake-up latency", &it.wakeup_latency, &history.wakeup_latency, rows[1], buffer);
    time("period jitter", &it.period_jitter, &history.period_jitter, rows[2], buffer);
    time("execution", &it.execution, &history.execution, rows[3], buffer);
}

fn time(name: &str, spread: &Spread, seen: &VecDeque<u64>, area: Rect, buffer: &mut Buffer) {
    let [numbers, line] = Layout::horizontal([Constraint::Length(46), Constraint::Min(0)]).areas(area);
    let text = format!(
        "   {name:<15} {:>8} {:>8} {:>8}",
        micros(spread.last_ns),
        micros(spread.mean_ns),
        micros(spread.maximum_ns)
    );
    Paragraph::new(text).render(numbers, buffer);
    // Its heights are computed of eight times the value and the lines it has: whatever a cycle
    // publishes must not overflow that.
    let drawn = |&it: &u64| it.min(u64::MAX >> 19);
    let newest: Vec<u64> = seen.iter().rev().take(usize::from(line.width)).rev().map(drawn).collect();
    Sparkline::default().data(&newest).style(Style::new().fg(Color::Cyan)).render(line, buffer);
}

fn command(picture: &Picture) -> Line<'static> {
    let it = &picture.state.command;
    let age = picture.command_age().map_or(String::new(), |age| format!(", given {} ago", span(age)));
    let counted = format!("{} taken over, {} refused, {} clamped", it.accepted, it.refused, it.clamped);
    let text = format!("{}{age}   {counted}", it.freshness);
    let style = match it.freshness {
        Freshness::Fresh => Style::new().fg(Color::Green),
        Freshness::Stale => Style::new().fg(Color::Yellow),
        Freshness::Never => Style::new(),
    };
    row("command", Span::styled(text, style))
}

fn refused(picture: &Picture) -> Option<Line<'static>> {
    let why = words::last_refusal(&picture.state.command, &picture.description)?;
    Some(row("", Span::styled(format!("last refused: {why}"), Style::new().fg(Color::Yellow))))
}

fn clamped(picture: &Picture) -> Option<Line<'static>> {
    let what = words::last_clamp(&picture.state.command, &picture.description)?;
    Some(row("", Span::styled(format!("last clamped: {what}"), Style::new().fg(Color::Yellow))))
}

fn control(picture: &Picture) -> Line<'static> {
    let it = &picture.state.control;
    let controllers = &picture.description.controllers;
    let name = controllers.get(usize::from(it.active)).map_or_else(
        || "none".to_owned(),
        |controller| {
            let other = if controller.name == controller.kind_name() {
                String::new()
            } else {
                format!(" ({})", controller.kind_name())
            };
            format!("{}{other}", controller.name)
        },
    );
    let enabled = if it.enabled { "drives commanded to enable" } else { "drives not commanded to enable" };
    let trajectory = match it.trajectory_status {
        TrajectoryStatus::None => String::new(),
        status => format!(
            "   trajectory {} {status}, {}",
            it.trajectory,
            span(Duration::from_nanos(it.trajectory_elapsed_ns))
        ),
    };
    row("control", Span::raw(format!("{name}, {enabled}{trajectory}")))
}

fn base(picture: &Picture) -> Option<Line<'static>> {
    picture.description.base.as_ref()?;
    let [x, y, yaw] = picture.state.base.pose.map(|number| rounded(number, 3));
    let [ahead, left, turn] = picture.state.base.twist.map(|number| rounded(number, 2));
    Some(row(
        "base",
        Span::raw(format!("x {x} m  y {y} m  yaw {yaw} rad   {ahead}, {left} m/s  {turn} rad/s")),
    ))
}

/// A line with its name in front.
fn row(name: &'static str, text: Span<'static>) -> Line<'static> {
    Line::from(vec![Span::styled(format!(" {name:<8}"), bold()), text])
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn signed_micros(ns: i64) -> String {
    format!("{:+.1}", ns as f64 / 1e3)
}

/// A time as people say it.
fn span(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..=119 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_any_length_is_drawn() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 60, 1));
        let spread = Spread { last_ns: u64::MAX, minimum_ns: 0, maximum_ns: u64::MAX, mean_ns: u64::MAX };
        time("execution", &spread, &[0, u64::MAX, u64::MAX / 2].into(), buffer.area, &mut buffer);
        assert_eq!(buffer[(47, 0)].symbol(), "█");
    }
}
