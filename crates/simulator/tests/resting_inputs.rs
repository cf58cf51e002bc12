//! Input terminals without a mailbox: their process data stand in SyncManager 0, where others have mail.

use crate::rig;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ethercat::al::AlState;
use ethercat::main_device::BringUpPhase;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::sii::digital_inputs;
use onbeat_simulator::application::{Application, ProcessDataLengths};

use rig::{PERIOD, Rig, to_op};

/// Eight inputs with constant levels, whose steps are counted.
struct Levels {
    rests: bool,
    steps: Arc<AtomicU64>,
}

impl Application for Levels {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 0, inputs: 1 }
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        inputs.fill(0x5A);
    }

    fn rests(&self) -> bool {
        self.rests
    }
}

/// All replies and registers that a MainDevice sees of such a terminal, and the steps of a second without frames.
fn life(rests: bool) -> (Vec<Vec<u8>>, u64) {
    let (seen, steps) = (Rc::new(RefCell::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let sii = digital_inputs(Identity::default(), "inputs", 8).image().emit();
    let levels = Levels { rests, steps: Arc::clone(&steps) };
    let mut rig = Rig::new(to_op(), vec![SubDevice::from_sii(&sii, Box::new(levels))]);
    let replies = Rc::clone(&seen);
    rig.tamper = Some(Box::new(move |bytes| replies.borrow_mut().push(bytes.to_vec())));
    let note = |rig: &mut Rig| {
        let mut registers = vec![0; 0x1800];
        rig.segment.sub_device_mut(0).unwrap().peek(0, &mut registers);
        seen.borrow_mut().push(registers);
    };
    rig.run_up();
    for cycles in [1, 2, 50] {
        (0..cycles).for_each(|_| assert!(rig.cycle().all_fresh));
        note(&mut rig);
    }
    let before = steps.load(Ordering::Relaxed);
    rig.pass_to(rig.now + 1000 * PERIOD, false);
    let made = steps.load(Ordering::Relaxed) - before;
    note(&mut rig);
    (0..5).for_each(|_| _ = rig.cycle());
    rig.main_device.request_state(AlState::Init);
    rig.pump_to(BringUpPhase::Down);
    note(&mut rig);
    rig.tamper = None;
    drop(rig);
    (Rc::try_unwrap(seen).unwrap().into_inner(), made)
}

#[test]
fn inputs_without_a_mailbox_rest_while_no_frame_comes() {
    let (resting, made) = life(true);
    let (stepped, all) = life(false);
    assert!(made < 10 && all > 1000, "{made} steps of {all}");
    assert!(resting == stepped, "a reply or a register shows that steps were left out");
}
