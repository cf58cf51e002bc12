//! Distributed clocks over a whole segment: measured, set and resulting times (ETG.1000.4, 6.12;
//! ESC data sheet, section I, 9).

use crate::bus;

use core::time::Duration;
use std::sync::{Arc, Mutex};

use bus::{Bus, sii};
use ethercat::al::AlState::{PreOp, SafeOp};
use ethercat::link::Segment as _;
use ethercat::register::{self, dc};
use ethercat::time::Instant;
use ethercat::wire::{Address, Command};
use onbeat_simulator::application::{Application, NoApplication, ProcessDataLengths, Sync0Event};
use onbeat_simulator::segment::Attachment;
use onbeat_simulator::{EscDescription, Oscillator, Segment, SubDevice};

const FORWARDING: u32 = 310;

fn device(initial_time: u64, drift_ppm: f64, application: Box<dyn Application>) -> SubDevice {
    let description = EscDescription {
        oscillator: Oscillator { initial_time, drift_ppm, ..Oscillator::default() },
        forwarding_delay: FORWARDING,
        ..EscDescription::default()
    };
    SubDevice::new(description, sii(0, 0), application)
}

fn attachment(parent: usize, port: usize, delay: u64) -> Attachment {
    Attachment::new(parent, port).with_delay(Duration::from_nanos(delay))
}

impl Bus {
    fn double_word(&mut self, position: u16, register: u16) -> u32 {
        u32::from_le_bytes(self.read(position, register, 4).data.try_into().unwrap())
    }

    fn quad_word(&mut self, position: u16, register: u16) -> u64 {
        u64::from_le_bytes(self.read(position, register, 8).data.try_into().unwrap())
    }

    fn latch(&mut self) {
        let address = Address::Broadcast { register: dc::RECEIVE_TIME };
        self.send(Command::Bwr, address, &[0; 4]);
    }

    /// Time from the frame's arrival at the SubDevice to its return at `port`.
    fn around(&mut self, position: u16, port: u16) -> u32 {
        let latched = self.double_word(position, dc::RECEIVE_TIME + 4 * port);
        latched.wrapping_sub(self.double_word(position, dc::RECEIVE_TIME))
    }

    /// Sends the reference clock's time to all others.
    fn distribute(&mut self) {
        let address = Address::AutoIncrement { position: 0, register: dc::SYSTEM_TIME };
        self.send(Command::Armw, address, &[0; 8]);
    }
}

#[test]
fn latched_times_of_a_line_give_back_its_delays() {
    let devices = (0..4).map(|number| device(number * 1_000_000_007, 0.0, Box::new(NoApplication)));
    let cables = [150, 77, 500];
    let attachments: Vec<_> = (0..3).map(|parent| attachment(parent, 1, cables[parent])).collect();
    let mut bus = Bus::new(Segment::with_topology(devices.collect(), &attachments).unwrap());
    bus.latch();
    let around: Vec<_> = (0..3).map(|position| bus.around(position, 1)).chain([0]).collect();
    for (parent, cable) in cables.into_iter().enumerate() {
        // Formula of MainDevices: half the difference of the round trips.
        assert_eq!((around[parent] - around[parent + 1]) / 2, cable as u32 + FORWARDING);
    }
}

#[test]
fn latched_times_of_a_tree_give_back_its_delays() {
    // 0 forks at ports 3, 1 and 2; a line of two is attached at port 1.
    let devices = (0..5).map(|number| device(number * 4_000_000_000, 0.0, Box::new(NoApplication)));
    let attachments =
        [attachment(0, 3, 120), attachment(0, 1, 50), attachment(2, 1, 333), attachment(0, 2, 990)];
    let mut bus = Bus::new(Segment::with_topology(devices.collect(), &attachments).unwrap());
    bus.latch();
    let [at_3, at_1, at_2] = [3, 1, 2].map(|port| bus.around(0, port));
    let line = bus.around(2, 1);
    // Each branch: the time between its port and the one before it, less the round trip inside.
    assert_eq!(at_3 / 2, 120 + FORWARDING);
    assert_eq!((at_1 - at_3 - line) / 2, 50 + FORWARDING);
    assert_eq!(line / 2, 333 + FORWARDING);
    assert_eq!((at_2 - at_1) / 2, 990 + FORWARDING);
    // The receive time of the processing unit is port 0's, in 64 bits.
    let processing_unit = bus.quad_word(4, dc::RECEIVE_TIME_PROCESSING_UNIT);
    assert_eq!(processing_unit as u32, bus.double_word(4, dc::RECEIVE_TIME));
    assert!(processing_unit >= 16_000_000_000);
}

