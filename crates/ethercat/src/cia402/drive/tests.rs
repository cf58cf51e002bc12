use proptest::prelude::*;

use super::super::{StateMachine, Surroundings};
use super::*;

mod homing;
mod profile;

const STEP: u32 = 1000;

/// A drive with the standard's state machine: it follows CSP targets while enabled, and drifts
/// otherwise.
struct Plant {
    machine: StateMachine,
    around: Surroundings,
    position: i32,
    drift: i32,
}

impl Plant {
    fn in_state(state: State) -> Self {
        Self {
            machine: StateMachine::in_state(state),
            around: Surroundings::WELL,
            position: 12_345,
            drift: 7,
        }
    }

    fn input(&self) -> DriveInput {
        DriveInput {
            statusword: self.machine.statusword(true),
            position: self.position,
            ..DriveInput::default()
        }
    }

    fn apply(&mut self, output: DriveOutput) {
        self.machine.step(output.controlword, self.around);
        if self.machine.state() == State::OperationEnabled {
            self.position = output.target_position;
        } else {
            self.position = self.position.wrapping_add(self.drift);
        }
    }
}

fn one_cycle(drive: &mut Drive, plant: &mut Plant, request: Request, target: i32) -> DriveOutput {
    let command = DriveCommand { request, target_position: target, ..DriveCommand::default() };
    let output = drive.update(Some(plant.input()), command);
    plant.apply(output);
    output
}

fn enabled() -> (Drive, Plant) {
    let (mut drive, mut plant) =
        (Drive::new(CyclicMode::Position, STEP), Plant::in_state(State::SwitchOnDisabled));
    for _ in 0..4 {
        one_cycle(&mut drive, &mut plant, Request::Enable, 0);
    }
    assert!(drive.just_enabled());
    (drive, plant)
}

fn seen(state: State, position: i32) -> Option<DriveInput> {
    Some(DriveInput { statusword: Statusword(state.statusword()), position, ..DriveInput::default() })
}

fn wanting(request: Request) -> DriveCommand {
    DriveCommand {
        request,
        target_position: 77,
        target_velocity: 500,
        target_torque: 50,
        help: QuickStopHelp::None,
    }
}

#[test]
fn enabling_walks_the_states_one_by_one() {
    let (mut drive, mut plant) =
        (Drive::new(CyclicMode::Position, STEP), Plant::in_state(State::SwitchOnDisabled));
    let words: Vec<u16> =
        (0..5).map(|_| one_cycle(&mut drive, &mut plant, Request::Enable, 12_400).controlword.0).collect();
    assert_eq!(words, [0x06, 0x07, 0x0F, 0x0F, 0x0F]);
    assert_eq!(drive.state(), Some(State::OperationEnabled));
}

#[test]
fn disabling_walks_down_without_skipping() {
    let (mut drive, mut plant) = enabled();
    let words: Vec<u16> =
        (0..5).map(|_| one_cycle(&mut drive, &mut plant, Request::Disable, 0).controlword.0).collect();
    assert_eq!(words, [0x07, 0x06, 0x00, 0x00, 0x00]);
    assert_eq!(plant.machine.state(), State::SwitchOnDisabled);
}

#[test]
fn help_for_a_drive_without_quick_stop_is_sent() {
    let input = |position| seen(State::OperationEnabled, position);
    for mode in CyclicMode::ALL {
        let mut drive = Drive::new(mode, STEP);
        for _ in 0..3 {
            drive.update(input(0), DriveCommand { target_position: 0, ..wanting(Request::Enable) });
        }
        let asked = |help| DriveCommand { target_position: 5, help, ..wanting(Request::QuickStop) };
        let led = drive.update(input(0), asked(QuickStopHelp::LeadsToRest));
        assert_eq!(led.controlword, Controlword::QUICK_STOP);
        let wanted = match mode {
            CyclicMode::Position => (5, 0, 0),
            CyclicMode::Velocity => (0, 500, 0),
            CyclicMode::Torque => (0, 0, 50),
        };
        assert_eq!((led.target_position, led.target_velocity, led.target_torque), wanted);
        // A third cycle without input: positions are constant, velocity and torque only fall.
        for _ in 0..3 {
            drive.update(None, asked(QuickStopHelp::LeadsToRest));
        }
        let faster = DriveCommand {
            target_position: 9,
            target_velocity: 600,
            target_torque: 60,
            ..asked(QuickStopHelp::LeadsToRest)
        };
        let blind = drive.update(None, faster);
        assert_eq!((blind.target_velocity, blind.target_torque), (wanted.1, wanted.2));
        assert_eq!(blind.target_position, led.target_position);
        let halted = drive.update(input(0), asked(QuickStopHelp::Halts));
        assert_eq!(halted.controlword, Controlword(0x0102));
        assert_eq!((halted.target_velocity, halted.target_torque), (0, 0));
        let cut = DriveCommand { help: QuickStopHelp::CutsOff, ..wanting(Request::Disable) };
        assert_eq!(drive.update(input(0), cut).controlword, Controlword(0));
    }
}

