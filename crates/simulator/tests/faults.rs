//! Faults of the wire: frames are lost, delayed, duplicated and reordered. They cost a cycle at
//! most, never the bus, and old data never counts as fresh.

use crate::rig;

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{BringUpPhase, Event, MainDevice, ProcessDataSource, SubDeviceConfiguration};
use ethercat::time::Instant;
use onbeat_simulator::application::servo::default_mapping;

use rig::devices::{STEP, stamp_of, stamped};
use rig::wire::{Expected, Faults, Wire};
use rig::{PERIOD, Replies, Rig, described, drives, to_op};

/// Ten seconds.
const CYCLES: usize = 10_000;

/// Three drives mapped by SDO, and three SubDevices with stamps, in two frames together.
fn small_and_large() -> Rig {
    let mut devices = drives(3);
    devices.extend([stamped(1, 4), stamped(1, 150), stamped(2, 100)]);
    let mut configuration = vec![SubDeviceConfiguration::default(); devices.len()];
    for drive in &mut configuration[..3] {
        drive.process_data = ProcessDataSource::Explicit(default_mapping());
    }
    Rig::new(described(configuration), devices)
}

/// The same with a SubDevice that has inputs in two datagrams.
fn one_with_cut_inputs() -> Rig {
    let mut devices = drives(3);
    devices.extend([stamped(1, 4), stamped(1, 250), stamped(2, 100)]);
    Rig::new(to_op(), devices)
}

/// Stamps of one SubDevice so far.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    newest: Instant,
    fresh: usize,
}

impl Watched {
    /// Checks inputs that count as fresh after a cycle sent at `sent`, received by `received`.
    fn see(&mut self, inputs: &[u8], sent: Instant, received: Instant) {
        let stamp = stamp_of(inputs).expect("all of one step");
        assert!(stamp > self.newest, "{stamp:?} again or older than {:?}", self.newest);
        assert!(stamp + STEP > sent && stamp <= received, "{stamp:?} is not of the cycle sent at {sent:?}");
        *self = Self { newest: stamp, fresh: self.fresh + 1 };
    }
}

/// Brings the bus up and runs it on a wire with `faults`; all faults must be counted, and nothing
/// stale be fresh. Returns the watched SubDevices, the number of complete cycles, and the number of
/// cycles with a loss.
fn endure(rig: &mut Rig, cycles: usize, seed: u64, faults: Faults) -> ([Watched; 6], usize, usize) {
    rig.wire = Wire::new(seed);
    rig.wire.faults = faults;
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    rig.cycle_to(BringUpPhase::Op, 3000);

    let is_cut = rig.main_device.inputs(4).len() > 1376;
    let mut watched = [Watched::default(); 6];
    let (mut whole, mut with_loss) = (0, 0);
    for _ in 0..cycles {
        let (sent, report) = match rig.replies {
            Replies::SameCycle => (rig.now, rig.cycle()),
            Replies::NextCycle => {
                let sent = Instant::from_nanos((rig.now - Instant::EPOCH - PERIOD).as_nanos() as u64);
                let report = rig.take_replies();
                (sent, report)
            }
        };
        for (position, watched) in watched.iter_mut().enumerate().skip(3) {
            if rig.main_device.inputs_fresh(position) {
                watched.see(rig.main_device.inputs(position), sent, sent + PERIOD);
            }
        }
        if rig.replies == Replies::NextCycle {
            rig.send_cycle();
        }
        // No SubDevice is missing: a lost frame is no short working counter. (The second part of a
        // buffer that was not opened is one.)
        assert!(!report.spread || is_cut, "{report:?}");
        whole += usize::from(report.all_fresh);
        with_loss += usize::from(report.frames_lost > 0);
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op, "{:?}", rig.events);
    assert!(rig.segment.sub_devices().iter().all(|it| it.al_status().al_state() == Some(AlState::Op)));
    let unrest = |event: &Event| matches!(event, Event::Failed(_) | Event::StateChanged { .. });
    assert!(!rig.events.iter().any(unrest), "{:?}", rig.events);
    check_counters(rig);
    (watched, whole, with_loss)
}

/// Receives the last frames; then both sides have the same counts.
fn check_counters(rig: &mut Rig) {
    rig.main_device.end_cycle(rig.now);
    rig.cycles += 1;
    rig.wire.faults = Faults::default();
    while !rig.is_quiet() {
        rig.receive();
        rig.pass_to(rig.now + PERIOD, true);
    }
    let counted = rig.main_device.reception();
    let expected = rig.wire.expected();
    let found = Expected {
        sent: counted.sent,
        accepted: counted.accepted,
        lost: counted.lost,
        late: counted.late,
        duplicate: counted.duplicate,
    };
    assert_eq!(found, expected);
    assert_eq!(counted.foreign + counted.other_main_device + counted.truncated + counted.mismatched, 0);
}

