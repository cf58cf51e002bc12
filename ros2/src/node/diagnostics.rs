//! /diagnostics: bus, cycle, commands, axes, signals, and the cycle's own diagnostics.

mod signals;

use ipc::description::Description;
use ipc::state::{Axis, BringUpPhase, DriveState, Freshness, LockState, Spread, State, StopReason};
use ipc::words;
use serde_json::Value;

use super::{Endpoints, Moment, Timer};
use crate::clock::{WallClock, monotonic_ns};
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::basic::Header;
use crate::messages::sensor::{DiagnosticArray, DiagnosticStatus, KeyValue, Level};

/// Writer, and the counters at the last message: their growth since then is an error now.
pub(crate) struct Diagnostics {
    writer: Writer,
    timer: Timer,
    last: Option<Counted>,
}

/// Counters that only grow.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    broken_cycles: u64,
    frames_lost: u64,
    overruns: u64,
    refused: u64,
    clamped: u64,
}

impl Diagnostics {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        let kind = "diagnostic_msgs/DiagnosticArray";
        let writer = endpoints.publish("/diagnostics", kind, Quality::Reliable)?;
        Ok(Self { writer, timer: Timer::default(), last: None })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>, now_ns: u64) {
        if !self.timer.due(now_ns, moment.settings.diagnostics_rate) {
            return;
        }
        let stamp = WallClock::now().stamp(monotonic_ns());
        let mut statuses = match moment.robot.as_deref_mut() {
            None => {
                self.last = None;
                vec![status("cycle", Level::Stale, "no cycle is running", Vec::new())]
            }
            Some(robot) => {
                robot.refresh();
                let counted = Counted::of(robot.state());
                let last = self.last.replace(counted).unwrap_or(counted);
                let command = &robot.state().command;
                if let Some(why) = words::last_refusal(command, robot.description())
                    .filter(|_| counted.refused > last.refused)
                {
                    moment.voice.warn("refused", format_args!("the cycle refused a command: {why}"));
                }
                if let Some(what) = words::last_clamp(command, robot.description())
                    .filter(|_| counted.clamped > last.clamped)
                {
                    moment.voice.warn("clamped", format_args!("the cycle clamped a command: {what}"));
                }
                let mut statuses = of_state(robot.state(), robot.description(), last, now_ns);
                statuses.extend(robot.diagnostics().as_deref().map(of_document).unwrap_or_default());
                for status in &mut statuses {
                    status.hardware_id.clone_from(&robot.description().robot);
                }
                statuses
            }
        };
        for status in &mut statuses {
            status.name = format!("{}: {}", moment.node.base(), status.name);
        }
        let header = Header { stamp, frame_id: String::new() };
        self.writer.send(&DiagnosticArray { header, status: statuses });
    }

    /// Time of the next message.
    pub(crate) fn next(&self) -> u64 {
        self.timer.next()
    }
}

impl Counted {
    fn of(state: &State) -> Self {
        Self {
            broken_cycles: state.bus.broken_cycles,
            frames_lost: state.bus.frames_lost,
            overruns: state.timing.overruns,
            refused: state.command.refused,
            clamped: state.command.clamped,
        }
    }
}

fn of_state(state: &State, description: &Description, last: Counted, now_ns: u64) -> Vec<DiagnosticStatus> {
    let mut statuses = vec![
        bus(state, description, last),
        cycle(state, description, last, now_ns),
        command(state, description, last),
    ];
    let axes = description.axes.iter().zip(&state.axes);
    statuses.extend(
        axes.map(|(about, axis)| self::axis(&about.name, axis, state, description, state.control.enabled)),
    );
    statuses.extend(signals::signals(state, description));
    statuses
}

