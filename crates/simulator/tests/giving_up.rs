//! Replies are correct now and then, so that no single limit is ever reached. With the default
//! time-outs the bring-up still fails within 10 s after its last progress, and names the SubDevice
//! and the missing step.
//!
//! The bring-up waits through temporary silence of the bus, as when a host or a switch stalls.
//! After permanent silence it fails with the time it waited. Time in which the MainDevice's own
//! thread did not run does not count.

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, ProcessDataSource, SubDeviceConfiguration, SubDeviceError, Sync0,
};
use ethercat::register::{self, dc};
use ethercat::wire::{Command, frame};
use onbeat_simulator::application::servo::default_mapping;
use rig::wire::{Faults, Wire};
use rig::{Replies, Rig, Tamper, described, drives, to_op};

use crate::rig;

const LONGEST: Duration = Duration::from_secs(10);

/// Changes datagrams, each with its working counter behind its data; `false` loses the frame.
fn change(mut change: impl FnMut(Command, u16, &mut [u8]) -> bool + 'static) -> Option<Tamper> {
    Some(Box::new(move |bytes| {
        for place in frame::places(bytes).collect::<Vec<_>>() {
            let header = place.header;
            let kept = change(header.command, header.ado(), &mut bytes[place.data().start..place.end()]);
            if !kept {
                return bytes[12..14].fill(0);
            }
        }
    }))
}

/// Reason that it is given up, with cycles from PreOp on.
fn failure(mut rig: Rig) -> BusError {
    let since = rig.now;
    while rig.failure().is_none() {
        let in_pre_op = rig.main_device.phase() >= BringUpPhase::PreOp;
        if in_pre_op {
            _ = rig.cycle()
        } else {
            rig.pump(Duration::ZERO)
        }
        assert!(
            rig.now.since(since) < LONGEST,
            "{:?}: {:?}",
            rig.main_device.phase(),
            rig.main_device.awaited()
        );
    }
    rig.failure().cloned().expect("it was seen")
}

/// Losses alone would be tolerated for a second and more, wrong answers for half a second. In turn
/// each ends the row of the other.
// feature(main-device): a bring-up without progress ends below 10 s, with any replies; the error names the SubDevice and the step
#[test]
fn losses_and_missing_answers_in_turn() {
    let mut rig = Rig::new(to_op(), drives(2));
    let mut turn = 0;
    rig.tamper = change(move |command, _, datagram| {
        if !matches!(command, Command::Apwr | Command::Fprd) {
            return true;
        }
        datagram.fill(0);
        turn += 1;
        turn % 63 > 60
    });
    let failure = failure(rig);
    let BusError::SubDevice { position: 0, error: SubDeviceError::Stuck { after, .. }, .. } = &failure
    else {
        panic!("{failure}")
    };
    assert!(*after < LONGEST, "{after:?}");
    for told in ["SubDevice 0 ", "no progress for 9.5", "its station address, register 0x0010"] {
        assert!(failure.to_string().contains(told), "{failure}");
    }
}

// feature(main-device): a bring-up without progress ends below 10 s, with any replies; the error names the SubDevice and the step
#[test]
fn ports_that_are_opened_for_ever() {
    let mut rig = Rig::new(to_op(), drives(2));
    let mut count = 0_u16;
    rig.tamper = change(move |command, register, datagram| {
        if (command, register) == (Command::Brd, register::TYPE) {
            count = count.saturating_add(1);
            datagram[1..].copy_from_slice(&(count / 2).to_le_bytes());
            return count.is_multiple_of(2);
        }
        true
    });
    let failure = failure(rig);
    assert!(matches!(failure, BusError::Unsettled { after, .. } if after < LONGEST), "{failure}");
}

fn with_pulses() -> Configuration {
    let pulse = Sync0 { cycle: Duration::from_millis(1), shift: Duration::from_micros(250) };
    described(vec![SubDeviceConfiguration { sync0: Some(pulse), ..SubDeviceConfiguration::default() }])
}

/// The start time is written again before each attempt, and that succeeds.
// feature(main-device): a bring-up without progress ends below 10 s, with any replies; the error names the SubDevice and the step
#[test]
fn pulses_that_cannot_be_started() {
    let mut rig = Rig::new(with_pulses(), drives(1));
    rig.pump_to(BringUpPhase::PreOp);
    rig.tamper = change(|_, register, datagram| {
        register != dc::CYCLIC_UNIT_CONTROL || datagram[1] != dc::ACTIVATE_SYNC0
    });
    let failure = failure(rig);
    let told = "SubDevice 0 \"drive 0\": no progress for 9.5";
    assert!(failure.to_string().contains(told), "{failure}");
    assert!(failure.to_string().contains("the start of SYNC0"), "{failure}");
}

