//! Process data that is exchanged every few cycles, next to data of every cycle.
//!
//! Replies that take longer than they are waited for at first: a large bus, or a machine that does
//! much else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::main_device::{BringUpPhase, MailboxRequest, MailboxService, SubDeviceConfiguration};
use ethercat::time::Instant;
use ethercat::wire::{Command, frame};
use proptest::prelude::*;
use rig::devices::{is_of, numbered, take_part, taken};
use rig::wire::Faults;
use rig::{PERIOD, Rig, described, drives, to_op};

use crate::rig;

/// A bus in Op; `every` is the exchange interval of each SubDevice, in cycles.
fn in_op(every: &[u16]) -> Rig {
    let configured = |&every: &u16| SubDeviceConfiguration { every, ..Default::default() };
    let devices = (0..every.len()).map(|number| numbered(number, 1)).collect();
    let mut rig = Rig::new(described(every.iter().map(configured).collect()), devices);
    rig.run_up();
    rig
}

/// One cycle with new outputs. Returns when it was sent.
fn cycle(rig: &mut Rig) -> (Instant, bool) {
    for position in 0..rig.main_device.sub_devices().len() {
        let number = (rig.cycles + 1).to_le_bytes();
        rig.main_device.outputs_mut(position).copy_from_slice(&number);
    }
    let sent = rig.now;
    let report = rig.cycle();
    (sent, report.all_fresh)
}

/// True if the inputs of a SubDevice are of the cycle that was sent then.
fn is_of_cycle(rig: &Rig, position: usize, sent: Instant) -> bool {
    is_of(rig.main_device.inputs(position), position, sent, rig.now)
}

// feature(main-device): process data of a SubDevice every N cycles, in separate datagrams; fresh after its last exchange
#[test]
fn slow_groups_are_exchanged_in_turn_and_stay_fresh() {
    let every = [1, 4, 2, 4, 1, 1000];
    let mut rig = in_op(&every);
    (0..1000).for_each(|_| _ = cycle(&mut rig));
    let mut exchanged = vec![Vec::new(); every.len()];
    for number in 0..2000_u64 {
        let (sent, all_fresh) = cycle(&mut rig);
        assert!(all_fresh, "cycle {number}");
        for (position, exchanged) in exchanged.iter_mut().enumerate() {
            assert!(rig.main_device.exchanged(position));
            if is_of_cycle(&rig, position, sent) {
                exchanged.push(number);
                let before = rig.cycles.saturating_sub(every[position].into());
                assert_eq!(taken(rig.main_device.inputs(position)), before, "outputs of its last exchange");
            }
        }
        assert!(rig.main_device.working_counters().all(|it| it.is_complete()));
    }
    for (every, exchanged) in every.into_iter().zip(exchanged) {
        assert_eq!(exchanged.len(), 2000 / usize::from(every));
        assert!(exchanged.windows(2).all(|pair| pair[1] - pair[0] == u64::from(every)), "{exchanged:?}");
    }
}

#[test]
fn missing_one_alone_is_stale_and_polled_every_cycle() {
    let mut rig = in_op(&[4, 1, 4, 1]);
    take_part(&mut rig, 0, false, false);
    let mut exchanged = Vec::new();
    for _ in 0..26 {
        cycle(&mut rig);
        exchanged.push([0, 1, 2, 3].map(|position| rig.main_device.exchanged(position)));
    }
    // SubDevices of every cycle never miss one, also between SubDevices that share the datagram.
    assert!(exchanged.iter().all(|it| it[1] && it[3]), "{exchanged:?}");
    // Its turn follows within four cycles, and the other SubDevice of its datagram is stale with it
    // for a cycle.
    assert_eq!(exchanged.iter().filter(|it| !it[2]).count(), 1, "{exchanged:?}");
    assert!(exchanged[6..].iter().all(|it| *it == [false, true, true, true]), "{exchanged:?}");
    take_part(&mut rig, 0, true, true);
    let (sent, _) = cycle(&mut rig);
    assert!(is_of_cycle(&rig, 0, sent) && rig.main_device.exchanged(0), "not one cycle more");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// With any losses: fresh inputs are no older than their own period, and a lost exchange is
    /// made up for in the next cycle.
    #[test]
    fn fresh_is_never_older_than_its_own_period(
        every in proptest::collection::vec(1..9_u16, 2..6),
        lost in 0.0..0.5_f64,
        back in 0.0..0.5_f64,
    ) {
        let mut rig = in_op(&every);
        rig.wire.faults = Faults { lost, ..Faults::default() };
        rig.wire.reply_faults = Some(Faults { lost: back, ..Faults::default() });
        let mut last = vec![rig.now; every.len()];
        for _ in 0..300 {
            let (sent, _) = cycle(&mut rig);
            for (position, (last, &every)) in last.iter_mut().zip(&every).enumerate() {
                if is_of_cycle(&rig, position, sent) {
                    *last = sent;
                }
                let age = sent.since(*last).as_nanos() / PERIOD.as_nanos();
                let fresh = rig.main_device.inputs_fresh(position);
                prop_assert!(!fresh || age < u128::from(every), "{position}: {age} cycles of {every}");
            }
        }
        (rig.wire.faults, rig.wire.reply_faults) = (Faults::default(), None);
        (0..2).for_each(|_| _ = cycle(&mut rig));
        let (_, all_fresh) = cycle(&mut rig);
        prop_assert!(all_fresh);
    }
}