fn bus(state: &State, description: &Description, last: Counted) -> DiagnosticStatus {
    let State { bus, clock, .. } = state;
    let broken = bus.broken_cycles.saturating_sub(last.broken_cycles);
    let lost = bus.frames_lost.saturating_sub(last.frames_lost);
    let phase = words::bus_phase(bus.phase);
    let (level, message) = if bus.phase != OP {
        (Level::Error, format!("not in Op: {phase}"))
    } else if broken > 0 {
        (Level::Error, format!("{broken} cycles with a wrong working counter since the last message"))
    } else if lost > 0 {
        (Level::Warn, format!("{lost} frames lost since the last message"))
    } else if state.clock.lock == LockState::Lost as u8 {
        (Level::Warn, "the cycle is not locked to the reference clock any more".to_owned())
    } else {
        (Level::Ok, "in Op, all SubDevices answer".to_owned())
    };
    let values = vec![
        pair("phase", phase),
        pair("SubDevices", description.sub_devices.len()),
        pair("working counter errors of the last cycle", bus.working_counter_errors),
        pair("cycles with a wrong working counter", bus.broken_cycles),
        pair("frames sent", bus.frames_sent),
        pair("frames lost", bus.frames_lost),
        pair("frames rejected", bus.frames_rejected),
        pair("largest clock difference [ns]", bus.clock_difference_ns),
        pair("link errors", bus.link_errors),
        pair("lock to the reference clock", words::clock_lock(clock.lock)),
        pair("times the lock was lost", clock.losses),
        pair("release against its place [ns]", clock.phase_error_ns),
        pair("reference clock less this host's [ns]", clock.difference_ns),
        pair("drift of the reference clock [ppb]", clock.drift_ppb),
        pair("frame behind SYNC0 [ns]", clock.frame_phase_ns),
    ];
    status("bus", level, message, values)
}

fn cycle(state: &State, description: &Description, last: Counted, now_ns: u64) -> DiagnosticStatus {
    let timing = &state.timing;
    let overruns = timing.overruns.saturating_sub(last.overruns);
    let silence = now_ns.saturating_sub(state.release_ns);
    let (level, message) = if silence > SILENCE_NS {
        (Level::Error, format!("its last cycle was {:.1} s ago", silence as f64 / 1e9))
    } else if overruns > 0 {
        (
            Level::Warn,
            format!(
                "{overruns} overruns since the last message, the last at cycle {}",
                timing.last_overrun
            ),
        )
    } else {
        (Level::Ok, format!("on the cycle, every {} us", description.period_ns as f64 / 1e3))
    };
    let mut values = vec![
        pair("period [us]", description.period_ns as f64 / 1e3),
        pair("cycles", timing.cycles),
        pair("overruns", timing.overruns),
        pair("releases skipped", timing.skipped),
    ];
    for (name, spread) in [
        ("wakeup latency", &timing.wakeup_latency),
        ("period jitter", &timing.period_jitter),
        ("execution time", &timing.execution),
    ] {
        values.push(pair(&format!("{name}, mean and maximum [us]"), of_spread(spread)));
    }
    status("cycle", level, message, values)
}

fn of_spread(spread: &Spread) -> String {
    format!("{:.1}, {:.1}", spread.mean_ns as f64 / 1e3, spread.maximum_ns as f64 / 1e3)
}

fn command(state: &State, description: &Description, last: Counted) -> DiagnosticStatus {
    let command = &state.command;
    let refused = command.refused.saturating_sub(last.refused);
    let clamped = command.clamped.saturating_sub(last.clamped);
    let clamp = words::last_clamp(command, description);
    let why = words::last_refusal(command, description);
    let (level, message) = match (&why, command.freshness) {
        (Some(why), _) if refused > 0 => {
            (Level::Warn, format!("{refused} commands refused since the last message: {why}"))
        }
        _ if clamped > 0 => {
            let what = clamp.as_deref().unwrap_or_default();
            (Level::Warn, format!("{clamped} commands clamped since the last message: {what}"))
        }
        (_, Freshness::Fresh) => (Level::Ok, "a command holds".to_owned()),
        (_, Freshness::Stale) => (Level::Ok, "the last command has ended".to_owned()),
        (_, Freshness::Never) => (Level::Ok, "no command was given".to_owned()),
    };
    let active = description.controllers.get(usize::from(state.control.active));
    let values = vec![
        pair("active controller", active.map_or("none", |active| active.name.as_str())),
        pair("drives asked to be enabled", state.control.enabled),
        pair("trajectory", state.control.trajectory_status),
        pair("accepted", command.accepted),
        pair("refused", command.refused),
        pair("last refusal", why.unwrap_or_else(|| "none".to_owned())),
        pair("clamped", command.clamped),
        pair("last clamp", clamp.unwrap_or_else(|| "none".to_owned())),
    ];
    status("command", level, message, values)
}

