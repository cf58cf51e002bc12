//! Start requests through the manager, on simulated drives: a request acknowledges only the
//! conditions it was made for.
//!
//! Requests that stop a controller that ignores `stopping`, and that enable the axes of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use control::controller::{
    AxisReport, AxisTarget, Controller, ControllerOutput, CycleInfo, InterlockCause, Io,
};
use ethercat::cia402::{CyclicMode, Request, State};
use ipc::message::control::{Action, Refusal};
use ipc::state::{InputLevel, ProcessState};
use motion::supervision::StopReason;
use motion::{AxisPhase, Radians};
use onbeat_controllers::{Hold, JointPosition, Member, MemberKind};
use rig::bench::{Bench, Trouble};
use rig::loss::Loss;
use rig::way::{Headstrong, SPEED};
use rig::{CYCLE, Flow, Log, Rig, settings};

use crate::rig;

fn is_enabled(report: &AxisReport) -> bool {
    report.state == Some(State::OperationEnabled)
}

// feature(axes): main power that returns during `control enable` moves no axis
#[test]
fn power_that_returns_during_enable_moves_nothing() {
    let mut ids = [0; 2];
    let rig = Rig { enable: false, ..Rig::new(1, CyclicMode::Position) };
    let log = rig.run(vec![Headstrong::member(true, 1)], move |world| {
        match world.cycles {
            10 => world.losses.set(0, Loss::MainPower),
            100 => ids[0] = world.request(Action::Enable),
            // While the request is in progress.
            5_100 => {
                assert_eq!(world.reply(ids[0]), None);
                world.losses.set(0, Loss::Nothing);
            }
            8_000 => {
                assert_eq!(world.reply(ids[0]), Some(Err(Refusal::Held)));
                assert_eq!(world.reports[0].stop, Some(StopReason::AwaitsStart));
                ids[1] = world.request(Action::Enable);
            }
            9_000 => {
                assert_eq!(world.reply(ids[1]), Some(Ok(())));
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    });
    assert!(!log.cycles[..8_000].iter().any(|it| is_enabled(&it.reports[0])), "enabled by itself");
    let last = log.cycles.last().unwrap().reports[0];
    assert!(is_enabled(&last) && last.feedback.velocity.0 > 0.05, "{last:?}");
}

// feature(axes): STO that goes and returns during `control enable` needs another start request
#[test]
fn a_loss_during_enable_is_not_acknowledged() {
    let mut ids = [0; 2];
    let rig = Rig { enable: false, ..Rig::new(2, CyclicMode::Position) };
    let log = rig.run(vec![Headstrong::member(true, 2)], move |world| {
        match world.cycles {
            10 => world.losses.set(0, Loss::MainPower),
            100 => ids[0] = world.request(Action::Enable),
            // The first drive charges its DC link. The second is enabled, and loses its torque.
            400 => {
                assert!(is_enabled(&world.reports[1]));
                world.losses.set(1, Loss::SafeTorqueOff);
            }
            1_000 => world.losses.set(1, Loss::Nothing),
            2_000 => world.losses.set(0, Loss::Nothing),
            4_000 => {
                assert_eq!(world.reply(ids[0]), Some(Err(Refusal::Held)));
                assert!(is_enabled(&world.reports[0]));
                ids[1] = world.request(Action::Enable);
            }
            5_000 => {
                assert_eq!(world.reply(ids[1]), Some(Ok(())));
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    });
    assert!(!log.cycles[500..4_000].iter().any(|it| is_enabled(&it.reports[1])), "enabled by itself");
    assert!(is_enabled(&log.cycles.last().unwrap().reports[1]));
}

// feature(axes): a reset acknowledges the stops that were there when it began, and no later ones
#[test]
fn a_reset_does_not_acknowledge_what_comes_later() {
    let rig = Rig::new(2, CyclicMode::Position);
    let log = rig.run(vec![Headstrong::member(true, 2)], move |world| {
        match world.cycles {
            100 => world.losses.set(0, Loss::Fault(0x2310)),
            // Another fault while the first one is being reset.
            204 => world.losses.set(0, Loss::Fault(0x2311)),
            200 => _ = world.request(Action::ResetFaults),
            1_000 => world.losses.set(1, Loss::SafeTorqueOff),
            2_000 => world.losses.set(1, Loss::Nothing),
            4_000 => {
                assert_eq!(world.reply(1), Some(Err(Refusal::Fault)));
                assert_eq!(world.reports[1].stop, Some(StopReason::AwaitsStart));
                world.request(Action::ResetFaults);
            }
            4_500 => return Flow::Over,
            _ => {}
        }
        Flow::On
    });
    assert!(is_enabled(&log.cycles[900].reports[1]));
    assert!(!log.cycles[1_100..4_000].iter().any(|it| is_enabled(&it.reports[1])), "enabled by itself");
    assert!(is_enabled(&log.cycles.last().unwrap().reports[1]), "the second request starts it");
}

// feature(axes): a command from before a reset, or from before a start request, moves nothing
#[test]
fn a_command_from_before_a_reset_or_a_start_moves_nothing() {
    for (loss, request) in
        [(Loss::Fault(0x2310), Action::ResetFaults), (Loss::SafeTorqueOff, Action::Enable)]
    {
        let positions = JointPosition::new(&[settings(0)]).unwrap();
        let positions = Member::new(MemberKind::Plain(Box::new(positions)), &[0]);
        let log = Rig::new(1, CyclicMode::Position).run(vec![positions], move |world| {
            match world.cycles {
                10 => world.target(0, AxisTarget::Position(Radians(2.0))),
                100 => world.losses.set(0, loss),
                1_000 => world.losses.set(0, Loss::Nothing),
                1_500 => _ = world.request(request),
                // The command is still the same, and fresh.
                3_000 => {
                    assert_eq!(world.reply(1), Some(Ok(())), "{request:?}");
                    assert!(is_enabled(&world.reports[0]));
                    world.target(0, AxisTarget::Position(Radians(1.5)));
                }
                5_000 => return Flow::Over,
                _ => {}
            }
            Flow::On
        });
        let at = |cycle: usize| log.cycles[cycle].reports[0].feedback.position.0;
        assert!((at(2_990) - at(1_490)).abs() < 1e-2, "{request:?}: {} {}", at(1_490), at(2_990));
        assert!((at(4_990) - 1.5).abs() < 1e-2, "{request:?}: {}", at(4_990));
    }
}

const ASKED: u64 = 500;

const AT_REST: u64 = 3_000;

const AGAIN: u64 = 8_000;

/// Positions of the axis, from cycle to cycle, of a controller that gets the request `what`, and
/// then `then` later; the replies are all right.
fn run(mode: CyclicMode, obeys: bool, what: Action, then: Action) -> Log {
    let members = vec![Headstrong::member(obeys, 1), Member::new(MemberKind::Plain(Box::new(Hold)), &[0])];
    Rig::new(1, mode).run(members, move |world| {
        match world.cycles {
            ASKED => _ = world.request(what),
            AT_REST => assert_eq!(world.reply(1), Some(Ok(())), "{what:?}, {obeys}: {:?}", world.reports),
            AGAIN => _ = world.request(then),
            10_000 => {
                assert_eq!(world.reply(2), Some(Ok(())), "{then:?}");
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    })
}

fn way(log: &Log, from: u64, to: u64) -> f64 {
    let at = |cycle: u64| log.cycles[cycle as usize - 1].reports[0].feedback.position.0;
    (at(to) - at(from)).abs()
}

// feature(axes): `control stop` stops a controller that ignores it, and the axes stay stopped
#[test]
fn a_stop_holds_a_controller_that_does_not_stop() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        for obeys in [false, true] {
            for then in [Action::Enable, Action::ResetFaults, Action::SwitchController(0)] {
                let log = run(mode, obeys, Action::Stop, then);
                let cell = format!("{mode:?}, {obeys}, {then:?}");
                assert!(way(&log, 100, ASKED) > 0.3 * SPEED, "{cell}: it moves before");
                assert!(way(&log, AT_REST, AGAIN) < 1e-3, "{cell}: {}", way(&log, AT_REST, AGAIN));
                assert!(way(&log, AGAIN + 100, 10_000) > 1.5 * SPEED, "{cell}: it moves again");
                let fastest = if mode == CyclicMode::Position { log.fastest(0) } else { 0.0 };
                assert!(fastest < 1.01 * SPEED, "{cell}: {fastest}");
            }
        }
    }
}

// feature(axes): `control deactivate` and `disable` stop a controller that ignores them
#[test]
fn a_controller_that_ignores_them_is_deactivated_or_disabled() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        for what in [Action::Deactivate, Action::Disable] {
            let then = if what == Action::Disable { Action::Enable } else { Action::SwitchController(1) };
            let log = run(mode, false, what, then);
            assert!(way(&log, AT_REST, AGAIN) < 1e-3, "{what:?}");
            let enabled = |at: usize| log.cycles[at].reports[0].state == Some(State::OperationEnabled);
            let off = (ASKED as usize..AGAIN as usize).find(|&at| !enabled(at));
            assert_eq!(off.is_some(), what == Action::Disable);
            if let Some(off) = off {
                let speed = way(&log, off as u64 - 1, off as u64) / CYCLE;
                assert!(speed < 0.1 * SPEED, "disabled at {speed} rad/s");
            }
        }
    }
}

/// A controller with a process in this state: 0 none, 1 attached, 2 answering, 3 failing, 4 none
/// and disabled drives.
struct OfProcess(Arc<AtomicU8>);

impl Controller for OfProcess {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        // The requests of the last process stay.
        let request = if self.0.load(Ordering::Relaxed) == 4 { Request::Disable } else { Request::Enable };
        io.commands().iter_mut().for_each(|command| command.request = request);
    }

    fn output(&self) -> ControllerOutput {
        let states =
            [ProcessState::Absent, ProcessState::Attached, ProcessState::Answering, ProcessState::Failing];
        let mut output = ControllerOutput::default();
        output.control.process = states[usize::from(self.0.load(Ordering::Relaxed) % 4)];
        output
    }
}

/// A bench with disabled drives, and the state of its process.
fn bench_of_process() -> (Bench, Arc<AtomicU8>) {
    let process = Arc::new(AtomicU8::new(2));
    let controller = Box::new(OfProcess(process.clone()));
    let member = Member::new(MemberKind::Plain(controller), &[0, 1]);
    let mut bench = Bench::new(&[CyclicMode::Position; 2], vec![member]);
    let disable = bench.request(Action::Disable);
    bench.run(100);
    assert_eq!(bench.reply(disable), Some(Ok(())));
    (bench, process)
}

/// Cycles of the time within which a request is refused.
const SECOND: usize = 1_000;

// feature(program): enable without a controller process is refused with the reason, and enables no drive
#[test]
fn enable_without_a_process_is_refused_within_a_second() {
    let (mut bench, process) = bench_of_process();
    process.store(0, Ordering::Relaxed);
    let enable = bench.request(Action::Enable);
    for _ in 0..SECOND {
        bench.run(1);
        assert_eq!(bench.reports[0].state, Some(State::SwitchOnDisabled));
    }
    assert_eq!(bench.reply(enable), Some(Err(Refusal::NoProcess)));
    // A process that comes later has no start request.
    process.store(2, Ordering::Relaxed);
    bench.run(100);
    assert_eq!(bench.reports[0].state, Some(State::SwitchOnDisabled));
    // Its answers are missing: no time-out of 10 s.
    process.store(3, Ordering::Relaxed);
    bench.troubles[0] = Trouble::Deaf;
    let enable = bench.request(Action::Enable);
    bench.run(SECOND);
    assert_eq!(bench.reply(enable), Some(Err(Refusal::TimedOut)));
}

#[test]
fn a_process_after_a_refused_enable_has_no_permission() {
    let (mut bench, process) = bench_of_process();
    let enable = bench.request(Action::Enable);
    bench.run(100);
    assert_eq!(bench.reply(enable), Some(Ok(())));
    // The process ends, and its drives are disabled: the earlier permission ends with the refusal.
    process.store(4, Ordering::Relaxed);
    bench.run(100);
    let enable = bench.request(Action::Enable);
    bench.run(SECOND);
    assert_eq!(bench.reply(enable), Some(Err(Refusal::NoProcess)));
    process.store(2, Ordering::Relaxed);
    bench.run(SECOND);
    assert_eq!(bench.reports[0].state, Some(State::SwitchOnDisabled));
}

#[test]
fn a_refused_enable_takes_no_torque_and_enables_no_other_drive() {
    for state in [State::QuickStopActive, State::OperationEnabled] {
        let (mut bench, process) = bench_of_process();
        let enable = bench.request(Action::Enable);
        bench.run(100);
        assert_eq!(bench.reply(enable), Some(Ok(())));
        // The process ends; one drive has torque, the other one none.
        process.store(0, Ordering::Relaxed);
        for (axis, state) in [(0, state), (1, State::SwitchOnDisabled)] {
            bench.troubles[axis] = Trouble::Deaf;
            bench.reports[axis].state = Some(state);
        }
        let enable = bench.request(Action::Enable);
        bench.run(SECOND);
        assert_eq!(bench.reply(enable), Some(Err(Refusal::NoProcess)), "{state:?}");
        // The process moves the other axis, too.
        process.store(2, Ordering::Relaxed);
        bench.run(100);
        let requests = [0, 1].map(|axis| bench.commands[axis].request);
        assert_eq!(requests, [Request::Enable, Request::Disable], "{state:?}");
    }
}

#[test]
fn a_deactivate_ends_the_permission_that_waits_for_a_process() {
    let (mut bench, process) = bench_of_process();
    process.store(3, Ordering::Relaxed);
    bench.troubles[0] = Trouble::Deaf;
    bench.troubles[1] = Trouble::Deaf;
    let enable = bench.request(Action::Enable);
    bench.run(100);
    let deactivate = bench.request(Action::Deactivate);
    bench.troubles[0] = Trouble::None;
    bench.troubles[1] = Trouble::None;
    bench.run(SECOND);
    assert_eq!(bench.reply(deactivate), Some(Ok(())));
    assert_eq!(bench.reply(enable), Some(Err(Refusal::Replaced)));
    assert_eq!(bench.reports[0].state, Some(State::SwitchOnDisabled));
}

#[test]
fn a_process_that_is_late_once_is_waited_for() {
    let (mut bench, process) = bench_of_process();
    bench.troubles[0] = Trouble::Deaf;
    let enable = bench.request(Action::Enable);
    bench.run(SECOND);
    process.store(3, Ordering::Relaxed);
    bench.run(5);
    process.store(2, Ordering::Relaxed);
    bench.run(SECOND);
    assert_eq!(bench.reply(enable), None);
    bench.troubles[0] = Trouble::None;
    bench.run(100);
    assert_eq!(bench.reply(enable), Some(Ok(())));
}

#[test]
fn stops_while_a_process_is_awaited_need_another_request() {
    for (stop, expected) in
        [(StopReason::AwaitsStart, Refusal::Held), (StopReason::Interlock, Refusal::Interlock)]
    {
        let (mut bench, process) = bench_of_process();
        process.store(0, Ordering::Relaxed);
        let enable = bench.request(Action::Enable);
        bench.run(3);
        bench.reports[1].stop = Some(stop);
        bench.reports[1].feedback.phase = AxisPhase::NotEnabled;
        if stop == StopReason::Interlock {
            bench.reports[1].interlock =
                Some(InterlockCause { interlock: 0, permits: false, level: InputLevel::Low });
        }
        process.store(1, Ordering::Relaxed);
        bench.run(SECOND);
        assert_eq!(bench.reply(enable), Some(Err(expected)));
        assert_eq!(bench.reports[1].stop, Some(stop));
    }
}

#[test]
fn a_process_that_has_just_attached_may_enable() {
    let (mut bench, process) = bench_of_process();
    process.store(0, Ordering::Relaxed);
    bench.reports[1].stop = Some(StopReason::AwaitsStart);
    let enable = bench.request(Action::Enable);
    bench.run(3);
    process.store(1, Ordering::Relaxed);
    bench.run(50);
    assert_eq!(bench.reply(enable), Some(Ok(())));
    assert_eq!(bench.reports[1].state, Some(State::OperationEnabled));
    // A process that enables nothing before its first answer gets its reply.
    let (mut bench, process) = bench_of_process();
    process.store(1, Ordering::Relaxed);
    bench.troubles[0] = Trouble::Deaf;
    let enable = bench.request(Action::Enable);
    bench.run(SECOND);
    assert_eq!(bench.reply(enable), Some(Ok(())));
    bench.troubles[0] = Trouble::Fault;
    let enable = bench.request(Action::Enable);
    bench.run(SECOND);
    assert_eq!(bench.reply(enable), Some(Err(Refusal::Fault)));
}