// feature(cia402): Operation enabled from every state
#[test]
fn drive_reaches_operation_enabled_from_every_state() {
    for holds in [false, true] {
        for state in State::ALL {
            let mut drive = Drive::new(CyclicMode::Position, STEP);
            let mut plant = Plant::in_state(state);
            plant.around.quick_stop_holds = holds;
            plant.drift = 0;
            for _ in 0..20 {
                let faulted = plant.machine.state() == State::Fault;
                let request = if faulted { Request::FaultReset } else { Request::Enable };
                one_cycle(&mut drive, &mut plant, request, 0);
            }
            assert_eq!(drive.state(), Some(State::OperationEnabled), "from {state}");
        }
    }
}

#[test]
fn a_target_far_from_the_held_one_is_refused_and_counted() {
    let (mut drive, mut plant) = enabled();
    let held = drive.holds_at();
    let step = STEP as i32;
    assert_eq!(one_cycle(&mut drive, &mut plant, Request::Enable, held + step + 1).target_position, held);
    assert_eq!((drive.phase(), drive.refused_targets()), (Phase::Holding, 1));
    assert_eq!(
        one_cycle(&mut drive, &mut plant, Request::Enable, held + step).target_position,
        held + step
    );
    assert_eq!((drive.phase(), drive.refused_targets()), (Phase::Following, 1));
    assert_eq!(one_cycle(&mut drive, &mut plant, Request::Enable, held - 1).target_position, held + step);
    assert_eq!(
        (drive.phase(), drive.refused_targets()),
        (Phase::Holding, 2),
        "also in the middle of a motion"
    );
}

/// A device, or another sender on the wire, gives any answer once with a right working counter:
/// before, during and after enabling.
#[test]
fn one_wrong_reply_moves_no_target() {
    for at in 0..12 {
        for state in State::ALL {
            for wrong in [1_900_000_000, -1_900_000_000] {
                let mut drive = Drive::new(CyclicMode::Position, STEP);
                let mut plant = Plant::in_state(State::SwitchOnDisabled);
                one_cycle(&mut drive, &mut plant, Request::Enable, 0);
                for cycle in 0..20 {
                    let request = if (6..8).contains(&cycle) { Request::Halt } else { Request::Enable };
                    let place = plant.position;
                    let output = if cycle == at {
                        let output = drive.update(seen(state, wrong), wanting(request));
                        plant.apply(output);
                        output
                    } else {
                        let target = drive.holds_at();
                        one_cycle(&mut drive, &mut plant, request, target)
                    };
                    let way = output.target_position.wrapping_sub(place).unsigned_abs();
                    assert!(way <= STEP, "{state} at {at}: {way} counts away in cycle {cycle}");
                }
            }
        }
    }
}

/// A disabled axis that is turned by hand, faster than it may move, is not pulled back when it is
/// enabled.
#[test]
fn a_fast_axis_is_enabled_where_it_is() {
    let (mut drive, mut plant) =
        (Drive::new(CyclicMode::Position, STEP), Plant::in_state(State::SwitchOnDisabled));
    plant.drift = 5 * STEP as i32;
    for _ in 0..4 {
        let place = plant.position;
        let output = one_cycle(&mut drive, &mut plant, Request::Enable, 0);
        assert!((place - output.target_position).abs() <= 5 * STEP as i32, "a cycle behind at most");
    }
    assert!(drive.just_enabled());
}