/// Distributes the time back to back, as long as clocks need to learn their rates.
fn settle(bus: &mut Bus) {
    for _ in 0..25_000 {
        bus.distribute();
        bus.now = bus.now + Duration::from_micros(40);
    }
}

/// Sets offsets and delays like a MainDevice, from one latched frame.
fn set_up_clocks(bus: &mut Bus, count: u16) {
    bus.latch();
    let reference = bus.quad_word(0, dc::RECEIVE_TIME_PROCESSING_UNIT);
    for position in 0..count {
        let local = bus.quad_word(position, dc::RECEIVE_TIME_PROCESSING_UNIT);
        let delay = if position == 0 {
            0
        } else {
            let around = bus.around(0, 1);
            let own = if position + 1 < count { bus.around(position, 1) } else { 0 };
            (around - own) / 2
        };
        let offset = reference.wrapping_add(u64::from(delay)).wrapping_sub(local);
        bus.write(position, dc::SYSTEM_TIME_OFFSET, &offset.to_le_bytes());
        bus.write(position, dc::SYSTEM_TIME_DELAY, &delay.to_le_bytes());
        bus.write(position, dc::SPEED_COUNTER_START, &dc::SPEED_COUNTER_START_DEFAULT.to_le_bytes());
    }
}

// feature(simulator): DC: drift, delays, convergence
#[test]
fn clocks_drifting_200_ppm_agree_within_tens_of_nanoseconds() {
    let drifts = [20.0, -100.0, 100.0, 0.0, 63.5];
    let devices = drifts
        .iter()
        .enumerate()
        .map(|(number, drift)| device(number as u64 * 5_000_000_123, *drift, Box::new(NoApplication)));
    let mut bus = Bus::line(devices.collect());
    set_up_clocks(&mut bus, 5);
    settle(&mut bus);
    let mut worst = 0;
    for cycle in 0..3_000 {
        bus.distribute();
        bus.now = bus.now + Duration::from_millis(1);
        if cycle >= 1_000 {
            let times: Vec<_> =
                bus.segment.sub_devices().iter().map(|device| device.system_time(bus.now)).collect();
            let spread = times.iter().max().unwrap() - times.iter().min().unwrap();
            worst = worst.max(spread);
        }
    }
    assert!(worst <= 50, "{worst} ns apart after one second");
    for position in 1..5 {
        let register = bus.double_word(position, dc::SYSTEM_TIME_DIFFERENCE);
        let difference = dc::difference_nanoseconds(register);
        assert!(difference.abs() <= 20, "SubDevice {position}: {difference} ns");
    }
    let counter = |bus: &mut Bus, position| bus.read_word(position, dc::SPEED_COUNTER_DIFFERENCE) as i16;
    assert!(counter(&mut bus, 1) > 0, "the slow one is driven");
    assert!(counter(&mut bus, 2) < 0, "the fast one is held back");
}

#[test]
fn without_distribution_clocks_drift() {
    let devices = vec![device(0, 0.0, Box::new(NoApplication)), device(0, 100.0, Box::new(NoApplication))];
    let mut bus = Bus::line(devices);
    set_up_clocks(&mut bus, 2);
    bus.wait(1_000);
    let times: Vec<_> =
        bus.segment.sub_devices().iter().map(|device| device.system_time(bus.now)).collect();
    assert!(times[1].abs_diff(times[0] + 100_000) < 200, "{times:?}");
}

