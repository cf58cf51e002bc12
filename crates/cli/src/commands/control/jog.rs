//! `onbeat control jog`: a base or an axis by keys that are held.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ipc::client::Client;
use ipc::command::{AxisTarget, Command, Twist, Writer};
use ipc::description::{Description, InterlockDescription};
use ipc::state::{Freshness, Refusal, State};
use ipc::words;
use motion::RadiansPerSecond;
use ratatui::termion::event::Key;
use ratatui::termion::raw::IntoRawMode;
use types::state::{InputLevel, StopReason};
use types::{AxisMode, BaseKind, ControllerKind, InterlockKind};

use super::position::some_share;
use super::{active, held_axis, place, powerless};
use crate::commands::top::Keyboard;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::target::first_state;

/// Moves an axis (CSP or CSV) or the base while a key is held: arrows, + and - for the speed, q to
/// end. An axis is jogged slowly, whatever controller is active, also in set-up mode or before it
/// is homed. The motion stops when no key comes for 0.3 s, and when this program or its terminal
/// ends. Keys that were queued while the program or its terminal was stalled are ignored.
#[derive(Args, Debug)]
pub(super) struct Jog {
    /// Axis (in PV and IP an axis of the active `joint_velocity` controller); default: the base
    axis: Option<String>,

    /// Velocity at the start; + and - change it. Of a jog as a share of its limit (100 %), else of
    /// the velocity limit (10 %)
    #[arg(long, value_name = "SHARE", value_parser = some_share)]
    speed: Option<f64>,
}

/// Target of the keys.
enum Moved<'a> {
    Base { velocity: f64, yaw: f64, sideways: bool },
    Axis { index: usize, axes: usize, name: &'a str, velocity: f64, jogs: bool },
}

/// Directions commanded by keys, each -1 to 1: ahead or along the axis, to the left, turn to the
/// left.
type Wanted = [f64; 3];

