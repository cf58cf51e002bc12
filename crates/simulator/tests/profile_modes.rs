//! The MainDevice's side of the profile modes against a simulated servo drive.

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::cia402::{
    Change, CyclicMode, Drive, DriveCommand, DriveInput, DriveOutput, ModeOfOperation, Phase, ProfileDrive,
    ProfileMode, Request, SetPoint, SetPointProgress, State, Statusword, object,
};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use onbeat_simulator::application::{Application, ServoDescription, ServoDrive, StateChange};
use onbeat_simulator::coe::DeviceDescription;

const COUNTS: f64 = (1 << 20) as f64;

/// Counts in a cycle of a millisecond: half a revolution a second.
const SPEED: i32 = 524;

/// A drive in Op, and its last feedback.
struct Bench {
    drive: ServoDrive,
    now: Instant,
    last: DriveInput,
}

impl Bench {
    fn new() -> Self {
        let description = ServoDescription::new(DeviceDescription::new(Identity::default(), "drive"));
        let mut drive = ServoDrive::new(&description).expect("a drive");
        for (from, to) in [(AlState::PreOp, AlState::SafeOp), (AlState::SafeOp, AlState::Op)] {
            let lengths = drive.process_data_lengths();
            drive.enter(&StateChange { from, to, lengths, sync0: None }).expect("the state is entered");
        }
        Self { drive, now: Instant::from_nanos(1_000_000_000), last: DriveInput::default() }
    }

    /// Cycles of a millisecond under `guide`.
    fn guide(&mut self, guide: &mut ProfileDrive, cycles: u32) -> DriveInput {
        for _ in 0..cycles {
            let output = guide.update(Some(self.last), Request::Enable);
            self.exchange(output, guide.mode_of_operation());
        }
        self.last
    }

    /// A cycle of a millisecond.
    fn exchange(&mut self, output: DriveOutput, mode: ModeOfOperation) {
        let mut outputs = output.controlword.0.to_le_bytes().to_vec();
        outputs.extend(output.target_position.to_le_bytes());
        outputs.extend(output.target_velocity.to_le_bytes());
        outputs.extend(output.target_torque.to_le_bytes());
        let (mode, position) = (mode.number().to_le_bytes(), output.target_position.to_le_bytes());
        for (index, sub_index, bytes) in [
            (object::MODES_OF_OPERATION, 0, &mode[..]),
            (object::INTERPOLATION_DATA_RECORD, 1, &position[..]),
        ] {
            let written = self.drive.dictionary_mut().download(index, sub_index, bytes, AlState::Op);
            written.expect("the drive has it");
        }
        self.now = self.now + Duration::from_millis(1);
        let mut inputs = [0; 12];
        self.drive.step(self.now, Some(&outputs), &mut inputs);
        self.last = self.input(&inputs);
    }

    /// A cycle in which the drive is enabled and shall be at `position`, moving at `velocity` with
    /// its present torque.
    fn follow(&mut self, drive: &mut Drive, position: i32, velocity: i32) -> DriveInput {
        let command = DriveCommand {
            request: Request::Enable,
            target_position: position,
            target_velocity: velocity,
            target_torque: self.last.torque,
            ..DriveCommand::default()
        };
        let output = drive.update(Some(self.last), command);
        self.exchange(output, drive.mode_of_operation());
        self.last
    }

    /// Enables the drive and brings it to [`SPEED`], by positions; the position then.
    fn run_up(&mut self, drive: &mut Drive) -> i32 {
        let mut at = self.last.position;
        for cycle in 0..400 {
            if drive.phase() == Phase::Holding {
                at = drive.holds_at();
            }
            // Not before it is enabled, and then in 200 cycles.
            at += if cycle < 50 { 0 } else { (SPEED * (cycle - 50) / 200).min(SPEED) };
            self.follow(drive, at, SPEED * 1_000);
        }
        assert_eq!(drive.phase(), Phase::Following);
        self.assert_at_speed("at first");
        at
    }

    fn assert_at_speed(&self, when: &str) {
        let expected = f64::from(SPEED * 1_000);
        assert!(
            (f64::from(self.last.velocity) - expected).abs() < 0.1 * expected,
            "{when}: {:?}",
            self.last
        );
        assert_eq!(self.last.statusword.state(), Some(State::OperationEnabled), "{when}");
    }

    fn input(&self, bytes: &[u8; 12]) -> DriveInput {
        let long = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("the length fits"));
        let short = |at: usize| i16::from_le_bytes(bytes[at..at + 2].try_into().expect("the length fits"));
        let mode = self
            .drive
            .dictionary()
            .value(object::MODES_OF_OPERATION_DISPLAY, 0)
            .expect("the object exists");
        DriveInput {
            statusword: Statusword(short(0) as u16),
            position: long(2),
            velocity: long(6),
            torque: short(10),
            mode: Some(ModeOfOperation::from_number(mode as i8)),
        }
    }
}