#[test]
fn an_endless_axis_steps_over_the_end_of_its_counts() {
    let mut drive = Drive::new(CyclicMode::Position, STEP);
    let enable = |target_position| DriveCommand { target_position, ..wanting(Request::Enable) };
    drive.update(seen(State::OperationEnabled, i32::MAX), enable(0));
    let output = drive.update(seen(State::OperationEnabled, i32::MAX), enable(i32::MIN + 10));
    assert_eq!((output.target_position, drive.phase()), (i32::MIN + 10, Phase::Following));
}

#[test]
fn position_holds_after_two_cycles_without_input() {
    let (mut drive, mut plant) = enabled();
    let held = drive.holds_at();
    one_cycle(&mut drive, &mut plant, Request::Enable, held + 900);
    let blind = |drive: &mut Drive, target_position| {
        drive.update(None, DriveCommand { target_position, ..wanting(Request::Enable) }).target_position
    };
    assert_eq!(blind(&mut drive, held + 1800), held + 1800);
    assert_eq!(blind(&mut drive, held + 2801), held + 1800, "a step is a step");
    assert_eq!(blind(&mut drive, held + 2700), held + 1800, "the third cycle stands");
    for _ in 0..10_000 {
        assert_eq!(blind(&mut drive, held + 1801), held + 1800);
    }
    assert_eq!(drive.missing_inputs(), 10_003);
    assert_eq!(
        one_cycle(&mut drive, &mut plant, Request::Enable, held + 2801).target_position,
        held + 1800
    );
    assert_eq!(drive.refused_targets(), 1, "no allowance for what was missed");
    assert_eq!(
        one_cycle(&mut drive, &mut plant, Request::Enable, held + 2800).target_position,
        held + 2800
    );
}

// feature(axes): an outage moves no axis beyond the rule, on the way out, back, both, or with the host stalled; two cycles do not stop a motion
#[test]
fn speeds_and_torques_only_fall_after_two_cycles_without_input() {
    for (mode, targets) in [(CyclicMode::Velocity, [500, 600]), (CyclicMode::Torque, [50, 60])] {
        let mut drive = Drive::new(mode, STEP);
        let asking = |value: i32| DriveCommand {
            target_velocity: value,
            target_torque: value as i16,
            ..wanting(Request::Enable)
        };
        let sent = |output: DriveOutput| output.target_velocity + i32::from(output.target_torque);
        for _ in 0..2 {
            drive.update(seen(State::OperationEnabled, 5), asking(targets[0]));
        }
        assert_eq!(sent(drive.update(None, asking(targets[1]))), targets[1]);
        assert_eq!(sent(drive.update(None, asking(targets[0]))), targets[0]);
        assert_eq!(sent(drive.update(None, asking(targets[1]))), targets[0], "it does not rise");
        assert_eq!(sent(drive.update(None, asking(30))), 30);
        assert_eq!(sent(drive.update(None, asking(-30))), 0, "nor turn round");
        assert_eq!(sent(drive.update(None, asking(30))), 0);
    }
}