fn axis(
    name: &str,
    axis: &Axis,
    state: &State,
    description: &Description,
    enabled: bool,
) -> DiagnosticStatus {
    let drive = words::drive(axis, description);
    let reason = StopReason::from_code(axis.stop);
    let silent_for = words::silent_for(axis, description);
    let waits_for = reason.and_then(|it| words::waits_for(it, name));
    let (level, message) = if axis.drive_state == FAULT || axis.drive_state == FAULT_REACTION {
        (Level::Error, format!("its drive is in {drive}"))
    } else if let Some(time) = silent_for.filter(|_| matches!(reason, None | Some(StopReason::Stale))) {
        (Level::Error, words::silence(time))
    } else if axis.stop == StopReason::Stale as u8 {
        (Level::Ok, "at standstill: the last command has ended".to_owned())
    } else if reason == Some(StopReason::Jog) {
        (Level::Ok, StopReason::Jog.words().to_owned())
    } else if let Some((why, remedy)) = words::why_stopped(axis, state, description).zip(waits_for) {
        (Level::Warn, format!("{why}; {remedy}"))
    } else if let Some(why) = words::why_stopped(axis, state, description) {
        (Level::Error, format!("stopped: {why}"))
    } else if !axis.fresh {
        (Level::Warn, "its numbers are not of the last cycle".to_owned())
    } else if enabled && axis.phase == 0 {
        (Level::Warn, format!("not enabled: {drive}"))
    } else {
        (Level::Ok, words::phase(axis.phase).into_owned())
    };
    let values = vec![
        pair("drive", drive),
        pair("homed", axis.homed),
        pair("mode", words::mode(axis.mode).unwrap_or_else(|| "unknown".into())),
        pair("stopped with", words::stopped_with(axis, description).unwrap_or("none")),
        pair("interlock", words::interlock_name(axis, description).unwrap_or("none")),
        pair("position [rad]", axis.position),
        pair("velocity [rad/s]", axis.velocity),
        pair("effort [N m]", axis.effort),
        pair("target position [rad]", axis.target_position),
        pair("target velocity [rad/s]", axis.target_velocity),
    ];
    status(&format!("axis {name}"), level, message, values)
}

/// Silence after which a cycle counts as stopped.
const SILENCE_NS: u64 = 1_000_000_000;

/// Phase Op of [`ipc::state::Bus::phase`]; states of [`Axis::drive_state`].
const OP: u8 = BringUpPhase::Op as u8;
const FAULT_REACTION: u8 = DriveState::FaultReactionActive as u8;
const FAULT: u8 = DriveState::Fault as u8;

/// Converts the cycle's own diagnostics: each top-level object (tasks, channels, ...) becomes a
/// separate status with all its values as pairs; a list of sentences named `warnings` becomes
/// warnings.
fn of_document(document: &str) -> Vec<DiagnosticStatus> {
    let Ok(Value::Object(parts)) = serde_json::from_str(document) else {
        return Vec::new();
    };
    let mut statuses = Vec::new();
    let mut rest = Vec::new();
    for (name, part) in parts {
        match part {
            Value::Array(warnings) if name == "warnings" => {
                let level = if warnings.is_empty() { Level::Ok } else { Level::Warn };
                let said: Vec<String> = warnings.iter().map(plain).collect();
                let message = if said.is_empty() { "none".to_owned() } else { said.join("; ") };
                statuses.push(status("warnings", level, message, Vec::new()));
            }
            Value::Object(_) | Value::Array(_) => {
                let mut values = Vec::new();
                flatten("", &part, &mut values);
                statuses.push(status(&name, Level::Ok, String::new(), values));
            }
            other => flatten(&name, &other, &mut rest),
        }
    }
    if !rest.is_empty() {
        statuses.push(status("about", Level::Ok, String::new(), rest));
    }
    statuses
}