impl Jog {
    pub(super) fn execute(self, cycle: &Client, stop: &Stop) -> Result<(), Failure> {
        let no_terminal =
            |_| Failure::new("keys need a terminal: run it in one, or use `onbeat control move`");
        if !io::stdout().is_terminal() {
            return Err(no_terminal(io::ErrorKind::Unsupported.into()));
        }
        let Some(before) = first_state(cycle, stop)? else {
            return Err(Failure::new("ended before anything moved"));
        };
        let description = cycle.description();
        let moved = self.moved(description, &before)?;
        if let Some(why) = refused_jog(&moved, description, &before) {
            return Err(Failure::new(why));
        }
        if let Some(why) = powerless(moved.axes(description, &before), description, &before) {
            return Err(Failure::new(why));
        }
        let keyboard = Keyboard::open().map_err(no_terminal)?;
        let mut writer = cycle.command().map_err(Failure::new)?;
        output::say(moved.keys());
        // Undone when it is dropped: after an error and a panic, too.
        let mut screen = io::stdout().into_raw_mode().map_err(no_terminal)?;
        let mut held = Held::at(self.speed.unwrap_or(moved.usual_speed()));
        let mut looked = Instant::now();
        let lasts = match description.longest_time_to_live_ns {
            0 => HELD,
            nanoseconds => Duration::from_nanos(nanoseconds).min(HELD),
        };
        let mut held_since: Option<Instant> = None;
        let mut blocked = None;
        let (mut refused, mut refused_since) = (before.command.refused, None::<Instant>);
        let ended = loop {
            let Ok(Some(keys)) = keyboard.keys(lasts / 5) else { break Ok(()) };
            let since = std::mem::replace(&mut looked, Instant::now()).elapsed();
            if stop.is_requested() || !held.look(&keys, since) {
                break Ok(());
            }
            if held.last_key.elapsed() > HELD {
                held.wanted = [0.0; 3];
            }
            if let Err(error) = writer.send(&moved.command(&held, lasts)) {
                break Err(Failure::new(error));
            }
            let Ok(state) = cycle.state().read() else { continue };
            let is_refused =
                std::mem::replace(&mut refused, state.command.refused) != state.command.refused;
            let refusal = Refusal::from_code(state.command.last_refusal);
            let waits = matches!(refusal, Some(Refusal::JogHeld | Refusal::JogMoving));
            refused_since = is_refused.then(|| refused_since.unwrap_or_else(Instant::now));
            // An axis that is not quite at standstill, after another jog, is waited for.
            let may_pass = waits && refused_since.is_some_and(|since| since.elapsed() <= PASSING);
            if is_refused && !may_pass {
                let switch = refused_jog(&moved, description, &state);
                if let Some(why) = switch.filter(|_| refusal == Some(Refusal::JogNotPermitted)) {
                    break Err(Failure::new(why));
                }
                let why = words::last_refusal(&state.command, description).unwrap_or_default();
                // The state of the axis says more than the refusal.
                let cause =
                    moved.hindrance(&state, description).map_or(String::new(), |it| format!("; {it}"));
                break Err(Failure::new(format!("the cycle refused the command: {why}{cause}")));
            }
            let axes = moved.axes(description, &state);
            let held_by = held_axis(axes, description, &state).filter(|_| !moved.may_be_held(&state));
            held_since = held_by.is_some().then(|| held_since.unwrap_or_else(Instant::now));
            // A stop by an expired command or an outage ends by itself.
            let stays = held_by.filter(|_| held_since.is_some_and(|since| since.elapsed() > PASSING));
            if let Some(why) = powerless(axes, description, &state).or(stays) {
                break Err(Failure::new(why));
            }
            if held.wanted != [0.0; 3] {
                blocked = moved.outwards(&held, &state, description);
            }
            // A terminal that is gone is noticed at the keyboard.
            let _ = write!(screen, "\r{}\x1b[K", output::shown(&moved.line(&held, &state, description)));
            let _ = screen.flush();
        };
        let _ = write!(screen, "\r\n");
        held.wanted = [0.0; 3];
        let at_rest = rest(&mut writer, &moved.command(&held, lasts), &moved, cycle, lasts);
        // Keys that are still held are neither shown nor left to the shell.
        while keyboard.keys(Duration::ZERO).is_ok_and(|keys| keys.is_some_and(|it| !it.is_empty())) {}
        drop(screen);
        ended.and(blocked.map_or(Ok(()), |why| Err(Failure::new(why)))).and(at_rest)
    }

    fn moved<'a>(&'a self, description: &'a Description, state: &State) -> Result<Moved<'a>, Failure> {
        let Some(name) = &self.axis else {
            let base = description.base.as_ref().ok_or_else(|| {
                Failure::new("the robot has no base: name an axis, as `onbeat control jog AXIS`")
            })?;
            active(description, state, &[ControllerKind::DiffDrive, ControllerKind::OmniDrive], &[])?;
            return Ok(Moved::Base {
                velocity: base.velocity_limit,
                yaw: base.yaw_limit,
                sideways: base.kind != BaseKind::Differential,
            });
        };
        let index = place("axis", name, description.axes.iter().map(|it| it.name.as_str()))? as usize;
        let axis = &description.axes[index];
        let jog = axis
            .jog_velocity
            .filter(|_| matches!(axis.mode, AxisMode::CyclicPosition | AxisMode::CyclicVelocity));
        if jog.is_none() {
            active(description, state, &[ControllerKind::JointVelocity], &[index])?;
        }
        let (velocity, axes) = (jog.unwrap_or(axis.velocity_limit), description.axes.len());
        Ok(Moved::Axis { index, axes, name, velocity, jogs: jog.is_some() })
    }
}

/// Keys that are held.
struct Held {
    wanted: Wanted,
    last_key: Instant,
    speed: f64,
    /// Keys arrive that may have waited: none counts until the queue is empty.
    late: bool,
}

