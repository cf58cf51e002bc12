//! Many SubDevices on one segment: a thousand come up, and idle ones answer as if they were
//! stepped.

use crate::rig;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, Event, MailboxRequest, MailboxService, SubDeviceConfiguration,
    SubDeviceError, Sync0,
};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{
    Application, ProcessDataLengths, Replies, ServoDescription, ServoDrive, StateChange, Sync0Event,
    Synchronisation, SynchronisationState,
};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, SubDevice};

use rig::wire::Wire;
use rig::{DRIVE, PERIOD, Rig, described, drives, to_op};

/// Frames for each SubDevice of a thousand, all of the way to Op: as many datagrams as fit share
/// one.
const FRAMES_EACH: u64 = 8;

/// Consecutive complete cycles before Op is requested.
const WHOLE_CYCLES: u64 = 10;

/// Workers of a thousand share frames, and lookups by address do not grow with their number.
// feature(main-device): a thousand SubDevices reach Op
#[test]
fn a_thousand_sub_devices_reach_op_and_share_frames_on_the_way() {
    let mut rig = Rig::new(to_op(), drives(1000));
    rig.run_up();
    assert!(rig.cycle().all_fresh);
    let states = rig.segment.sub_devices().iter().map(|it| it.al_status().al_state());
    assert_eq!(states.filter(|state| *state == Some(AlState::Op)).count(), 1000);
    let frames = rig.main_device.reception().sent;
    assert!(frames < 1000 * FRAMES_EACH, "{frames} frames");
}

/// Cycles from PreOp to Op in addition to the required complete ones. Separate requests and status
/// reads of each of a thousand take far more, as few frames fit next to their process data.
const CYCLES_TO_OP: u64 = 20;

/// One frame a cycle checks the starts of ten. Each waits for all others between its start time and
/// its activation, and SafeOp is requested from all once SYNC0 is near.
// feature(main-device): a thousand drives with SYNC0 at 1 ms come to Op, and no start of SYNC0 is missed
#[test]
fn thousand_drives_with_sync0_reach_op_without_missed_start() {
    let mut rig = Rig::new(with_sync0(1000), drives(1000));
    rig.run_up();
    let missed = rig.events.iter().filter(|it| matches!(it, Event::SyncMissed { .. })).count();
    assert_eq!((missed, rig.main_device.phase()), (0, BringUpPhase::Op));
    let mut whole = 0;
    (0..20).for_each(|_| whole += u32::from(rig.cycle().all_fresh));
    assert_eq!(whole, 20);
}

/// One broadcast requests a state from all, and the status in each cycle's frame shows when they
/// reached it.
// feature(main-device): all SubDevices of a bus get the request for SafeOp and Op at once
#[test]
fn a_thousand_sub_devices_go_from_pre_op_to_op_in_a_few_cycles() {
    let mut rig = Rig::new(to_op(), drives(1000));
    rig.pump_to(BringUpPhase::PreOp);
    let before = rig.main_device.reception().sent;
    rig.cycle_to(BringUpPhase::Op, 2000);
    let (cycles, frames) = (rig.cycles, rig.main_device.reception().sent - before);
    assert!(cycles < WHOLE_CYCLES + CYCLES_TO_OP, "{cycles} cycles, {frames} frames");
    assert!(rig.main_device.sub_devices().iter().all(|it| it.al_status.al_state() == Some(AlState::Op)));
}

/// A SubDevice that refuses a state requested of all is reported by name, with its reason.
#[test]
fn one_refusal_of_op_among_many_is_reported() {
    for count in [3, 100] {
        let mut rig = Rig::new(to_op(), drives(count));
        let refused = (AlState::Op, AlStatusCode::NO_VALID_OUTPUTS);
        rig.segment.sub_device_mut(2).unwrap().refuse_state(Some(refused));
        rig.pump_to(BringUpPhase::PreOp);
        (0..1000).for_each(|_| _ = rig.cycle());
        match rig.failure() {
            Some(BusError::SubDevice {
                position: 2,
                error: SubDeviceError::Refused { requested, code, .. },
                ..
            }) => {
                assert_eq!((*requested, *code), refused, "{count}");
            }
            other => panic!("{count}: {other:?}"),
        }
    }
}