/// Records the instants of SYNC0 and the steps before it.
struct Recorder {
    events: Arc<Mutex<Vec<(Instant, u64)>>>,
    latest: Instant,
}

impl Application for Recorder {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths::default()
    }

    fn step(&mut self, now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        assert!(now >= self.latest, "time goes on");
        self.latest = now;
    }

    fn sync0(&mut self, event: Sync0Event, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        assert!(event.now >= self.latest, "events come between steps, in order");
        self.latest = event.now;
        self.events.lock().unwrap().push((event.now, event.system_time));
    }
}

// feature(simulator): SYNC0
#[test]
fn sync0_comes_at_the_same_time_in_all_sub_devices() {
    let records: Vec<_> = (0..3).map(|_| Arc::new(Mutex::new(Vec::new()))).collect();
    let devices = records.iter().zip([0.0_f64, 80.0, -80.0]).map(|(events, drift)| {
        let recorder = Recorder { events: Arc::clone(events), latest: Instant::EPOCH };
        device(drift.abs() as u64 * 1_000, drift, Box::new(recorder))
    });
    let mut bus = Bus::line(devices.collect());
    for position in 0..3 {
        bus.request(position, PreOp);
        bus.request(position, SafeOp);
    }
    set_up_clocks(&mut bus, 3);
    let info = |bus: &mut Bus| {
        bus.distribute();
        bus.now = bus.now + Duration::from_millis(1);
        bus.segment.advance(bus.now);
    };
    settle(&mut bus);
    (0..1_000).for_each(|_| info(&mut bus));
    let cycle = 2_000_000_u64;
    let start = (bus.quad_word(0, dc::SYSTEM_TIME) / cycle + 10) * cycle + 300_000;
    for position in 0..3 {
        bus.write(position, dc::SYNC0_CYCLE_TIME, &(cycle as u32).to_le_bytes());
        bus.write(position, dc::START_TIME, &start.to_le_bytes());
        bus.write(position, dc::ACTIVATION, &[dc::ACTIVATE_SYNC0]);
    }
    (0..200).for_each(|_| info(&mut bus));
    let records: Vec<_> = records.iter().map(|record| record.lock().unwrap().clone()).collect();
    assert!(records[0].len() > 80);
    for record in &records {
        for (number, ((now, system_time), (reference, _))) in record.iter().zip(&records[0]).enumerate() {
            assert_eq!(*system_time, start + number as u64 * cycle);
            let apart = now.as_nanos().abs_diff(reference.as_nanos());
            assert!(apart <= 50, "event {number}: {apart} ns apart");
        }
    }
    // Reading the start time shows the next event.
    let next = bus.quad_word(1, dc::START_TIME);
    assert_eq!((next - start) % cycle, 0);
    assert!(next > bus.quad_word(1, dc::SYSTEM_TIME));
}

#[test]
fn an_application_that_owns_the_cyclic_unit_keeps_it() {
    let mut bus = Bus::line(vec![device(0, 0.0, Box::new(NoApplication))]);
    bus.write(0, dc::CYCLIC_UNIT_CONTROL, &[1]);
    assert_eq!(bus.write(0, dc::ACTIVATION, &[3]), 0);
    bus.write(0, dc::CYCLIC_UNIT_CONTROL, &[0]);
    assert_eq!(bus.write(0, dc::ACTIVATION, &[3]), 1);
}

#[test]
fn an_esc_without_distributed_clocks_does_not_count_them() {
    let mut description = EscDescription::default();
    description.features.bits = 0;
    let plain = SubDevice::new(description, sii(0, 0), Box::new(NoApplication));
    let mut bus = Bus::line(vec![plain, device(0, 0.0, Box::new(NoApplication))]);
    let address = Address::Broadcast { register: dc::RECEIVE_TIME };
    assert_eq!(bus.send(Command::Bwr, address, &[0; 4]).working_counter, 1);
    assert_eq!(bus.read_word(0, register::FEATURES) & 4, 0);
}