impl Held {
    fn at(speed: f64) -> Self {
        Self { wanted: [0.0; 3], last_key: Instant::now(), speed, late: false }
    }

    /// Evaluates the keys of one look, `since` after the look before; false if a key ends the jog.
    /// Keys that arrive after a pause of this program or its terminal are outdated: they may have
    /// been released since.
    fn look(&mut self, keys: &[Key], since: Duration) -> bool {
        self.late = since > HELD || (self.late && !keys.is_empty());
        if self.late {
            self.wanted = [0.0; 3];
            return !keys.iter().any(ends);
        }
        keys.iter().all(|&key| self.press(key))
    }

    /// False for a key that ends it.
    fn press(&mut self, key: Key) -> bool {
        let wanted = match key {
            _ if ends(&key) => return false,
            Key::Char('+') => {
                self.speed = (self.speed * 1.25).min(1.0);
                return true;
            }
            Key::Char('-') => {
                self.speed = (self.speed / 1.25).max(0.001);
                return true;
            }
            Key::Up => [1.0, 0.0, 0.0],
            Key::Down => [-1.0, 0.0, 0.0],
            Key::Char(',') => [0.0, 1.0, 0.0],
            Key::Char('.') => [0.0, -1.0, 0.0],
            Key::Left => [0.0, 0.0, 1.0],
            Key::Right => [0.0, 0.0, -1.0],
            // Any other key counts as a release.
            _ => [0.0; 3],
        };
        (self.wanted, self.last_key) = (wanted, Instant::now());
        true
    }
}

/// True of a key that ends it.
fn ends(key: &Key) -> bool {
    matches!(key, Key::Ctrl('c') | Key::Char('q') | Key::Esc)
}