/// A broadcast that does not reach all, or with a lost reply, is made up for.
#[test]
fn a_hundred_come_to_op_over_a_wire_that_loses_frames() {
    for seed in 1..9 {
        let mut rig = Rig::new(to_op(), drives(100));
        rig.pump_to(BringUpPhase::PreOp);
        rig.wire = Wire::new(seed);
        rig.wire.faults.lost = 0.02;
        rig.cycle_to(BringUpPhase::Op, 2000);
        let states = rig.segment.sub_devices().iter().map(|it| it.al_status().al_state());
        assert_eq!(states.filter(|state| *state == Some(AlState::Op)).count(), 100, "{seed}");
    }
}

/// A drive that counts its steps, and optionally never rests.
struct Counted {
    drive: ServoDrive,
    may_rest: bool,
    steps: Arc<AtomicU64>,
}

impl Application for Counted {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.drive.process_data_lengths()
    }

    fn power_on(&mut self) {
        self.drive.power_on();
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.drive.enter(change)
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.drive.step(now, outputs, inputs);
    }

    fn rests(&self) -> bool {
        self.may_rest && self.drive.rests()
    }

    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.drive.sync0(event, outputs, inputs);
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        self.drive.synchronisation()
    }

    fn show_synchronisation(&mut self, shown: Option<&SynchronisationState>) {
        self.drive.show_synchronisation(shown);
    }

    fn servo_mut(&mut self) -> Option<&mut ServoDrive> {
        Some(&mut self.drive)
    }

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        self.drive.coe(request, replies)
    }

    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        self.drive.poll_coe(replies);
    }
}

fn segment(may_rest: bool, steps: &Arc<AtomicU64>) -> Vec<SubDevice> {
    counted(4, may_rest, steps)
}

fn counted(count: u32, may_rest: bool, steps: &Arc<AtomicU64>) -> Vec<SubDevice> {
    let device = |serial| {
        let image = with_coe(Identity { serial, ..DRIVE }, "drive", default_mapping()).image();
        let description = ServoDescription::new(DeviceDescription::from_sii(&image));
        let drive = ServoDrive::new(&description).unwrap();
        let application = Box::new(Counted { drive, may_rest, steps: Arc::clone(steps) });
        SubDevice::new(EscDescription::default(), image.emit(), application)
    };
    (0..count).map(device).collect()
}

/// `count` drives with SYNC0, a fifth of the period after the grid.
fn with_sync0(count: usize) -> Configuration {
    let sync0 = Some(Sync0 { cycle: PERIOD, shift: PERIOD / 5 });
    described(vec![SubDeviceConfiguration { sync0, ..SubDeviceConfiguration::default() }; count])
}

/// All that a MainDevice sees of these SubDevices in a life with much in it, and their registers
/// from time to time.
fn life(configuration: Configuration, devices: Vec<SubDevice>) -> Vec<Vec<u8>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let mut rig = Rig::new(configuration, devices);
    let replies = Rc::clone(&seen);
    rig.tamper = Some(Box::new(move |bytes| replies.borrow_mut().push(bytes.to_vec())));
    let note = |rig: &mut Rig| {
        for position in 0..4 {
            let mut registers = vec![0; 0x1800];
            rig.segment.sub_device_mut(position).unwrap().peek(0, &mut registers);
            seen.borrow_mut().push(registers);
        }
    };
    rig.pump_to(BringUpPhase::PreOp);
    for (pause, sub_index) in [(7, 0), (1, 1), (333, 4), (1500, 2)] {
        rig.pass_to(rig.now + Duration::from_micros(pause), true);
        let service = MailboxService::Upload { index: 0x1018, sub_index, complete_access: false };
        rig.main_device.submit(MailboxRequest { position: 1, service, data: Vec::new() }).unwrap();
        rig.pump(Duration::from_millis(5));
        note(&mut rig);
    }
    rig.run_up();
    for outputs in [[0; 2], [6, 0], [7, 0], [15, 0], [0; 2]] {
        rig.main_device.outputs_mut(2)[..2].copy_from_slice(&outputs);
        (0..71).for_each(|_| _ = rig.cycle());
        note(&mut rig);
    }
    rig.segment.sub_device_mut(2).unwrap().servo_mut().unwrap().raise_fault(0, 0x7305);
    (0..51).for_each(|_| _ = rig.cycle());
    rig.segment.power_cycle(3);
    (0..401).for_each(|_| _ = rig.cycle());
    note(&mut rig);
    // No frame feeds the watchdogs for a while, then the cycle continues.
    rig.pass_to(rig.now + Duration::from_millis(300), true);
    note(&mut rig);
    (0..300).for_each(|_| _ = rig.cycle());
    rig.main_device.request_state(AlState::Init);
    rig.pump_to(BringUpPhase::Down);
    note(&mut rig);
    rig.tamper = None;
    drop(rig);
    Rc::try_unwrap(seen).unwrap().into_inner()
}