// feature(main-device): LRW, or LWR and LRD where a SubDevice is to have outputs and inputs in datagrams of their own
#[test]
fn outputs_and_inputs_use_separate_datagrams_if_configured() {
    for lrw in [true, false] {
        let configuration = SubDeviceConfiguration { lrw, ..Default::default() };
        let mut rig = Rig::new(
            described(vec![Default::default(), configuration]),
            vec![numbered(0, 1), numbered(1, 1)],
        );
        rig.run_up();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&seen);
        rig.tamper = Some(Box::new(move |bytes| {
            heard.lock().unwrap().extend(frame::places(bytes).map(|place| place.header.command));
        }));
        assert!(cycle(&mut rig).1);
        let seen = seen.lock().unwrap();
        let logical: Vec<_> =
            [Command::Lrw, Command::Lwr, Command::Lrd].map(|it| seen.contains(&it)).into();
        assert_eq!(logical, [lrw, !lrw, !lrw], "{seen:?}");
    }
}

#[test]
fn slow_process_data_of_several_datagrams_is_refused() {
    let slow = SubDeviceConfiguration { every: 4, ..Default::default() };
    let mut rig = Rig::new(described(vec![slow]), vec![numbered(0, 100)]);
    rig.pump_to(BringUpPhase::PreOp);
    let failure = rig.failure().unwrap().to_string();
    let expected = "its process data of 2408 bytes takes more than one datagram, expected one, as it goes every 4 cycles";
    assert!(failure.contains(expected), "{failure}");
}

/// Replies to all frames take this long, and are waited for 20 ms at first.
const DELAY: Duration = Duration::from_millis(35);

fn slow() -> Rig {
    let mut rig = Rig::new(to_op(), drives(3));
    rig.wire.reply_faults = Some(Faults { delayed: 1.0, delay: DELAY, ..Faults::default() });
    rig
}

/// Time from now until an SDO request just sent is given up.
fn time_of_a_request(rig: &mut Rig) -> Duration {
    let service = MailboxService::Upload { index: 0x1018, sub_index: 1, complete_access: false };
    rig.main_device.submit(MailboxRequest { position: 1, service, data: Vec::with_capacity(4) }).unwrap();
    rig.transmit();
    let time = rig.main_device.poll_timeout().unwrap().since(rig.now);
    rig.pump(Duration::from_millis(500));
    time
}

/// Late replies are waited for: a few frames are lost until the delay is known, but not all of them
/// for ever.
// feature(main-device): the time that replies are waited for on the way up follows the time they take
#[test]
fn bus_with_late_replies_comes_up_with_few_frames_lost() {
    let mut rig = slow();
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    let counters = rig.main_device.reception();
    assert!(counters.lost <= 3, "{counters:?}");
    assert!(time_of_a_request(&mut rig) >= DELAY);
}

/// Once they come soon, a lost frame is sent again as soon as before.
#[test]
fn fast_replies_restore_fast_loss_detection() {
    let mut rig = slow();
    rig.pump_to(BringUpPhase::PreOp);
    rig.wire.reply_faults = None;
    (0..40).for_each(|_| _ = time_of_a_request(&mut rig));
    assert_eq!(time_of_a_request(&mut rig), rig.main_device.configuration().reply_timeout);
}