impl Moved<'_> {
    fn command(&self, held: &Held, lasts: Duration) -> Command {
        let [ahead, side, turn] = held.wanted.map(|it| it * held.speed);
        let command = Command { time_to_live_ns: types::time::nanoseconds(lasts), ..Command::default() };
        match *self {
            Self::Base { velocity, yaw, sideways } => {
                let side = if sideways { side * velocity } else { 0.0 };
                Command { twist: Some(Twist::new(ahead * velocity, side, turn * yaw)), ..command }
            }
            Self::Axis { index, axes, velocity, jogs, .. } => {
                let mut targets = vec![None; axes];
                // Both pairs of arrows move it.
                let velocity = RadiansPerSecond((ahead - turn) * velocity);
                let target = if jogs { AxisTarget::Jog(velocity) } else { AxisTarget::Velocity(velocity) };
                targets[index] = Some(target);
                Command { axes: targets, ..command }
            }
        }
    }

    fn keys(&self) -> String {
        match self {
            Self::Base { sideways, .. } => format!(
                "hold up or down to drive, left or right to turn{}; + and - change the speed, q ends",
                if *sideways { ", comma or full stop to go sideways" } else { "" }
            ),
            Self::Axis { name, .. } => format!(
                "hold up or right to turn \"{name}\" on, down or left to turn it back; + and - change the speed, q ends"
            ),
        }
    }

    fn line(&self, held: &Held, state: &State, description: &Description) -> String {
        let share = 100.0 * held.speed;
        if held.late {
            return "keys came late: release all keys first".to_owned();
        }
        match *self {
            Self::Base { .. } => {
                let ([x, y, yaw], [ahead, _, turn]) = (state.base.pose, state.base.twist);
                format!(
                    "speed {share:.0} %  {ahead:+.2} m/s {turn:+.2} rad/s  at {x:.2} {y:.2} m {yaw:.2} rad"
                )
            }
            Self::Axis { index, .. } => {
                let axis = &state.axes[index];
                let why = words::why_stopped(axis, state, description);
                let why = why.filter(|_| axis.stop != StopReason::Jog as u8);
                let stopped = match self.outwards(held, state, description) {
                    Some(why) => format!("  {why}"),
                    None => why.map_or(String::new(), |why| format!("  stopped: {why}")),
                };
                format!(
                    "speed {share:.0} %  {:+.3} rad/s  at {:.4} rad{stopped}",
                    axis.velocity, axis.position
                )
            }
        }
    }

    fn axes<'a>(&'a self, description: &'a Description, state: &State) -> &'a [usize] {
        match self {
            Self::Base { .. } => {
                let active = description.controllers.get(usize::from(state.control.active));
                active.map_or(&[], |it| &it.axes)
            }
            Self::Axis { index, .. } => std::slice::from_ref(index),
        }
    }

    /// Reason for which an axis outside its position limits does not follow the keys.
    fn outwards(&self, held: &Held, state: &State, description: &Description) -> Option<String> {
        let Self::Axis { index, name, jogs: true, .. } = *self else { return None };
        let (lowest, highest) = description.axes[index].position_limits?;
        let ([ahead, _, turn], position) = (held.wanted, state.axes[index].position);
        let direction = ahead - turn;
        let inwards = match direction {
            1.0 if position > highest => "down or left",
            -1.0 if position < lowest => "up or right",
            _ => return None,
        };
        Some(format!(
            "{name} is not moved farther outside its position limits, {lowest:.4} to {highest:.4} rad: \
             hold {inwards} to jog it inwards"
        ))
    }

    /// Share of its velocity at the start.
    const fn usual_speed(&self) -> f64 {
        match self {
            Self::Axis { jogs: true, .. } => 1.0,
            Self::Axis { .. } | Self::Base { .. } => 0.1,
        }
    }

    /// True if a jog moves it although it is held.
    fn may_be_held(&self, state: &State) -> bool {
        let Self::Axis { index, jogs: true, .. } = *self else { return false };
        let reason = StopReason::from_code(state.axes[index].stop);
        reason.is_some_and(|it| {
            it.is_unreferenced()
                || matches!(
                    it,
                    StopReason::Stale
                        | StopReason::Jog
                        | StopReason::NotHomed
                        | StopReason::OutsideLimits
                        | StopReason::SetUp
                        | StopReason::AfterSetUp
                        | StopReason::Chain
                )
        })
    }

    /// Reason for which its axis cannot be jogged, with what to do.
    fn hindrance(&self, state: &State, description: &Description) -> Option<String> {
        let Self::Axis { index, jogs: true, .. } = *self else { return None };
        words::hindrance(index, state, description).filter(|_| !self.may_be_held(state))
    }

    /// True if nothing is asked to move any more.
    fn rests(&self, state: &State) -> bool {
        match *self {
            Self::Base { .. } => state.axes.iter().all(|axis| axis.target_velocity == 0.0),
            Self::Axis { index, .. } => state.axes[index].target_velocity == 0.0,
        }
    }
}

/// Sentence on an enabling switch that does not permit a jog.
fn refused_jog(moved: &Moved<'_>, description: &Description, state: &State) -> Option<String> {
    let Moved::Axis { index, name, jogs: true, .. } = *moved else { return None };
    let of_axis = |it: &&InterlockDescription| it.kind == InterlockKind::Jog && it.axes.contains(&index);
    let switches = description.interlocks.iter().zip(&state.interlocks);
    let (switch, level) = switches.into_iter().find(|(it, now)| of_axis(it) && !now.permits)?;
    let level = InputLevel::from_code(level.level).unwrap_or(InputLevel::Unknown);
    Some(format!("{name} is not jogged: {} {level}; press the enabling switch and hold it", switch.words()))
}

/// Holds the command at zero until all rests, so that it does not go stale in motion.
fn rest(
    writer: &mut Writer,
    zero: &Command,
    moved: &Moved<'_>,
    cycle: &Client,
    lasts: Duration,
) -> Result<(), Failure> {
    let begin = Instant::now();
    while begin.elapsed() < REST {
        writer.send(zero).map_err(Failure::new)?;
        thread::sleep(lasts / 5);
        // The first look may be older than the command.
        if begin.elapsed() > lasts && cycle.state().read().is_ok_and(|state| moved.rests(&state)) {
            wait_for_expiry(cycle, lasts);
            return Ok(());
        }
    }
    Err(Failure::new("the jogged axes are not at standstill after 10 s: check with `onbeat top`"))
}

