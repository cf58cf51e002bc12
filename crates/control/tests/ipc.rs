//! Commands from outside down to simulated drives, in virtual time: taken, refused, stale, and from
//! which client.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ethercat::cia402::{self, CyclicMode};
use ethercat_linux::link::DirectLink;
use ipc::client::Client;
use ipc::command::{AxisTarget, Command, Writer};
use ipc::description::Description;
use ipc::state::{Freshness, Refusal, State, StopReason};
use ipc::words::{NO_COMMAND, why_stopped};
use motion::supervision::{Limits, OnStale, Outage, Settings, Written};
use motion::{NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondSquared};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{Controller, ControllerOutput, CycleInfo, ExternalCommand, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{Circumstances, Finding};
use rt::clock::{Clock, MonotonicClock, VirtualClock};
use support::{IpcFolder, PERIOD, Servant, axes, cycle_of, ipc, rules, segment_in};

const DRIVES: usize = 2;
const DECELERATION: f64 = 20.0;
const ENABLED: u8 = 5;

/// Runs next to the cycle on its own thread, between two cycles: sees the state of the last one,
/// and writes.
type Visitor = dyn FnMut(&mut Visit) + Send;

/// Means of a [`Visitor`].
struct Visit {
    client: Client,
    writer: Option<Writer>,
    clock: VirtualClock,
    /// The state of the last cycle.
    state: State,
    /// Cycles since all drives were enabled for the first time.
    cycles: u64,
}

impl Visit {
    /// Asks for this until `time_to_live` from now, by the cycle's clock.
    fn send(&mut self, axes: Vec<Option<AxisTarget>>, time_to_live: Duration) {
        let until = self.clock.now() + time_to_live;
        let time_to_live = until.since(MonotonicClock.now());
        let command =
            Command { time_to_live_ns: time_to_live.as_nanos() as u64, axes, ..Command::default() };
        if self.writer.is_none() {
            self.writer = Some(self.client.command().unwrap());
        }
        self.writer.as_mut().unwrap().send(&command).unwrap();
    }
}

struct Visited {
    servant: Servant,
    visit: Visit,
    visitor: Box<Visitor>,
    states: Sender<State>,
}

impl Controller for Visited {
    fn command(&mut self, command: &ExternalCommand) {
        self.servant.command(command);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.servant.update(info, io);
        let Ok(state) = self.visit.client.state().read() else { return };
        let enabled = state.axes.iter().all(|axis| axis.drive_state == ENABLED);
        self.visit.cycles += u64::from(enabled || self.visit.cycles > 0);
        self.visit.state = state;
        if self.visit.cycles > 0 && !info.stopping {
            (self.visitor)(&mut self.visit);
            let _ = self.states.send(self.visit.state.clone());
        }
    }

    fn output(&self) -> ControllerOutput {
        self.servant.output()
    }
}

fn supervised(mode: CyclicMode, on_stale: OnStale) -> Vec<AxisConfiguration> {
    let settings = Settings {
        mode: mode.into(),
        limits: Limits {
            position: None,
            // With a torque an axis is as fast as its friction lets it.
            velocity: RadiansPerSecond(if mode == CyclicMode::Torque { 100.0 } else { 5.0 }),
            acceleration: RadiansPerSecondSquared(DECELERATION),
            deceleration: RadiansPerSecondSquared(DECELERATION),
            jerk: Limits::usual_jerk(RadiansPerSecondSquared(DECELERATION)),
            torque: NewtonMetres(2.0),
            step: Radians(0.02),
            // Its controller steps to a velocity at once.
            written: Written::default(),
        },
        following_error: None,
        on_stale,
        outage: Outage::default(),
    };
    let axis = |axis| AxisConfiguration { mode: mode.into(), supervision: Some(settings), ..axis };
    axes(DRIVES).into_iter().map(axis).collect()
}

/// The states of a cycle with this [`Visitor`], from the first cycle with all drives enabled.
fn states(
    name: &str,
    mode: CyclicMode,
    axes: &[AxisConfiguration],
    cycles: u64,
    visitor: impl FnMut(&mut Visit) + Send + 'static,
) -> Vec<State> {
    played(name, mode, axes, cycles, visitor).0
}

/// The same, and all that went wrong.
fn played(
    name: &str,
    mode: CyclicMode,
    axes: &[AxisConfiguration],
    cycles: u64,
    visitor: impl FnMut(&mut Visit) + Send + 'static,
) -> (Vec<State>, Vec<Finding>) {
    let clock = VirtualClock::default();
    // Commands bear the machine's own time: the cycle's is ahead of it all the time.
    clock.advance(Duration::from_nanos(MonotonicClock.now().as_nanos()) + Duration::from_secs(600));
    let folder = IpcFolder::new(name);
    let (ipc, _server, client) = ipc(&folder, rules(DRIVES));
    let (states, seen): (_, Receiver<State>) = channel();
    let controller = Visited {
        servant: Servant::new(DRIVES, 2.0),
        visit: Visit { client, writer: None, clock: clock.clone(), state: State::default(), cycles: 0 },
        visitor: Box::new(visitor),
        states,
    };
    let link = DirectLink::new(segment_in(DRIVES, mode), clock.clone(), Duration::from_micros(60));
    let configuration = CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    let (cycle, _observer) = cycle_of(link, clock, axes, controller, configuration);
    let ended = cycle.with_ipc(ipc).run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let circumstances = Circumstances { period: PERIOD, hurried: false, resumes: false };
    (seen.try_iter().collect(), ended.findings(circumstances))
}

/// The first state that is so.
fn first(states: &[State], what: impl Fn(&State) -> bool) -> usize {
    states.iter().position(what).expect("it never comes to that")
}

/// Cycles over which a quick stop or a loss of torque lasts at most.
const LONG: usize = 1_500;

fn moves(mode: CyclicMode) -> Vec<Option<AxisTarget>> {
    match mode {
        CyclicMode::Position => {
            vec![Some(AxisTarget::Position(Radians(50.0))), Some(AxisTarget::Position(Radians(-50.0)))]
        }
        CyclicMode::Velocity => vec![
            Some(AxisTarget::Velocity(RadiansPerSecond(2.0))),
            Some(AxisTarget::Velocity(RadiansPerSecond(-1.0))),
        ],
        CyclicMode::Torque => vec![
            Some(AxisTarget::Effort(NewtonMetres(0.03))),
            Some(AxisTarget::Effort(NewtonMetres(-0.03))),
        ],
    }
}

/// A writer that sends ten commands and then no more, until another one comes 2 000 cycles later.
fn gone_stale(name: &str, mode: CyclicMode, on_stale: OnStale) -> Vec<State> {
    let states = states(name, mode, &supervised(mode, on_stale), 3_000, move |visit| {
        if visit.cycles <= 200 || visit.cycles > 2_200 {
            if visit.cycles == 2_201 {
                visit.writer = None;
            }
            visit.send(moves(mode), Duration::from_millis(20));
        }
    });
    let stale = first(&states, |state| state.command.freshness == Freshness::Stale);
    assert!((200..240).contains(&stale), "{stale}");
    assert!(states[stale - 1].axes.iter().all(|axis| axis.velocity.abs() > 0.5), "{:?}", states[stale - 1]);
    for state in &states[stale + 1..stale + LONG] {
        assert!(state.axes.iter().all(|axis| axis.stop == StopReason::Stale as u8), "{state:?}");
    }
    let rest = &states[stale + LONG];
    assert!(rest.axes.iter().all(|axis| axis.velocity.abs() < 0.05), "{rest:?}");
    // The next one takes over.
    let last = states.last().unwrap();
    assert_eq!(last.command.freshness, Freshness::Fresh);
    for axis in &last.axes {
        assert!(axis.drive_state == ENABLED && axis.stop == 0 && axis.velocity.abs() > 0.5, "{last:?}");
    }
    assert!(last.bus.broken_cycles <= states[0].bus.broken_cycles, "{last:?}");
    states
}

/// Checks that the commands of drives never change their speed faster than supervision may brake.
fn brakes_gently(states: &[State]) {
    let stale = first(states, |state| state.command.freshness == Freshness::Stale);
    for pair in states[stale - 1..stale + LONG].windows(2) {
        for (before, after) in pair[0].axes.iter().zip(&pair[1].axes) {
            assert_eq!(after.drive_state, ENABLED);
            let change = (after.target_velocity - before.target_velocity).abs();
            assert!(change <= DECELERATION * 1e-3 * 1.001 + 1e-4, "{pair:?}");
        }
    }
}

// feature(axes): a command that ends at standstill, as at the end of a jog, is not shown as a failure
#[test]
fn a_command_that_ends_at_standstill_is_no_failure() {
    for (name, speed, is_ended) in [("ended-rest", 0.0, true), ("ended-motion", 1.0, false)] {
        let mode = CyclicMode::Velocity;
        let states = states(name, mode, &supervised(mode, OnStale::Hold), 800, move |visit| {
            if visit.cycles < 200 {
                let target = Some(AxisTarget::Velocity(RadiansPerSecond(speed)));
                visit.send(vec![target; DRIVES], Duration::from_millis(50));
            }
        });
        let stale = first(&states, |state| state.command.freshness == Freshness::Stale);
        for state in &states[stale + 2..] {
            assert!(state.axes.iter().all(|axis| axis.stop == StopReason::Stale as u8), "{state:?}");
            assert!(state.axes.iter().all(|axis| axis.ended == is_ended), "{name}: {state:?}");
        }
        let description = Description::default();
        let last = states.last().unwrap();
        let why = why_stopped(&last.axes[0], last, &description).unwrap();
        assert_eq!(why == NO_COMMAND, is_ended, "{name}: {why}");
    }
}

// feature(axes): stale commands: hold, ramp, quick stop, disable, down to the drives
#[test]
fn stale_positions_are_held_after_braking() {
    let states = gone_stale("hold", CyclicMode::Position, OnStale::Hold);
    let stale = first(&states, |state| state.command.freshness == Freshness::Stale);
    let targets = |cycle: usize| states[cycle].axes[0].target_position;
    for three in states[stale - 2..=stale + LONG].windows(3) {
        let [first, second, third] = [0, 1, 2].map(|cycle| three[cycle].axes[0].target_position);
        let change = ((third - second) - (second - first)).abs();
        assert!(change <= DECELERATION * 1e-6 + 1e-5, "{change}: {three:?}");
        assert_eq!(three[2].axes[0].drive_state, ENABLED);
    }
    // 2 rad/s at 20 rad/s^2: 0.1 s and 0.1 rad.
    let run_out = targets(stale + 200) - targets(stale - 1);
    assert!((0.08..0.12).contains(&run_out), "{run_out}");
    assert_eq!(targets(stale + LONG), targets(stale + 200));
}

#[test]
fn stale_velocities_brake_and_stay_enabled() {
    brakes_gently(&gone_stale("velocity-hold", CyclicMode::Velocity, OnStale::Hold));
}

// feature(axes): stale commands: hold, ramp, quick stop, disable, down to the drives
#[test]
fn ramp_to_zero_keeps_the_ratio_of_the_axes() {
    let states = gone_stale("ramp", CyclicMode::Velocity, OnStale::Ramp);
    brakes_gently(&states);
    let stale = first(&states, |state| state.command.freshness == Freshness::Stale);
    for state in &states[stale..stale + 140] {
        let [fast, slow] = [state.axes[0].target_velocity, state.axes[1].target_velocity];
        assert!((fast + 2.0 * slow).abs() < 1e-4, "{state:?}");
    }
}

// feature(axes): stale commands: hold, ramp, quick stop, disable, down to the drives
#[test]
fn a_quick_stop_brakes_by_the_drive_and_takes_the_torque_off() {
    for (name, mode) in [("qs-p", CyclicMode::Position), ("qs-v", CyclicMode::Velocity)] {
        let states = gone_stale(name, mode, OnStale::QuickStop);
        let stale = first(&states, |state| state.command.freshness == Freshness::Stale);
        let shown = |wanted: cia402::State| {
            let number = cia402::State::ALL.iter().position(|&state| state == wanted).unwrap() as u8 + 1;
            states[stale..stale + LONG]
                .iter()
                .any(|state| state.axes.iter().all(|axis| axis.drive_state == number))
        };
        assert!(shown(cia402::State::QuickStopActive) && shown(cia402::State::SwitchOnDisabled));
    }
}

// feature(axes): stale commands: hold, ramp, quick stop, disable, down to the drives
#[test]
fn disable_takes_the_torque_off_at_once() {
    let states = gone_stale("disable", CyclicMode::Position, OnStale::Disable);
    let stale = first(&states, |state| state.command.freshness == Freshness::Stale);
    assert!(
        states[stale + 50].axes.iter().all(|axis| axis.drive_state < ENABLED),
        "{:?}",
        states[stale + 50]
    );
}

#[test]
fn torques_that_go_stale_halt_the_drive_or_fall_to_zero() {
    let halted = gone_stale("halt", CyclicMode::Torque, OnStale::Hold);
    let ramped = gone_stale("torque-ramp", CyclicMode::Torque, OnStale::Ramp);
    for states in [halted, ramped] {
        let stale = first(&states, |state| state.command.freshness == Freshness::Stale);
        let rest = &states[stale + LONG];
        assert!(rest.axes.iter().all(|axis| axis.target_effort == 0.0 && axis.drive_state == ENABLED));
    }
}

/// All that went wrong in a run of 1 000 cycles in which these targets are sent in the cycles that
/// `sent` names.
fn findings(
    name: &str,
    mode: CyclicMode,
    targets: &[Option<AxisTarget>],
    sent: impl Fn(u64) -> bool + Send + 'static,
) -> Vec<Finding> {
    let targets = targets.to_vec();
    let (_, findings) = played(name, mode, &supervised(mode, OnStale::Ramp), 1_000, move |visit| {
        if sent(visit.cycles) {
            visit.send(targets.clone(), Duration::from_millis(20));
        }
    });
    findings
}

// feature(ipc): a command that is lost in motion and never comes back fails its run
#[test]
fn command_lost_in_motion_is_a_finding() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque] {
        let lost = |name: &str, sent: fn(u64) -> bool| findings(name, mode, &moves(mode), sent);
        assert_eq!(lost("lost", |cycle| cycle <= 200), [Finding::CommandLost], "{mode:?}");
        // The instant at which it went stale counts, and not the long rest after it.
        let again = |cycle| cycle <= 200 || (400..500).contains(&cycle);
        assert_eq!(lost("lost-again", again), [Finding::CommandLost], "{mode:?}");
        assert_eq!(lost("back", |cycle| cycle <= 200 || cycle >= 400), [], "{mode:?}");
        assert_eq!(lost("never", |_| false), [], "{mode:?}");
    }
}