// feature(main-device): a bring-up without progress ends below 10 s, with any replies; the error names the SubDevice and the step
#[test]
fn pulses_that_wait_for_the_time_of_the_reference_clock() {
    let mut rig = Rig::new(with_pulses(), drives(1));
    rig.tamper = change(|command, _, datagram| {
        if command == Command::Frmw {
            datagram.fill(0);
        }
        true
    });
    rig.pump_to(BringUpPhase::PreOp);
    let failure = failure(rig);
    assert!(matches!(failure, BusError::NoReferenceTime { .. }), "{failure}");
    let told = "no time of the reference clock was received for 9.0 s on the way to Op";
    assert!(failure.to_string().starts_with(told), "{failure}");
}

/// Lost frames are reported as such, with a readable time.
// feature(main-device): a bring-up without progress ends below 10 s, with any replies; the error names the SubDevice and the step
#[test]
fn process_data_that_does_not_come_back() {
    let mut rig = Rig::new(to_op(), drives(1));
    rig.pump_to(BringUpPhase::PreOp);
    rig.tamper = change(|command, _, _| command != Command::Lrw);
    let failure = failure(rig);
    assert!(matches!(failure, BusError::IncompleteProcessData { received: None, .. }), "{failure}");
    let told = "process data was incomplete for 9.0 s on the way to Op: the frame with datagram 0 \
        did not come back; check";
    assert!(failure.to_string().starts_with(told), "{failure}");
}

// feature(main-device): a bring-up without progress ends below 10 s, with any replies; the error names the SubDevice and the step
#[test]
fn a_state_that_is_never_reached() {
    let mut rig = Rig::new(to_op(), drives(2));
    rig.pump_to(BringUpPhase::PreOp);
    rig.tamper = Some(Box::new(|bytes| {
        for place in frame::places(bytes).collect::<Vec<_>>() {
            if (place.header.command, place.header.ado()) == (Command::Fprd, register::AL_STATUS) {
                bytes[place.data()].fill(0);
                bytes[place.data().start] = AlState::PreOp.number();
            }
        }
    }));
    let failure = failure(rig);
    let told = "does not reach SafeOp within 9s";
    assert!(failure.to_string().contains(told), "{failure}");
}

/// Drops all frames sent within this time.
fn silence(rig: &mut Rig, time: Duration, cycles: bool) {
    let end = rig.now + time;
    rig.wire.faults = Faults { lost: 1.0, ..Faults::default() };
    while rig.now < end {
        if cycles {
            rig.cycle();
        } else {
            rig.pump(Duration::from_millis(1));
        }
    }
    rig.wire.faults = Faults::default();
}

#[test]
fn silence_of_900_ms_before_first_reply_is_tolerated() {
    let mut rig = Rig::new(to_op(), drives(3));
    silence(&mut rig, Duration::from_millis(900), false);
    rig.run_up();
}

#[test]
fn silence_of_1200_ms_on_the_way_to_pre_op_is_tolerated() {
    for phase in [BringUpPhase::Clocks, BringUpPhase::Configuration] {
        let mut rig = Rig::new(to_op(), drives(3));
        rig.pump_to(phase);
        silence(&mut rig, Duration::from_millis(1200), false);
        assert_eq!(rig.failure(), None, "{phase:?}");
        rig.run_up();
    }
}

#[test]
fn silence_of_1200_ms_on_the_way_to_op_is_tolerated() {
    for phase in [BringUpPhase::ToSafeOp, BringUpPhase::SafeOp] {
        let mut rig = Rig::new(to_op(), drives(3));
        rig.pump_to(BringUpPhase::PreOp);
        rig.cycle_to(phase, 2000);
        silence(&mut rig, Duration::from_millis(1200), true);
        assert_eq!(rig.failure(), None, "{phase:?}");
        rig.cycle_to(BringUpPhase::Op, 2000);
    }
}

/// The SubDevices' watchdogs expire meanwhile, so that they refuse Op until outputs flow again.
#[test]
fn missing_outputs_while_op_is_requested_only_delay_it() {
    let mut rig = Rig::new(to_op(), drives(3));
    rig.pump_to(BringUpPhase::PreOp);
    rig.cycle_to(BringUpPhase::ToOp, 2000);
    silence(&mut rig, Duration::from_millis(300), true);
    rig.cycle_to(BringUpPhase::Op, 2000);
    assert_eq!(rig.failure(), None);
    assert!(rig.segment.sub_devices().iter().all(|it| it.al_status().al_state() == Some(AlState::Op)));
}

