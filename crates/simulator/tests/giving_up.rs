//! Replies are correct now and then, so that no single limit is ever reached. With the default
//! time-outs the bring-up still fails within 10 s after its last progress, and names the SubDevice
//! and the missing step.

use crate::rig;

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, SubDeviceConfiguration, SubDeviceError, Sync0,
};
use ethercat::register::{self, dc};
use ethercat::wire::{Command, frame};

use rig::{Rig, Tamper, described, drives, to_op};

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
// feature(main-device): a bring-up that gets no further is given up below 10 s, whatever comes back; it is said at whom and at what
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

// feature(main-device): a bring-up that gets no further is given up below 10 s, whatever comes back; it is said at whom and at what
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
// feature(main-device): a bring-up that gets no further is given up below 10 s, whatever comes back; it is said at whom and at what
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

// feature(main-device): a bring-up that gets no further is given up below 10 s, whatever comes back; it is said at whom and at what
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
// feature(main-device): a bring-up that gets no further is given up below 10 s, whatever comes back; it is said at whom and at what
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

// feature(main-device): a bring-up that gets no further is given up below 10 s, whatever comes back; it is said at whom and at what
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