// feature(ipc): a command that is lost in motion and never comes back fails its run
#[test]
fn a_command_that_ends_when_its_axes_rest_is_no_finding() {
    let near = [0.1, 1.1].map(|target| Some(AxisTarget::Position(Radians(target))));
    assert_eq!(findings("rests", CyclicMode::Position, &near, |cycle| cycle <= 300), []);
    let still = [Some(AxisTarget::Velocity(RadiansPerSecond(0.0))); DRIVES];
    assert_eq!(findings("stands", CyclicMode::Velocity, &still, |cycle| cycle <= 300), []);
    // An axis that follows a torque is not at standstill though it does not move.
    let slight = [Some(AxisTarget::Effort(NewtonMetres(0.005))); DRIVES];
    assert_eq!(
        findings("pushes", CyclicMode::Torque, &slight, |cycle| cycle <= 300),
        [Finding::CommandLost]
    );
}

// feature(ipc): commands refused and counted with reason and axis
#[test]
fn invalid_command_is_counted_and_moves_nothing() {
    let axes = supervised(CyclicMode::Position, OnStale::Hold);
    let bad = [
        (vec![None, Some(AxisTarget::Position(Radians(f64::NAN)))], Refusal::NotFinite),
        (vec![None, Some(AxisTarget::Velocity(RadiansPerSecond(f64::NEG_INFINITY)))], Refusal::NotFinite),
        (vec![None, Some(AxisTarget::Effort(NewtonMetres(f64::INFINITY)))], Refusal::NotFinite),
        (
            vec![
                Some(AxisTarget::Position(Radians(1.0))),
                Some(AxisTarget::Effort(NewtonMetres(f64::NAN))),
            ],
            Refusal::NotFinite,
        ),
    ];
    let targets = bad.clone();
    let states = states("refused", CyclicMode::Position, &axes, 100, move |visit| {
        if let Some((axes, _)) = targets.get(visit.cycles as usize / 10) {
            if visit.cycles % 10 == 1 {
                visit.send(axes.clone(), Duration::from_secs(1));
            }
        }
    });
    for (number, (_, why)) in bad.iter().enumerate() {
        let state = &states[number * 10 + 8];
        assert_eq!((state.command.refused, state.command.accepted), (number as u64 + 1, 0));
        assert_eq!((state.command.last_refusal, state.command.last_refused_axis), (*why as u8, 1));
        assert_eq!(state.command.freshness, Freshness::Never);
    }
    let (begin, end) = (&states[5].axes, &states.last().unwrap().axes);
    assert!(begin.iter().zip(end).all(|(begin, end)| (begin.position - end.position).abs() < 1e-3));
}