/// Time without a repeat after which a key counts as released. A terminal repeats a held key some
/// 25 times a second.
const HELD: Duration = Duration::from_millis(300);

/// Time in which what holds an axis may pass.
const PASSING: Duration = Duration::from_secs(1);

/// Time for coming to rest.
const REST: Duration = Duration::from_secs(10);

/// Waits until the last command has expired, and holds no axis any more: the next command moves
/// them at once.
fn wait_for_expiry(cycle: &Client, lasts: Duration) {
    let is_held = |state: &State| state.axes.iter().any(|axis| axis.stop == StopReason::Stale as u8);
    let begin = Instant::now();
    while begin.elapsed() < lasts.saturating_add(PASSING) {
        thread::sleep(lasts / 5);
        let state = cycle.state().read();
        if state.is_ok_and(|state| state.command.freshness != Freshness::Fresh && !is_held(&state)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(program): `onbeat control move`, `jog`
    #[test]
    fn keys_say_where_to_and_any_other_key_stops() {
        let mut held = Held::at(0.1);
        let base = Moved::Base { velocity: 2.0, yaw: 4.0, sideways: false };
        let mut twist = |key| {
            assert!(held.press(key));
            base.command(&held, HELD).twist.unwrap()
        };
        assert_eq!(twist(Key::Up), Twist::new(0.2, 0.0, 0.0));
        assert_eq!(twist(Key::Right), Twist::new(0.0, 0.0, -0.4));
        assert_eq!(twist(Key::Char(',')), Twist::new(0.0, 0.0, 0.0), "no side");
        assert_eq!(twist(Key::Down), Twist::new(-0.2, 0.0, 0.0));
        assert_eq!(twist(Key::Char('x')), Twist::new(0.0, 0.0, 0.0));
        for jogs in [false, true] {
            let axis = Moved::Axis { index: 1, axes: 2, name: "a", velocity: 5.0, jogs };
            for (key, velocity) in [(Key::Right, 0.5), (Key::Up, 0.5), (Key::Left, -0.5)] {
                assert!(held.press(key));
                let velocity = RadiansPerSecond(velocity);
                let target = if jogs { AxisTarget::Jog(velocity) } else { AxisTarget::Velocity(velocity) };
                assert_eq!(axis.command(&held, HELD).axes, [None, Some(target)]);
            }
        }
        (0..99).for_each(|_| assert!(held.press(Key::Char('+'))));
        assert_eq!(held.speed, 1.0, "never beyond the limit");
        assert!(!held.press(Key::Char('q')) && !held.press(Key::Ctrl('c')));
    }
    // feature(program): `onbeat control jog`: keys that were queued while the program or its terminal stalled move nothing
    #[test]
    fn keys_after_a_pause_move_nothing_until_released() {
        let soon = HELD / 5;
        let mut held = Held::at(0.1);
        assert!(held.look(&[Key::Up], soon));
        assert_eq!(held.wanted, [1.0, 0.0, 0.0]);
        assert!(held.look(&[Key::Up; 99], HELD * 20));
        assert_eq!(held.wanted, [0.0; 3], "they waited");
        assert!(held.look(&[Key::Up, Key::Char('+')], soon));
        assert_eq!((held.wanted, held.speed), ([0.0; 3], 0.1), "so did these, or nobody let go");
        assert!(held.look(&[], soon) && held.look(&[Key::Up], soon));
        assert_eq!(held.wanted, [1.0, 0.0, 0.0], "pressed anew");
        assert!(!held.look(&[Key::Up, Key::Char('q')], HELD * 20), "the end is heard");
    }
}