// feature(axes): an outage moves no axis beyond the rule, on the way out, back, both, or with the host stalled; two cycles do not stop a motion
#[test]
fn a_stop_is_passed_on_to_a_drive_that_does_not_answer() {
    let after = |requests: &[Request]| {
        let (mut drive, _) = enabled();
        requests
            .iter()
            .map(|&request| drive.update(None, wanting(request)).controlword.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(after(&[Request::Enable, Request::QuickStop, Request::Enable]), [0x0F, 0x02, 0x02]);
    assert_eq!(after(&[Request::Halt, Request::Disable, Request::Enable]), [0x010F, 0x00, 0x00]);
    assert_eq!(after(&[Request::Disable, Request::QuickStop, Request::Halt]), [0x00, 0x00, 0x00]);
}

#[test]
fn velocity_and_torque_are_zero_until_the_cycle_after_enabling() {
    for (mode, want) in [(CyclicMode::Velocity, (500, 0)), (CyclicMode::Torque, (0, 50))] {
        let mut drive = Drive::new(mode, STEP);
        let targets = |output: DriveOutput| (output.target_velocity, output.target_torque);
        for state in State::ALL {
            assert_eq!(targets(drive.update(seen(state, 5), wanting(Request::Enable))), (0, 0), "{state}");
        }
        drive.update(seen(State::OperationEnabled, 5), wanting(Request::Enable));
        let output = drive.update(seen(State::OperationEnabled, 6), wanting(Request::Enable));
        assert_eq!((targets(output), output.target_position), (want, 6));
        for request in [Request::Halt, Request::QuickStop, Request::Disable, Request::FaultReset] {
            let output = drive.update(seen(State::OperationEnabled, 6), wanting(request));
            assert_eq!(targets(output), (0, 0), "{request:?}");
        }
    }
}

#[test]
fn halt_sets_bit_8_and_holds_and_enables_nothing() {
    let (mut drive, mut plant) = enabled();
    let held = drive.holds_at();
    let output = one_cycle(&mut drive, &mut plant, Request::Halt, held + 5);
    assert_eq!((output.controlword, output.target_position), (Controlword(0x010F), held));
    let output = one_cycle(&mut drive, &mut plant, Request::Enable, held + 5);
    assert_eq!((output.controlword, output.target_position), (Controlword(0x000F), held + 5));

    let mut drive = Drive::new(CyclicMode::Position, STEP);
    let mut plant = Plant::in_state(State::SwitchedOn);
    for _ in 0..10 {
        one_cycle(&mut drive, &mut plant, Request::Halt, 0);
    }
    assert_eq!(plant.machine.state(), State::SwitchedOn);
}

#[test]
fn halt_end_latches_the_stopped_position() {
    let (mut drive, mut plant) = enabled();
    let held = drive.holds_at();
    one_cycle(&mut drive, &mut plant, Request::Halt, held);
    plant.position = held + 5000;
    let output = drive.update(Some(plant.input()), wanting(Request::Enable));
    assert_eq!((output.target_position, output.controlword.halt()), (held, true), "told once");
    let output = drive.update(Some(plant.input()), wanting(Request::Enable));
    assert_eq!((output.target_position, drive.phase()), (held + 5000, Phase::Holding));
}

#[test]
fn a_halt_is_forgotten_when_the_drive_leaves_operation_enabled() {
    let mut drive = Drive::new(CyclicMode::Position, STEP);
    for request in [Request::Enable, Request::Halt] {
        drive.update(seen(State::OperationEnabled, 0), wanting(request));
    }
    drive.update(seen(State::SwitchedOn, 0), wanting(Request::Enable));
    drive.update(seen(State::OperationEnabled, 0), wanting(Request::Enable));
    let output = drive.update(seen(State::OperationEnabled, 5000), wanting(Request::Enable));
    assert_eq!((output.target_position, drive.phase()), (77, Phase::Following));
}

#[test]
fn quick_stop_ends_at_standstill() {
    let (mut drive, mut plant) = enabled();
    plant.around =
        Surroundings { quick_stop_holds: true, quick_stop_completed: false, ..Surroundings::WELL };
    assert_eq!(one_cycle(&mut drive, &mut plant, Request::QuickStop, 0).controlword, Controlword(0x02));
    assert_eq!(plant.machine.state(), State::QuickStopActive);
    for _ in 0..5 {
        let output = one_cycle(&mut drive, &mut plant, Request::Enable, 0);
        assert_eq!(
            (output.controlword, drive.phase()),
            (Controlword(0x02), Phase::NotEnabled),
            "it still moves"
        );
    }
    plant.drift = 0;
    for _ in 0..REST_CYCLES {
        assert_eq!(one_cycle(&mut drive, &mut plant, Request::Enable, 0).controlword, Controlword(0x02));
    }
    assert_eq!(one_cycle(&mut drive, &mut plant, Request::Enable, 0).controlword, Controlword(0x00));
    assert_eq!(plant.machine.state(), State::SwitchOnDisabled);
}

// feature(cia402): faults are reset by request only
#[test]
fn a_fault_is_reset_by_request_only_and_the_edge_is_repeated() {
    let mut drive = Drive::new(CyclicMode::Position, STEP);
    for request in [Request::Disable, Request::Enable, Request::QuickStop, Request::Halt] {
        for _ in 0..50 {
            assert!(!drive.update(seen(State::Fault, 0), wanting(request)).controlword.fault_reset());
        }
    }
    let levels: Vec<bool> = (0..4 * FAULT_RESET_CYCLES)
        .map(|_| {
            drive.update(seen(State::Fault, 0), wanting(Request::FaultReset)).controlword.fault_reset()
        })
        .collect();
    let runs: Vec<(bool, usize)> = levels.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    assert_eq!(runs, [(true, 8), (false, 8), (true, 8), (false, 8)]);
    let output = drive.update(seen(State::SwitchOnDisabled, 0), wanting(Request::FaultReset));
    assert_eq!(output.controlword, Controlword(0x00), "the reset leaves it disabled");
}

fn any_request() -> impl Strategy<Value = Request> {
    prop::sample::select(vec![
        Request::Disable,
        Request::Enable,
        Request::QuickStop,
        Request::Halt,
        Request::FaultReset,
    ])
}

/// Random statuswords (most show no way to Operation enabled) and statuswords that show a state.
fn any_statusword() -> impl Strategy<Value = Statusword> {
    let shown = (prop::sample::select(State::ALL.to_vec()), any::<u16>())
        .prop_map(|(state, free)| Statusword(state.statusword() | free & 0xFF90));
    let enabled = Just(Statusword(State::OperationEnabled.statusword()));
    prop_oneof![1 => any::<u16>().prop_map(Statusword), 3 => shown, 3 => enabled]
}

fn any_cycle() -> impl Strategy<Value = (Option<DriveInput>, DriveCommand)> {
    // Places a cycle can lie between, and any.
    let position = prop_oneof![4 => 0..=STEP as i32, 1 => any::<i32>()];
    let input = (any_statusword(), position).prop_map(|(statusword, position)| DriveInput {
        statusword,
        position,
        ..DriveInput::default()
    });
    let command = (any_request(), any::<i32>(), any::<i32>(), any::<i16>()).prop_map(
        |(request, target_position, target_velocity, target_torque)| DriveCommand {
            request,
            target_position,
            target_velocity,
            target_torque,
            help: QuickStopHelp::None,
        },
    );
    (prop::option::weighted(0.9, input), command)
}

proptest! {
    // feature(cia402): enabling never jumps
    #[test]
    fn csp_target_is_the_actual_position_until_enabled(
        cycles in prop::collection::vec(any_cycle(), 1..60),
    ) {
        let mut drive = Drive::new(CyclicMode::Position, STEP);
        let mut was_enabled = false;
        let mut last = None;
        for (input, command) in cycles {
            let before = drive.last_output();
            let output = drive.update(input, command);
            let Some(input) = input else {
                let moved = output.target_position.wrapping_sub(before.target_position).unsigned_abs();
                prop_assert!(moved <= STEP, "{} after {}", output.target_position, before.target_position);
                prop_assert_eq!(output.controlword.0 & !before.controlword.0 & !Controlword::HALT_BIT, 0);
                continue;
            };
            let is_enabled = input.statusword.state() == Some(State::OperationEnabled);
            prop_assert_eq!(drive.just_enabled(), is_enabled && !was_enabled);
            let comes = last.replace(input.position);
            let is_a_step = comes.is_none_or(|it| input.position.wrapping_sub(it).unsigned_abs() <= STEP);
            if !(is_enabled && was_enabled) && is_a_step {
                prop_assert_eq!(output.target_position, input.position);
            }
            was_enabled = is_enabled;
            prop_assert_eq!((output.target_velocity, output.target_torque), (0, 0));
        }
    }

    #[test]
    fn csp_target_steps_stay_within_the_maximum(
        cycles in prop::collection::vec((-3000..3000_i32, any_request()), 1..100),
    ) {
        let (mut drive, mut plant) = enabled();
        let mut last = drive.holds_at();
        for (away, request) in cycles {
            let output = one_cycle(&mut drive, &mut plant, request, last + away);
            if drive.phase() == Phase::Following {
                prop_assert_eq!(request, Request::Enable);
                prop_assert_eq!(output.target_position, last + away);
                prop_assert!(away.unsigned_abs() <= STEP);
            }
            last = output.target_position;
        }
    }

    #[test]
    fn fault_reset_is_commanded_in_fault_by_request_only(
        cycles in prop::collection::vec(any_cycle(), 1..60),
    ) {
        let mut drive = Drive::new(CyclicMode::Velocity, STEP);
        for (input, command) in cycles {
            let before = drive.last_output().controlword.fault_reset();
            let after = drive.update(input, command).controlword.fault_reset();
            let state = input.and_then(|it| it.statusword.state());
            if after && !before {
                prop_assert_eq!((state, command.request), (Some(State::Fault), Request::FaultReset));
            }
        }
    }

    #[test]
    fn healthy_drive_is_enabled_within_fifty_cycles(
        cycles in prop::collection::vec(any_cycle(), 0..60),
        state in prop::sample::select(State::ALL.to_vec()),
    ) {
        let mut drive = Drive::new(CyclicMode::Position, STEP);
        for (input, command) in cycles {
            drive.update(input, command);
        }
        let mut plant = Plant::in_state(state);
        plant.drift = 0;
        for _ in 0..50 {
            let faulted = plant.machine.state() == State::Fault;
            one_cycle(&mut drive, &mut plant, if faulted { Request::FaultReset } else { Request::Enable }, 0);
        }
        prop_assert_eq!(drive.state(), Some(State::OperationEnabled));
    }
}

/// Input of an enabled drive in this mode, at a position.
fn in_mode(mode: ModeOfOperation, position: i32) -> Option<DriveInput> {
    seen(State::OperationEnabled, position).map(|input| DriveInput { mode: Some(mode), ..input })
}

// feature(cia402): cyclic modes are changed while the axis moves, each to each, without a jump
#[test]
fn until_the_mode_is_shown_the_targets_of_both_are_sent() {
    let [csp, csv, cst] = [CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque];
    let wanting = |target_position| DriveCommand { target_position, ..wanting(Request::Enable) };
    let sent = |output: DriveOutput| (output.target_position, output.target_velocity, output.target_torque);
    let mut drive = Drive::new(csp, STEP);
    for position in [0, 0, 100] {
        drive.update(in_mode(csp.into(), 0), wanting(position));
    }
    assert!(drive.change_mode(csv) && drive.is_changing_mode());
    assert_eq!(drive.mode_of_operation(), csv.into());
    assert_eq!(sent(drive.update(in_mode(csp.into(), 50), wanting(200))), (200, 500, 0));
    // A jump is refused in this time as in any other.
    assert_eq!(sent(drive.update(in_mode(csp.into(), 60), wanting(9_000))), (200, 500, 0));
    assert_eq!((drive.phase(), drive.refused_targets()), (Phase::Holding, 1));
    assert_eq!(sent(drive.update(in_mode(csv.into(), 60), wanting(300))), (60, 500, 0));
    assert!(!drive.is_changing_mode());
    // Back by way of a torque: the position begins where the axis is.
    assert!(drive.change_mode(cst));
    assert_eq!(sent(drive.update(in_mode(csv.into(), 70), wanting(300))), (70, 500, 50));
    assert_eq!(sent(drive.update(in_mode(cst.into(), 80), wanting(300))), (80, 0, 50));
    assert!(drive.change_mode(csp));
    assert_eq!(sent(drive.update(in_mode(cst.into(), 90), wanting(9_000))), (90, 0, 50), "too far");
    assert_eq!(sent(drive.update(in_mode(cst.into(), 95), wanting(900))), (900, 0, 50));
    assert_eq!(sent(drive.update(in_mode(csp.into(), 99), wanting(901))), (901, 0, 0));
}

#[test]
fn missing_inputs_end_targets_during_a_mode_change() {
    let mut drive = Drive::new(CyclicMode::Velocity, STEP);
    let csv = ModeOfOperation::from(CyclicMode::Velocity);
    for _ in 0..3 {
        drive.update(in_mode(csv, 0), wanting(Request::Enable));
    }
    drive.change_mode(CyclicMode::Torque);
    drive.update(in_mode(csv, 0), wanting(Request::Enable));
    let softer = DriveCommand { target_velocity: 900, target_torque: 20, ..wanting(Request::Enable) };
    for _ in 0..BLIND_CYCLES {
        drive.update(None, softer);
    }
    assert_eq!((drive.last_output().target_velocity, drive.last_output().target_torque), (900, 20));
    let least = DriveCommand { target_velocity: 1_000, target_torque: 10, ..softer };
    drive.update(None, least);
    assert_eq!((drive.last_output().target_velocity, drive.last_output().target_torque), (900, 10));
    assert!(!drive.home(), "it is asked in one mode");
}
