//! Homing, against drives of every sort and against nonsense.

use super::super::super::homing::ANSWER_CYCLES;
use super::*;

const COMPLETED: u16 = Statusword::TARGET_REACHED | Statusword::HOMING_ATTAINED;

/// A drive that homes, in Operation enabled all the time.
#[derive(Clone, Copy, Debug)]
struct Finder {
    /// Cycles until a newly requested mode is shown.
    lag: u32,
    /// Cycles of the search; with 0 it ends before a cycle sees it.
    cycles: u32,
    /// Outcome: it finds its home, or shows an error.
    finds: bool,
    /// Value its position has then.
    home: i32,
    /// The mode it shows, the one it goes over to, and in how many cycles.
    mode: ModeOfOperation,
    next: (ModeOfOperation, u32),
    searched: u32,
    /// Bits 10, 12 and 13 of the statusword, in homing mode.
    bits: u16,
    position: i32,
}

impl Finder {
    /// One that shows `bits` from an earlier homing.
    fn new(lag: u32, cycles: u32, finds: bool, bits: u16) -> Self {
        let mode = ModeOfOperation::CyclicSynchronousPosition;
        let next = (mode, 0);
        Self { lag, cycles, finds, home: -77, mode, next, searched: 0, bits, position: 12_345 }
    }

    fn input(&self) -> DriveInput {
        let homing = self.mode == ModeOfOperation::Homing;
        // In the cyclic modes bit 12 says that it follows.
        let bits = if homing { self.bits } else { Statusword::DRIVE_FOLLOWS_COMMAND };
        DriveInput {
            statusword: Statusword(State::OperationEnabled.statusword() | bits),
            position: self.position,
            mode: Some(self.mode),
            ..DriveInput::default()
        }
    }

    fn apply(&mut self, output: DriveOutput, asked: ModeOfOperation) {
        if self.next.0 != asked {
            self.next = (asked, self.lag);
        }
        self.next.1 = self.next.1.saturating_sub(1);
        if self.next.1 == 0 {
            self.mode = self.next.0;
        }
        match self.mode {
            ModeOfOperation::Homing => self.search(output.controlword),
            _ => self.position = output.target_position,
        }
    }

    fn search(&mut self, controlword: Controlword) {
        if controlword.halt() || !controlword.homing_start() {
            self.searched = 0;
            self.bits |= Statusword::TARGET_REACHED;
        } else if self.searched < self.cycles {
            self.searched += 1;
            self.bits = 0;
            self.position += 3;
        } else if self.searched == self.cycles {
            self.searched += 1;
            let error = Statusword::HOMING_ERROR | Statusword::TARGET_REACHED;
            self.bits = if self.finds { COMPLETED } else { error };
            self.position = if self.finds { self.home } else { self.position };
        }
    }
}

/// One cycle, the controller asking for this.
fn one_cycle(drive: &mut Drive, finder: &mut Finder, request: Request, target: i32) -> DriveOutput {
    let command = DriveCommand { request, target_position: target, ..DriveCommand::default() };
    let output = drive.update(Some(finder.input()), command);
    finder.apply(output, drive.mode_of_operation());
    output
}

/// An enabled drive after a request to home.
fn asked(finder: &mut Finder) -> Drive {
    let mut drive = Drive::new(CyclicMode::Position, STEP);
    assert!(!drive.home(), "not before it is enabled");
    for _ in 0..3 {
        let held = drive.holds_at();
        one_cycle(&mut drive, finder, Request::Enable, held);
    }
    assert!(drive.home() && !drive.home(), "once");
    drive
}

/// Cycles until the drive has its axis back; far away targets meanwhile.
fn until_over(drive: &mut Drive, finder: &mut Finder) -> u32 {
    for cycles in 1..2_000 {
        let input = finder.input();
        let output = one_cycle(drive, finder, Request::Enable, 1 << 20);
        assert_eq!(output.target_position, input.position, "set-points move nothing");
        assert_eq!(drive.phase(), Phase::Holding);
        if !drive.is_homing() {
            return cycles;
        }
    }
    panic!("{:?} {finder:?}", drive.homing());
}

