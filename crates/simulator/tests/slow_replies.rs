//! Replies that take longer than they are waited for at first: a large bus, or a machine that does
//! much else.

use crate::rig;

use std::time::Duration;

use ethercat::main_device::{BringUpPhase, MailboxRequest, MailboxService};

use rig::wire::Faults;
use rig::{Rig, drives, to_op};

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