/// Steps that a resting SubDevice leaves out show nowhere: not in a reply, not in its registers.
// feature(simulator): SubDevices in which nothing would change are not stepped, and answer as if they were
#[test]
fn idle_sub_devices_answer_as_if_always_stepped() {
    for configuration in [to_op(), with_sync0(4)] {
        let steps = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let lives = [(true, &steps[0]), (false, &steps[1])]
            .map(|(rests, steps)| life(configuration.clone(), segment(rests, steps)));
        let [made, all] = steps.map(|it| it.load(Ordering::Relaxed));
        assert!(made * 2 < all, "{made} steps of {all}");
        let [resting, stepped] = lives;
        assert_eq!(resting.len(), stepped.len());
        for (number, (resting, stepped)) in resting.iter().zip(&stepped).enumerate() {
            let differs = (0..resting.len()).find(|&place| resting[place] != stepped[place]);
            assert_eq!(differs, None, "first byte of frame {number} that differs");
        }
    }
}

/// In Op each is stepped once for each frame with its process data, and not once more for SYNC0;
/// without frames SYNC0 alone calls it.
// feature(simulator): drives with SYNC0 that stand still are called by frames and SYNC0 alone
#[test]
fn drives_with_sync0_at_standstill_skip_steps_between_frames() {
    const DRIVES: u32 = 20;
    const CYCLES: u64 = 50;
    let steps = Arc::new(AtomicU64::new(0));
    let mut rig = Rig::new(with_sync0(DRIVES as usize), counted(DRIVES, true, &steps));
    rig.run_up();
    (0..20).for_each(|_| _ = rig.cycle());
    steps.store(0, Ordering::Relaxed);
    (0..CYCLES).for_each(|_| assert!(rig.cycle().all_fresh));
    let made = steps.swap(0, Ordering::Relaxed);
    assert!(made <= u64::from(DRIVES) * CYCLES, "{made} steps of {DRIVES} in {CYCLES} cycles");
    rig.pass_to(rig.now + PERIOD / 2, false);
    steps.store(0, Ordering::Relaxed);
    rig.pass_to(rig.now + 10 * PERIOD, false);
    assert_eq!(steps.load(Ordering::Relaxed), 0);
    let states = rig.segment.sub_devices().iter().map(|it| it.al_status().al_state());
    assert!(states.into_iter().all(|state| state == Some(AlState::Op)));
}

/// Time of a cycle of many drives with SYNC0, printed and not asserted: a number with a meaning
/// takes `SUB_DEVICES=1000 cargo test --release -p onbeat-simulator --test main time_of_many --
/// --nocapture`.
#[test]
fn time_of_many_with_sync0() {
    for (count, enabled) in [(100, false), (100, true)] {
        let count = std::env::var("SUB_DEVICES").ok().and_then(|it| it.parse().ok()).unwrap_or(count);
        let mut rig = Rig::new(with_sync0(count as usize), drives(count));
        rig.run_up();
        for controlword in [6_u8, 7, 15].into_iter().filter(|_| enabled) {
            for cycle in 0..10 {
                for position in 0..count as usize {
                    let now: [u8; 4] = rig.main_device.inputs(position)[2..6].try_into().unwrap();
                    let outputs = rig.main_device.outputs_mut(position);
                    outputs[0] = controlword;
                    if cycle < 9 || controlword < 15 {
                        outputs[2..6].copy_from_slice(&now);
                    }
                }
                rig.cycle();
            }
        }
        let cycles = 200;
        let mut elapsed = Duration::ZERO;
        for _ in 0..cycles {
            // The enabled drives turn.
            for position in (0..count as usize).filter(|_| enabled) {
                let target = &mut rig.main_device.outputs_mut(position)[2..6];
                let next = i32::from_le_bytes((&*target).try_into().unwrap()) + 100;
                target.copy_from_slice(&next.to_le_bytes());
            }
            let begin = std::time::Instant::now();
            rig.cycle();
            elapsed += begin.elapsed();
        }
        let each = elapsed / cycles;
        println!(
            "{count} drives with SYNC0, {}: {each:?} a cycle, {} ns for each",
            if enabled { "enabled" } else { "disabled" },
            each.as_nanos() / u128::from(count)
        );
    }
}