#[test]
fn homing_waits_for_its_mode_and_returns_the_cyclic_one() {
    let mut finder = Finder::new(2, 3, true, 0);
    let mut drive = asked(&mut finder);
    let mut seen = Vec::new();
    while drive.is_homing() {
        let mode = finder.mode.number();
        let output = one_cycle(&mut drive, &mut finder, Request::Enable, 0);
        seen.push((mode, output.controlword.0, drive.mode_of_operation().number()));
    }
    let expected = [
        (8, 0x0F, 6),
        (8, 0x0F, 6),
        (6, 0x1F, 6),
        (6, 0x1F, 6),
        (6, 0x1F, 6),
        (6, 0x1F, 6),
        (6, 0x0F, 8),
        (6, 0x0F, 8),
        (8, 0x0F, 8),
    ];
    assert_eq!(seen, expected);
    assert_eq!((drive.homing(), drive.holds_at()), (HomingProgress::Attained, -77));
    let output = one_cycle(&mut drive, &mut finder, Request::Enable, -77 + STEP as i32);
    assert_eq!(output.target_position, -77 + STEP as i32, "it goes on where it is");
}

#[test]
fn status_of_an_earlier_homing_is_no_answer() {
    for earlier in [COMPLETED, Statusword::HOMING_ERROR | Statusword::TARGET_REACHED] {
        let mut finder = Finder::new(1, 100, true, earlier);
        let mut drive = asked(&mut finder);
        assert!(until_over(&mut drive, &mut finder) > 100);
        assert_eq!(drive.homing(), HomingProgress::Attained);
    }
    // A home at the current position: nothing ever changes.
    let mut finder = Finder::new(1, 0, true, COMPLETED);
    let mut drive = asked(&mut finder);
    let cycles = until_over(&mut drive, &mut finder);
    assert!((ANSWER_CYCLES..ANSWER_CYCLES + 10).contains(&cycles), "{cycles}");
    assert_eq!(drive.homing(), HomingProgress::Attained);
}

#[test]
fn homing_error_halts_the_axis_and_holds_its_position() {
    let mut finder = Finder::new(1, 20, false, 0);
    let mut drive = asked(&mut finder);
    let mut halted = 0;
    while drive.is_homing() {
        halted += u32::from(one_cycle(&mut drive, &mut finder, Request::Enable, 0).controlword.halt());
    }
    assert!(halted >= 8, "halted for {halted} cycles");
    assert_eq!((drive.homing(), finder.mode), (HomingProgress::Failed, drive.mode_of_operation()));
}

#[test]
fn every_other_request_interrupts_it_at_once() {
    for request in [Request::Halt, Request::Disable, Request::QuickStop, Request::FaultReset] {
        let mut finder = Finder::new(1, 1_000, true, 0);
        let mut drive = asked(&mut finder);
        for _ in 0..20 {
            one_cycle(&mut drive, &mut finder, Request::Enable, 0);
        }
        assert!(finder.searched > 0);
        let output = one_cycle(&mut drive, &mut finder, request, 0);
        assert!(!output.controlword.homing_start(), "{request:?}");
        assert_eq!(drive.homing(), HomingProgress::Interrupted, "{request:?}");
        // The drive steps down: its mode is the cyclic one when it comes up again.
        let off = DriveInput { statusword: Statusword(State::SwitchedOn.statusword()), ..finder.input() };
        drive.update(Some(off), DriveCommand { request, ..DriveCommand::default() });
        assert!(!drive.is_homing());
        assert_eq!(drive.mode_of_operation(), ModeOfOperation::CyclicSynchronousPosition);
    }
}

#[test]
fn homing_waits_for_its_mode_until_aborted() {
    let mut finder = Finder::new(u32::MAX, 0, true, 0);
    let mut drive = asked(&mut finder);
    for _ in 0..1_000 {
        assert!(!one_cycle(&mut drive, &mut finder, Request::Enable, 0).controlword.homing_start());
    }
    assert_eq!(drive.homing(), HomingProgress::Running);
    drive.abort_homing();
    until_over(&mut drive, &mut finder);
    assert_eq!(drive.homing(), HomingProgress::Failed);
}