/// A frame lost or late costs its cycle, and nothing else.
fn costs_its_cycle_only(seed: u64, replies: Replies, faults: Faults) {
    let mut rig = small_and_large();
    rig.replies = replies;
    let (watched, whole, with_loss) = endure(&mut rig, CYCLES, seed, faults);
    println!("{whole} cycles whole, {with_loss} with a loss, {watched:?}");
    assert_eq!(whole + with_loss, CYCLES);
    assert!(watched[3..].iter().all(|it| it.fresh >= whole && it.fresh <= CYCLES));
}

#[test]
fn one_percent_of_requests_and_replies_lost() {
    costs_its_cycle_only(1, Replies::SameCycle, Faults { lost: 0.01, ..Faults::default() });
}

#[test]
fn two_percent_five_cycles_late() {
    let delay = Duration::from_millis(5);
    costs_its_cycle_only(2, Replies::SameCycle, Faults { delayed: 0.02, delay, ..Faults::default() });
}

#[test]
fn five_percent_doubled() {
    costs_its_cycle_only(3, Replies::SameCycle, Faults { doubled: 0.05, ..Faults::default() });
}

#[test]
fn five_percent_overtaken() {
    costs_its_cycle_only(4, Replies::SameCycle, Faults { overtaken: 0.05, ..Faults::default() });
}

fn everything() -> Faults {
    let delay = Duration::from_millis(5);
    Faults { lost: 0.01, doubled: 0.02, overtaken: 0.05, delayed: 0.01, delay, ..Faults::default() }
}

#[test]
fn everything_at_once() {
    for seed in 10..12 {
        costs_its_cycle_only(seed, Replies::SameCycle, everything());
    }
}

// feature(main-device): loss, delay, duplicates, reordering: counted, no stale input taken as fresh
#[test]
fn everything_at_once_with_replies_taken_a_cycle_later() {
    costs_its_cycle_only(20, Replies::NextCycle, everything());
}

#[test]
fn inputs_split_over_two_datagrams_never_mix_buffers() {
    let delay = Duration::from_millis(5);
    let each = [
        Faults { lost: 0.01, ..Faults::default() },
        Faults { delayed: 0.02, delay, ..Faults::default() },
        Faults { doubled: 0.05, ..Faults::default() },
        Faults { overtaken: 0.05, ..Faults::default() },
    ];
    for (seed, faults) in (30..).zip(each) {
        let mut rig = one_with_cut_inputs();
        let (watched, whole, with_loss) = endure(&mut rig, 2_000, seed, faults);
        println!("{faults:?}: {whole} cycles whole, {with_loss} with a loss, {watched:?}");
        assert!(watched[4].fresh > 500);
    }
}

// feature(main-device): bring-up over a bad wire
#[test]
fn bring_up_on_a_bad_wire_ends_in_op_whatever_the_seed() {
    for seed in 100..130 {
        let mut rig = small_and_large();
        rig.wire = Wire::new(seed);
        rig.wire.faults = everything();
        rig.pump_to(BringUpPhase::PreOp);
        assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "seed {seed}: {:?}", rig.events);
        rig.cycle_to(BringUpPhase::Op, 3000);
        rig.main_device.request_state(AlState::Init);
        rig.pump_to(BringUpPhase::Down);
        assert_eq!(rig.main_device.phase(), BringUpPhase::Down, "seed {seed}");
        let state = |it: &onbeat_simulator::SubDevice| it.al_status().al_state();
        assert!(rig.segment.sub_devices().iter().all(|it| state(it) == Some(AlState::Init)), "seed {seed}");
    }
}

/// Without a frame check sequence both ends may see any bytes, but must not panic.
#[test]
fn changed_bytes_bring_neither_end_to_a_halt() {
    let mut outcomes = [0; 2];
    for seed in 200..215 {
        let mut rig = small_and_large();
        rig.wire = Wire::new(seed);
        rig.wire.faults = Faults { corrupted: 0.1, ..Faults::default() };
        rig.pump_to(BringUpPhase::PreOp);
        for _ in 0..20_000 {
            rig.cycle();
            if rig.failure().is_some() || rig.main_device.phase() == BringUpPhase::Op && rig.cycles > 1_000
            {
                break;
            }
        }
        let failed = rig.failure().is_some();
        assert!(failed || rig.main_device.phase() == BringUpPhase::Op, "seed {seed}: {:?}", rig.events);
        outcomes[usize::from(failed)] += 1;
        // With intact frames again it comes up, whatever was written before.
        rig.wire.faults = Faults::default();
        rig.events.clear();
        rig.main_device = MainDevice::new(rig.main_device.configuration().clone()).expect("as before");
        rig.run_up();
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "some come up, some do not: {outcomes:?}");
}