/// Largest number of pairs of one status: more is for `onbeat top`.
const MOST_VALUES: usize = 128;

pub(super) fn flatten(prefix: &str, value: &Value, values: &mut Vec<KeyValue>) {
    let below = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match value {
        _ if values.len() >= MOST_VALUES => {}
        Value::Object(parts) => parts.iter().for_each(|(name, part)| flatten(&below(name), part, values)),
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                // Items of a list that have names are labelled by them.
                let name = part.get("name").and_then(Value::as_str);
                flatten(&below(&name.map_or_else(|| index.to_string(), str::to_owned)), part, values);
            }
        }
        other => values.push(pair(prefix, plain(other))),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn status(
    name: &str,
    level: Level,
    message: impl Into<String>,
    values: Vec<KeyValue>,
) -> DiagnosticStatus {
    DiagnosticStatus {
        level: level as u8,
        name: name.to_owned(),
        message: message.into(),
        hardware_id: String::new(),
        values,
    }
}

pub(super) fn pair(key: &str, value: impl ToString) -> KeyValue {
    KeyValue { key: key.to_owned(), value: value.to_string() }
}

#[cfg(test)]
mod tests {
    use types::CyclicMode;

    use super::*;
    use ipc::description::AxisDescription;
    use ipc::state::{Bus, Clock, CommandState, Limit};

    #[test]
    fn only_worsening_since_the_last_message_is_reported() {
        let bus = Bus { phase: OP, broken_cycles: 7, ..Bus::default() };
        let state = State { bus, ..State::default() };
        let level = |last: Counted| super::bus(&state, &Description::default(), last).level;
        assert_eq!(level(Counted { broken_cycles: 7, ..Counted::default() }), Level::Ok as u8);
        assert_eq!(level(Counted { broken_cycles: 6, ..Counted::default() }), Level::Error as u8);
        let down = State::default();
        let status = super::bus(&down, &Description::default(), Counted::default());
        assert_eq!((status.level, status.message.as_str()), (Level::Error as u8, "not in Op: Scan"));
    }

    #[test]
    fn a_lost_lock_is_a_warning_and_the_frame_phase_is_reported() {
        let bus = Bus { phase: OP, ..Bus::default() };
        let status = |lock| {
            let clock = Clock { lock, frame_phase_ns: 512_340, difference_ns: -7, ..Clock::default() };
            let state = State { bus, clock, ..State::default() };
            super::bus(&state, &Description::default(), Counted::default())
        };
        assert_eq!(status(LockState::Locked as u8).level, Level::Ok as u8);
        let lost = status(LockState::Lost as u8);
        assert_eq!(lost.level, Level::Warn as u8);
        for expected in [
            pair("lock to the reference clock", "lost"),
            pair("frame behind SYNC0 [ns]", 512_340),
            pair("reference clock less this host's [ns]", -7),
        ] {
            assert!(lost.values.contains(&expected), "{expected:?} in {:?}", lost.values);
        }
    }

    fn two_axes() -> Description {
        let axis = |name: &str| AxisDescription::new(name, CyclicMode::Position, 1.0, 1.0);
        Description { axes: vec![axis("a"), axis("b")], ..Description::default() }
    }