// feature(cia402): profile modes: handshake of set-points, target velocity and torque, changes while enabled
#[test]
fn a_simulated_drive_is_guided_through_the_profile_modes() {
    let mut bench = Bench::new();
    let mut drive = ProfileDrive::new(ProfileMode::Position);
    let mut last = bench.guide(&mut drive, 1);
    let start = last.position;
    last = bench.guide(&mut drive, 50);
    assert_eq!(last.statusword.state(), Some(State::OperationEnabled));
    for (set_point, wanted) in [
        (SetPoint::at(start + 100_000), start + 100_000),
        (SetPoint { relative: true, ..SetPoint::at(-30_000) }, start + 70_000),
        (SetPoint { change: Change::Immediately, ..SetPoint::at(start) }, start),
    ] {
        assert!(drive.move_to(set_point));
        let mut cycles = 0;
        while drive.progress() != SetPointProgress::Reached && cycles < 5_000 {
            last = bench.guide(&mut drive, 1);
            cycles += 1;
        }
        assert!(
            cycles > 20 && (last.position - wanted).abs() <= 1_048,
            "{set_point:?}: {last:?} after {cycles}"
        );
    }
    drive.change_mode(ProfileMode::Velocity);
    drive.set_velocity(COUNTS as i32 / 2);
    last = bench.guide(&mut drive, 500);
    assert!((f64::from(last.velocity) / COUNTS - 0.5).abs() < 0.01, "{last:?}");
    drive.change_mode(ProfileMode::Torque);
    drive.set_torque(-50);
    last = bench.guide(&mut drive, 100);
    assert_eq!((last.torque, last.statusword.state()), (-50, Some(State::OperationEnabled)));
    drive.change_mode(ProfileMode::Position);
    last = bench.guide(&mut drive, 1_000);
    assert!(last.velocity.abs() < 1_000 && drive.progress() == SetPointProgress::Interrupted, "{last:?}");
}

// feature(cia402): cyclic modes are changed while the axis moves, each to each, without a jump
#[test]
fn moving_drive_changes_cyclic_modes_without_a_jump() {
    let modes = [CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque];
    for (from, to) in modes.into_iter().flat_map(|from| modes.map(|to| (from, to))) {
        let mut bench = Bench::new();
        let mut drive = Drive::new(CyclicMode::Position, 2_000);
        let mut at = bench.run_up(&mut drive);
        for mode in [from, to] {
            assert!(drive.change_mode(mode));
            // A controller that has not followed positions begins where the axis will be when the
            // drive receives the set-point.
            if mode == CyclicMode::Position && drive.is_changing_mode() {
                at = bench.last.position + SPEED;
            }
            for cycle in 0..50 {
                at += SPEED;
                bench.follow(&mut drive, at, SPEED * 1_000);
                bench.assert_at_speed(&format!(
                    "{from:?} to {to:?} {cycle} cycles after the change to {mode:?}"
                ));
            }
            assert!(!drive.is_changing_mode() && drive.mode() == mode);
        }
        assert_eq!(bench.last.mode, Some(ModeOfOperation::from(to)));
    }
}

// feature(cia402): interpolated position: set-points of 0x60C1, enabled and guided as in CSP
#[test]
fn drive_follows_interpolated_positions_and_continues_in_csp() {
    let mut bench = Bench::new();
    let mut drive = Drive::interpolated(2_000);
    let mut at = bench.run_up(&mut drive);
    assert_eq!(bench.last.mode, Some(ModeOfOperation::InterpolatedPosition));
    assert!(drive.last_output().controlword.enables_interpolation());
    assert!((bench.last.position - at).abs() < 4 * SPEED, "{:?} at {at}", bench.last);
    assert!(drive.change_mode(CyclicMode::Position));
    for cycle in 0..50 {
        at += SPEED;
        bench.follow(&mut drive, at, 0);
        bench.assert_at_speed(&format!("{cycle} cycles after the change"));
    }
    assert_eq!(bench.last.mode, Some(ModeOfOperation::CyclicSynchronousPosition));
    assert!(!drive.last_output().controlword.enables_interpolation());
}

// feature(cia402): profile modes: handshake of set-points, target velocity and torque, changes while enabled
#[test]
fn moving_drive_changes_to_profile_mode_and_back_along_ramps() {
    let mut bench = Bench::new();
    let mut drive = Drive::new(CyclicMode::Position, 2_000);
    bench.run_up(&mut drive);
    let ramp = bench.drive.dictionary().value(object::PROFILE_ACCELERATION, 0).expect("the object exists");
    // Counts a second in a cycle, and what the loops overshoot.
    let most = ramp as i32 / 1_000 * 2;
    let mut profile = ProfileDrive::new(ProfileMode::Velocity);
    profile.set_velocity(SPEED * 1_000);
    for cycle in 0..600 {
        let before = bench.last.velocity;
        if cycle == 300 {
            profile.set_velocity(0);
        }
        let last = bench.guide(&mut profile, 1);
        assert!((last.velocity - before).abs() < most, "cycle {cycle}: {before} then {last:?}");
        assert_eq!(last.statusword.state(), Some(State::OperationEnabled));
        if cycle == 299 {
            bench.assert_at_speed("in profile velocity");
        }
    }
    let mut drive = Drive::new(CyclicMode::Position, 2_000);
    let at = bench.last.position;
    for cycle in 0..50 {
        let last = bench.follow(&mut drive, at, 0);
        assert!((last.position - at).abs() < 50, "cycle {cycle}: {at} then {last:?}");
        assert_eq!(last.statusword.state(), Some(State::OperationEnabled));
    }
    assert_eq!(bench.last.mode, Some(ModeOfOperation::CyclicSynchronousPosition));
}