/// Longer than anything is waited for.
const STANDSTILL: Duration = Duration::from_secs(12);

// feature(main-device): time in which its thread did not run counts towards no limit
#[test]
fn host_stall_on_the_way_to_pre_op_only_delays_it() {
    let mut mapping = default_mapping();
    mapping.outputs[0].entries.reverse();
    let process_data = ProcessDataSource::Explicit(mapping);
    let written = vec![SubDeviceConfiguration { process_data, ..SubDeviceConfiguration::default() }; 2];
    let mut steps = 0;
    let mut whole = Rig::new(described(written.clone()), drives(2));
    while whole.main_device.phase() != BringUpPhase::PreOp {
        whole.pump(Duration::ZERO);
        steps += 1;
    }
    for step in (0..steps).step_by(3) {
        let mut rig = Rig::new(described(written.clone()), drives(2));
        (0..step).for_each(|_| rig.pump(Duration::ZERO));
        rig.now = rig.now + STANDSTILL;
        rig.pump_to(BringUpPhase::PreOp);
        assert_eq!(rig.failure(), None, "step {step} of {steps}");
        assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "step {step} of {steps}");
    }
}

#[test]
fn host_stall_on_the_way_to_op_only_delays_it() {
    let sync0 = Some(Sync0 { cycle: Duration::from_millis(1), shift: Duration::ZERO });
    let with_sync0 = vec![SubDeviceConfiguration { sync0, ..SubDeviceConfiguration::default() }; 2];
    for cycles in 0..80 {
        let mut rig = Rig::new(described(with_sync0.clone()), drives(2));
        rig.pump_to(BringUpPhase::PreOp);
        (0..cycles).for_each(|_| _ = rig.cycle());
        rig.pass_to(rig.now + STANDSTILL, false);
        rig.cycle_to(BringUpPhase::Op, 2000);
        assert_eq!(rig.failure(), None, "cycle {cycles}");
    }
}

/// As an ordinary process among dozens that compete for the CPU: it runs for a moment now and then,
/// and so does the thread that answers.
// feature(main-device): a bus comes to Op on a machine that is busy all the time, only later
#[test]
fn a_machine_that_does_much_else_comes_to_op_later() {
    let sync0 = Some(Sync0 { cycle: Duration::from_millis(1), shift: Duration::ZERO });
    let with_sync0 = vec![SubDeviceConfiguration { sync0, ..SubDeviceConfiguration::default() }; 2];
    for seed in 1..9 {
        let mut rig = Rig::new(described(with_sync0.clone()), drives(2));
        rig.pump_to(BringUpPhase::PreOp);
        rig.wire = Wire::new(seed);
        rig.replies = Replies::NextCycle;
        rig.wire.faults = Faults { delayed: 0.1, delay: Duration::from_millis(40), ..Faults::default() };
        let mut cycles = 0;
        while rig.main_device.phase() != BringUpPhase::Op {
            rig.cycle();
            let other_work = Duration::from_millis(17 * (cycles + seed) % 90);
            rig.pass_to(rig.now + other_work, false);
            assert_eq!(rig.failure(), None, "seed {seed}, cycle {cycles}");
            cycles += 1;
            assert!(cycles < 20_000, "{seed}: {:?}", rig.main_device.awaited());
        }
    }
}

/// Error of the transition to SafeOp on a wire with these faults.
fn failure_with(faults: Faults) -> String {
    let mut rig = Rig::new(to_op(), drives(3));
    rig.pump_to(BringUpPhase::PreOp);
    rig.cycle_to(BringUpPhase::ToSafeOp, 10);
    rig.wire.faults = faults;
    for _ in 0..10_000 {
        rig.cycle();
        if let Some(failure) = rig.failure() {
            return failure.to_string();
        }
    }
    panic!("it goes on for ever: {:?}", rig.events);
}

#[test]
fn a_dead_cable_is_given_up_with_how_long_it_was_dead() {
    assert_eq!(
        failure_with(Faults { lost: 1.0, ..Faults::default() }),
        "SubDevice 0 \"drive 0\": 76 frames in a row were lost within 1500 ms at register 0x0130: check the cable"
    );
}

/// Later than replies are ever waited for.
#[test]
fn replies_that_all_come_too_late_are_not_put_down_to_the_cable() {
    let delay = Duration::from_millis(100);
    let sentence = failure_with(Faults { delayed: 1.0, delay, ..Faults::default() });
    assert!(sentence.contains("replies came too late in that time; check what keeps"), "{sentence}");
}