#[test]
fn a_command_older_than_its_time_to_live_moves_nothing() {
    let axes = supervised(CyclicMode::Position, OnStale::Hold);
    let states = states("expired", CyclicMode::Position, &axes, 200, |visit| {
        if visit.cycles == 10 {
            // The cycle's clock is ten minutes ahead of the machine's.
            let command = Command {
                time_to_live_ns: 1_000_000,
                axes: moves(CyclicMode::Position),
                ..Command::default()
            };
            let mut writer = visit.client.command().unwrap();
            writer.send(&command).unwrap();
            visit.writer = Some(writer);
        }
    });
    let last = states.last().unwrap();
    assert_eq!((last.command.freshness, last.command.accepted), (Freshness::Stale, 1));
    let begin = &states[5].axes;
    assert!(begin.iter().zip(&last.axes).all(|(begin, end)| (begin.position - end.position).abs() < 1e-3));
}

#[test]
fn every_figure_of_the_state_is_filled() {
    let axes = supervised(CyclicMode::Position, OnStale::Hold);
    let states = states("figures", CyclicMode::Position, &axes, 500, |visit| {
        visit.send(moves(CyclicMode::Position), Duration::from_millis(50));
    });
    assert!(states.windows(2).all(|pair| pair[1].cycle == pair[0].cycle + 1));
    assert!(states.windows(2).all(|pair| pair[1].release_ns == pair[0].release_ns + 1_000_000));
    let last = states.last().unwrap();
    assert_eq!((last.bus.phase, last.bus.all_fresh, last.bus.working_counter_errors), (7, true, 0));
    assert!(last.bus.frames_sent > 500 && last.bus.frames_accepted > 500 && last.bus.frames_lost == 0);
    assert!(last.timing.cycles > 400 && last.timing.overruns == 0, "{:?}", last.timing);
    assert_eq!(last.command.sequence, last.command.accepted);
    for axis in &last.axes {
        assert_eq!((axis.drive_state, axis.phase, axis.fresh, axis.stop), (ENABLED, 2, true, 0));
        assert!((axis.target_position - axis.position).abs() < 0.2 && axis.velocity.abs() > 1.0);
    }
}