#[test]
fn a_fault_and_a_lost_frame_end_and_keep_it() {
    let mut finder = Finder::new(1, 50, true, 0);
    let mut drive = asked(&mut finder);
    for _ in 0..10 {
        one_cycle(&mut drive, &mut finder, Request::Enable, 0);
    }
    let before = drive.last_output();
    assert_eq!(drive.update(None, wanting(Request::Enable)), before);
    assert_eq!(drive.homing(), HomingProgress::Running);
    drive.update(seen(State::Fault, 5), wanting(Request::Enable));
    assert_eq!((drive.homing(), drive.is_homing()), (HomingProgress::Interrupted, false));
}

fn any_mode() -> impl Strategy<Value = Option<ModeOfOperation>> {
    let likely = prop::sample::select(vec![6_i8, 8, 9]);
    let number = prop_oneof![8 => likely, 1 => any::<i8>()];
    prop::option::weighted(0.9, number.prop_map(ModeOfOperation::from_number))
}

proptest! {
    // feature(axes): homing by the drive (CiA 402 mode 6), without a step afterwards; errors, time-outs, cancelled
    #[test]
    fn homing_starts_only_in_its_mode_without_set_points(
        cycles in prop::collection::vec((any_cycle(), any_mode(), any::<bool>(), 0..20_u8), 1..120),
    ) {
        let mut drive = Drive::new(CyclicMode::Position, STEP);
        for ((input, command), mode, home, other) in cycles {
            if home {
                drive.home();
            } else if other == 0 {
                drive.abort_homing();
            }
            let (was_homing, before) = (drive.is_homing(), drive.last_output());
            let input = input.map(|input| DriveInput { mode, ..input });
            let output = drive.update(input, command);
            let asked = drive.mode_of_operation();
            prop_assert!(asked == ModeOfOperation::CyclicSynchronousPosition || drive.is_homing());
            let Some(input) = input else {
                if was_homing {
                    prop_assert_eq!(output.target_position, before.target_position);
                }
                prop_assert_eq!(output.controlword.0 & !before.controlword.0 & !Controlword::HALT_BIT, 0);
                continue;
            };
            let state = input.statusword.state();
            if output.controlword.homing_start() && state.is_some() {
                prop_assert!(was_homing && drive.is_homing());
                prop_assert_eq!((mode, state), (Some(ModeOfOperation::Homing), Some(State::OperationEnabled)));
                prop_assert_eq!(command.request, Request::Enable);
                prop_assert_eq!(asked, ModeOfOperation::Homing);
            }
            if was_homing {
                prop_assert_eq!(output.target_position, input.position);
                prop_assert!(drive.phase() != Phase::Following);
            }
            prop_assert_eq!((output.target_velocity, output.target_torque), (0, 0));
            prop_assert!(state == Some(State::OperationEnabled) || !drive.is_homing());
        }
    }

    #[test]
    fn homing_outcome_ignores_earlier_status_bits(
        lag in 0..40_u32,
        cycles in 0..300_u32,
        finds in any::<bool>(),
        earlier in prop::sample::select(vec![0, Statusword::TARGET_REACHED, COMPLETED,
            Statusword::HOMING_ERROR, Statusword::HOMING_ERROR | Statusword::TARGET_REACHED]),
        home in any::<i32>(),
    ) {
        let mut finder = Finder { home, ..Finder::new(lag, cycles, finds, earlier) };
        let mut drive = asked(&mut finder);
        until_over(&mut drive, &mut finder);
        let wanted = if finds { HomingProgress::Attained } else { HomingProgress::Failed };
        prop_assert_eq!(drive.homing(), wanted);
        prop_assert_eq!(drive.holds_at(), finder.position);
        let next = finder.position.wrapping_add(STEP as i32);
        prop_assert_eq!(one_cycle(&mut drive, &mut finder, Request::Enable, next).target_position, next);
    }
}