    #[test]
    fn a_command_beyond_a_limit_is_a_warning_with_its_axis() {
        let description = two_axes();
        let command = CommandState {
            accepted: 3,
            clamped: 2,
            last_clamp: Limit::Effort as u8,
            last_clamped_axis: 1,
            last_refused_axis: u16::MAX,
            last_refused_signal: u16::MAX,
            ..CommandState::default()
        };
        let state = State { command, ..State::default() };
        let status =
            |clamped| super::command(&state, &description, Counted { clamped, ..Counted::default() });
        assert_eq!(status(2).level, Level::Ok as u8);
        assert_eq!(status(1).level, Level::Warn as u8);
        assert_eq!(
            status(1).message,
            "1 commands clamped since the last message: b: beyond the limit of torque"
        );
    }

    #[test]
    fn a_faulted_axis_is_an_error_and_a_stationary_one_is_not() {
        let status = |axis: Axis| super::axis("a", &axis, &State::default(), &two_axes(), true);
        let level = |axis: Axis| status(axis).level;
        let good = Axis { drive_state: 5, phase: 2, fresh: true, ..Axis::default() };
        assert_eq!(level(good), Level::Ok as u8);
        assert_eq!(level(Axis { stop: StopReason::Stale as u8, ..good }), Level::Ok as u8);
        assert_eq!(level(Axis { stop: StopReason::FollowingError as u8, ..good }), Level::Error as u8);
        let with_another = Axis { stop: StopReason::OtherAxis as u8, stopped_with: Some(1), ..good };
        assert_eq!(level(with_another), Level::Error as u8);
        let message = "stopped: another axis was stopped, and this one with it: b";
        assert_eq!(status(with_another).message, message);
        assert!(status(with_another).values.contains(&pair("stopped with", "b")));
        assert_eq!(level(Axis { drive_state: FAULT, ..good }), Level::Error as u8);
        assert_eq!(level(Axis { phase: 0, ..good }), Level::Warn as u8);
        assert_eq!(words::drive_state(FAULT), "Fault", "the number is that of the state");
        assert_eq!(words::bus_phase(OP), "Op");
    }

    // feature(ros2): /diagnostics shows no error of an axis that a jog moves, or that waits for its homing
    #[test]
    fn a_jog_and_an_axis_that_waits_are_no_errors() {
        let status = |stop: StopReason| {
            let axis = Axis { drive_state: 5, phase: 1, fresh: true, stop: stop as u8, ..Axis::default() };
            super::axis("a", &axis, &State::default(), &two_axes(), true)
        };
        let jog = status(StopReason::Jog);
        assert_eq!((jog.level, jog.message.as_str()), (Level::Ok as u8, "a jog moves it"));
        let waiting = [StopReason::NotHomed, StopReason::OutsideLimits, StopReason::SetUp];
        for stop in waiting.into_iter().chain([StopReason::AfterSetUp, StopReason::Chain]) {
            assert_eq!(status(stop).level, Level::Warn as u8, "{stop}");
        }
        assert!(status(StopReason::NotHomed).message.contains("`onbeat control home a`"));
        for stop in [StopReason::JogTorque, StopReason::Interlock, StopReason::UnreferencedChange] {
            assert_eq!(status(stop).level, Level::Error as u8, "{stop}");
        }
    }

    #[test]
    fn a_document_of_any_shape_becomes_pairs() {
        let document = r#"{"tasks":[{"name":"imu","period_ns":5}],"warnings":["a","b"],"version":"1","deep":{"a":{"b":1}}}"#;
        let statuses = of_document(document);
        let find = |name: &str| statuses.iter().find(|status| status.name == name).unwrap();
        assert_eq!(find("tasks").values[1], pair("imu.period_ns", 5));
        assert_eq!((find("warnings").level, find("warnings").message.as_str()), (1, "a; b"));
        assert_eq!(find("deep").values, [pair("a.b", 1)]);
        assert_eq!(find("about").values, [pair("version", 1)]);
        for nonsense in ["", "[1]", "{", "null"] {
            assert!(of_document(nonsense).is_empty());
        }
        let long = format!("{{\"x\":[{}0]}}", "0,".repeat(10_000));
        assert_eq!(of_document(&long)[0].values.len(), MOST_VALUES);
    }
}
