//! Faults that take place, in virtual time.

use std::thread;

use ethercat::al::AlState;
use ethercat::cia402::State;
use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::link::Segment as _;
use ethercat::register;
use ethercat::sii::Image;
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use onbeat_ethercat_linux::link::{DirectLink, Faulty, Link};
use robot::{Overrides, RobotConfig};
use rt::clock::{Clock, VirtualClock};

use super::*;
use crate::compose;

/// The built-in robot's six drives.
fn drives() -> (Segment, Targets) {
    let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
    let mut segment = compose::segment::segment(&robot).unwrap();
    let targets = crate::fault::targets(&robot, &mut segment);
    (segment, targets)
}

/// Drives with a script, looked at from inside.
struct Rig {
    segment: FaultySegment,
    handle: FaultHandle,
    targets: Targets,
    now: Duration,
}

impl Rig {
    fn new(script: &str) -> Self {
        let (segment, targets) = drives();
        let script = Script::parse(script, &targets).unwrap();
        let (link, _) = FaultControl::pair();
        let (segment, handle) = FaultySegment::new(segment, link, &script);
        let mut rig = Self { segment, handle, targets, now: Duration::ZERO };
        rig.wait(0);
        rig
    }

    /// Lets time pass up to so many milliseconds.
    fn wait(&mut self, until: u64) {
        let until = Duration::from_millis(until);
        loop {
            self.segment.advance(Instant::EPOCH + self.now);
            if self.now >= until {
                return;
            }
            self.now += Duration::from_micros(250);
        }
    }

    /// Has a fault take place now.
    fn take(&mut self, line: &str) {
        let timed = Timed::parse(line, &self.targets).unwrap();
        let handle = self.handle.clone();
        let asking = thread::spawn(move || handle.take(timed));
        while !asking.is_finished() {
            self.segment.advance(Instant::EPOCH + self.now);
            thread::yield_now();
        }
        assert_eq!(asking.join().unwrap(), Ok(self.now), "{line}");
    }

    fn active(&self) -> Vec<String> {
        self.segment.active.iter().map(|fault| fault.named(&self.targets).to_string()).collect()
    }

    /// SubDevices that answer; `None` if no frame comes back.
    fn count(&mut self) -> Option<u16> {
        let mut frame = read_all();
        let returns = self.segment.process_frame(Instant::EPOCH + self.now, &mut frame);
        returns.then(|| working_counter(&frame))
    }

    fn peek(&self, position: usize, register: u16) -> u8 {
        let mut byte = [0];
        self.segment.segment().sub_devices()[position].peek(register, &mut byte);
        byte[0]
    }

    fn drive(&mut self, position: usize) -> &mut ServoDrive {
        self.segment.segment.sub_device_mut(position).unwrap().servo_mut().unwrap()
    }
}

fn read_all() -> Vec<u8> {
    let mut buffer = vec![0; 64];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::Broadcast { register: register::AL_STATUS };
    builder.push_data(DatagramHeader::new(Command::Brd, 1, address, 2), &[0, 0]).unwrap();
    let length = builder.finish();
    buffer.truncate(length);
    buffer
}

fn working_counter(frame: &[u8]) -> u16 {
    Frame::parse(frame).unwrap().datagrams().next().unwrap().working_counter
}

// feature(simulator): a script of faults, checked whole before the first frame
#[test]
fn faults_of_a_script_come_at_their_times_and_end_at_theirs() {
    let mut rig = Rig::new(
        "10ms power off drive-3 for 20ms\n50ms cable pull 0:0 for 10ms\n50ms crc drive-2:1 5\n70ms power cycle 1",
    );
    let mut counts = Vec::new();
    for until in [9, 11, 29, 31, 49, 51, 59, 61, 80] {
        rig.wait(until);
        counts.push(rig.count());
    }
    let [all, two] = [Some(6), Some(2)];
    assert_eq!(counts, [all, two, two, all, all, None, None, all, all]);
    assert_eq!(rig.peek(1, register::RX_ERROR_COUNTERS + 2), 0, "it had its power anew since");
    let rig = {
        let mut rig = Rig::new("50ms crc drive-2:1 5");
        rig.wait(60);
        rig
    };
    assert_eq!(rig.peek(1, register::RX_ERROR_COUNTERS + 2), 5);
}

#[test]
fn a_pause_of_the_host_puts_no_fault_off() {
    let mut rig = Rig::new("10ms power off drive-3 for 20ms\n50ms application stop drive-1 for 200ms");
    rig.now = Duration::from_millis(500);
    assert_eq!(rig.count(), Some(6));
    assert_eq!(rig.peek(1, register::LOST_LINK_COUNTERS + 1), 1, "it was off meanwhile");
    assert_eq!(rig.peek(0, register::WATCHDOG_COUNTER_PDI), 1, "and for as long as it said");
}

// feature(simulator): faults at any time from another thread; a later one of the same kind takes the earlier one's place
#[test]
fn later_fault_replaces_the_earlier() {
    let mut rig = Rig::new("10ms power off drive-3 for 20ms");
    rig.wait(20);
    rig.take("power off drive-3 for 100ms");
    rig.wait(60);
    assert_eq!(rig.count(), Some(2), "the earlier end does not count");
    rig.wait(130);
    assert_eq!((rig.count(), rig.active()), (Some(6), vec![]));
    rig.take("identity 1 vendor=7");
    rig.take("sii blank 1");
    assert_eq!(rig.active(), ["sii blank drive-2"]);
    rig.take("power off drive-3 for 10ms");
    rig.take("power on drive-3");
    rig.take("power off drive-3");
    rig.wait(200);
    assert_eq!(rig.count(), Some(2));
}

// feature(simulator): faults at any time from another thread; a later one of the same kind takes the earlier one's place
#[test]
fn clear_ends_all_that_lasts() {
    let mut rig = Rig::new("0s frames lose 10%\n1s seed 3");
    let before = rig.segment.segment().sub_devices()[1].sii().to_vec();
    let faults = [
        "cable pull drive-4:1",
        "power off drive-6",
        "mailbox stuck drive-1",
        "application stop drive-2",
        "state refuse drive-3 Op 0x001d",
        "identity drive-2 vendor=0x7",
        "drive power off drive-1",
        "drive load drive-2 0.5Nm",
        "frames delay 1ms 5%",
        "frames corrupt 1%",
    ];
    faults.iter().for_each(|line| rig.take(line));
    rig.take("mailbox stuck drive-5 for 50ms");
    let lasting = rig.active();
    assert_eq!(
        (&lasting[..1], &lasting[1..11]),
        (&["frames lose 10%".to_owned()][..], &faults.map(str::to_owned)[..])
    );
    assert_eq!(rig.count(), Some(4));
    rig.take("clear");
    let coming: Vec<_> = rig.segment.listing(rig.now).coming;
    assert_eq!((rig.active().len(), coming), (0, vec![(Duration::from_secs(1), Fault::Seed(3))]));
    assert_eq!(rig.count(), Some(6));
    assert_eq!(rig.segment.segment().sub_devices()[1].sii(), before);
    assert_eq!(rig.segment.frames, FrameFaults::default());
}

#[test]
fn another_identity_is_that_of_a_whole_sii() {
    let mut rig = Rig::new("");
    let identity = |rig: &Rig| {
        let sii = rig.segment.segment().sub_devices()[2].sii();
        Image::parse(sii).expect("a whole SII").header.identity()
    };
    let at_first = identity(&rig);
    rig.take("identity drive-3 vendor=0x66 serial=9");
    let other = identity(&rig);
    assert_eq!((other.vendor_id, other.serial), (0x66, 9));
    assert_eq!((other.product_code, other.revision), (at_first.product_code, at_first.revision));
    rig.take("sii blank drive-3");
    assert!(Image::parse(rig.segment.segment().sub_devices()[2].sii()).is_err());
    for spoilt in ["sii spoil drive-3", "sii cut drive-3 100"] {
        rig.take(spoilt);
        assert!(Image::parse(rig.segment.segment().sub_devices()[2].sii()).is_err(), "{spoilt}");
    }
    rig.take("identity drive-3 product=5");
    assert_eq!((identity(&rig).vendor_id, identity(&rig).product_code), (at_first.vendor_id, 5));
    rig.take("sii restore drive-3");
    assert_eq!(identity(&rig), at_first);
}

#[test]
fn drive_fault_keeps_main_power_off_over_a_power_cycle() {
    let mut rig = Rig::new("");
    rig.wait(10);
    rig.take("drive fault drive-2 0x7500");
    rig.wait(12);
    assert_eq!(rig.drive(1).axes()[0].state(), State::Fault);
    let code = rig.drive(1).dictionary().value(0x603F, 0);
    assert_eq!(code, Some(0x7500));
    let power =
        |rig: &mut Rig| rig.drive(1).dictionary().value(simulator::application::servo::SIMULATION, 3);
    rig.take("drive power off drive-2");
    rig.take("power cycle drive-2");
    rig.wait(20);
    assert_eq!(power(&mut rig), Some(0));
    rig.take("clear");
    assert_eq!(power(&mut rig), Some(1));
}

#[test]
fn applications_mailboxes_states_watchdogs_and_clocks_follow() {
    let mut rig = Rig::new("");
    let time = |rig: &Rig| {
        let now = Instant::EPOCH + rig.now;
        rig.segment.segment().sub_devices()[0].system_time(now)
    };
    let before = time(&rig);
    rig.take("clock jump 0 +5ms");
    assert_eq!(time(&rig) - before, 5_000_000);
    // The PDI watchdog of 100 ms shows whether the application lives.
    rig.take("application stop 0 for 200ms");
    rig.wait(150);
    assert_eq!(rig.peek(0, register::DL_STATUS) & 2, 0);
    rig.wait(250);
    assert_eq!(rig.peek(0, register::DL_STATUS) & 2, 2);
    let state = |rig: &Rig| rig.segment.segment().sub_devices()[0].al_status().al_state();
    assert_eq!(state(&rig), Some(AlState::Init));
    rig.take("state refuse 0 PreOp");
    rig.take("watchdog expire 0");
    rig.take("mailbox stuck 0");
    assert_eq!(rig.active(), ["state refuse drive-1 PreOp 0x0001", "mailbox stuck drive-1"]);
}

/// True for each of `count` frames that comes back over a wire with this script, a millisecond
/// apart.
fn fates(script: &str, count: usize) -> Vec<bool> {
    let (segment, targets) = drives();
    let script = Script::parse(script, &targets).unwrap();
    let (control, changes) = FaultControl::pair();
    let (segment, _) = FaultySegment::new(segment, control, &script);
    let clock = VirtualClock::default();
    let link = DirectLink::new(segment, clock.clone(), Duration::from_micros(50));
    let faults = FrameFaults::default().on_link();
    let mut link = Faulty::with_clock(link, faults, clock.clone()).changed_by(changes);
    let mut fate = || {
        let frame = read_all();
        let mut back = [0; MAXIMUM_FRAME_LENGTH];
        link.transmit(&frame).unwrap();
        let length = link.receive(&mut back, Duration::from_micros(500)).unwrap();
        clock.sleep_until(Instant::EPOCH + Duration::from_millis(clock.now().as_nanos() / 1_000_000 + 1));
        // Late frames belong to no request.
        while link.receive(&mut [0; MAXIMUM_FRAME_LENGTH], Duration::ZERO).unwrap().is_some() {}
        length.is_some_and(|length| working_counter(&back[..length]) == 6)
    };
    (0..count).map(|_| fate()).collect()
}

// feature(simulator): loss, delay, duplicates, reordering and corruption on demand; the same seed, the same fates
#[test]
fn the_same_script_and_seed_lose_the_same_frames() {
    let lost = |fates: &[bool]| fates.iter().filter(|came| !**came).count();
    let seven = fates("100ms seed 7\n100ms frames lose 30%\n900ms clear", 1000);
    assert_eq!((lost(&seven[..99]), lost(&seven[902..])), (0, 0));
    assert!((150..350).contains(&lost(&seven[102..898])), "{}", lost(&seven[102..898]));
    assert_eq!(seven, fates("100ms seed 7\n100ms frames lose 30%\n900ms clear", 1000));
    assert_ne!(seven, fates("100ms seed 8\n100ms frames lose 30%\n900ms clear", 1000));
    let some = fates("100ms frames lose 5", 200);
    assert_eq!(lost(&some), 5);
    // Held back for longer than is waited for.
    let late = fates("100ms frames delay 600us for 50ms", 300);
    assert!((45..=55).contains(&lost(&late)), "{}", lost(&late));
}

#[test]
fn missing_or_halted_segment_takes_no_fault() {
    let rig = Rig::new("");
    let handle = rig.handle.clone();
    drop(rig);
    assert_eq!(handle.list(), Err(NotTaken));
}

/// The answer was that it did not take place: so it does not take place once the segment runs
/// again, either.
#[test]
fn abandoned_fault_does_not_take_place_later() {
    let mut rig = Rig::new("");
    let timed = Timed::parse("power off drive-1", &rig.targets).unwrap();
    assert_eq!(rig.handle.take(timed), Err(NotTaken), "nobody lets the time of the segment pass");
    rig.wait(1);
    let handle = rig.handle.clone();
    let listing = thread::spawn(move || handle.list());
    while !listing.is_finished() {
        rig.wait(rig.now.as_millis() as u64 + 1);
    }
    assert_eq!(listing.join().unwrap().unwrap().active, []);
}

/// The arm of the examples with another encoder than multi-turn ones.
fn arm(encoder: &str) -> Rig {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/arm.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("encoder = \"multi_turn\"\n").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    let text = format!("{before}{encoder}\n{after}");
    let robot = RobotConfig::parse(&text, "arm.toml").unwrap();
    let mut segment = compose::segment::segment(&robot).unwrap();
    let targets = crate::fault::targets(&robot, &mut segment);
    let (link, _) = FaultControl::pair();
    let (segment, handle) = FaultySegment::new(segment, link, &Script::default());
    let mut rig = Rig { segment, handle, targets, now: Duration::ZERO };
    rig.wait(10);
    rig
}

// feature(simulator): the simulated drive has the encoder of its axis: what it sees of a shaft that turns without power
#[test]
fn a_shaft_that_turns_without_power_is_seen_as_by_its_encoder() {
    for (encoder, turns, seen) in [
        ("", 1.0, 0.0),
        ("encoder = \"incremental\"", 1.0, 0.0),
        ("encoder = \"single_turn\"", 1.0, 0.0),
        ("encoder = \"single_turn\"", 0.25, 0.25),
        ("encoder = \"multi_turn\"\nencoder_range = 16", 1.0, 1.0),
        ("encoder = \"multi_turn\"\nencoder_range = 16", 16.0, 0.0),
    ] {
        let mut rig = arm(encoder);
        let at = |rig: &mut Rig| {
            let drive = rig.drive(0);
            let angle = drive.axes()[0].plant().position() / std::f64::consts::TAU;
            (angle, drive.dictionary().value(0x6064, 0).unwrap() as f64 / 131_072.0)
        };
        let before = at(&mut rig);
        rig.take("power off 0");
        rig.take(&format!("encoder 0 turned by {turns} turns"));
        rig.take("power on 0");
        rig.wait(50);
        let after = at(&mut rig);
        assert!((after.0 - before.0 - turns).abs() < 1e-3, "{encoder}: {before:?} {after:?}");
        assert!((after.1 - before.1 - seen).abs() < 1e-3, "{encoder}: {before:?} {after:?}");
    }
}

/// A drive with a load, and its brake with feedback.
const LIFT: &str = r#"
[cycle]
period = "1ms"

[[bus.sub_device]]
name = "drive"
simulate = { kind = "servo_drive" }

[[bus.sub_device]]
name = "outputs"
simulate = { kind = "digital_outputs", channels = 1 }

[[bus.sub_device]]
name = "inputs"
simulate = { kind = "digital_inputs", channels = 1 }

[[axis]]
name = "lift"
sub_device = "drive"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }

[axis.brake]
release = "80ms"
engage = "50ms"
output = { sub_device = "outputs", channel = 1 }
feedback.closed = { sub_device = "inputs", channel = 1 }
"#;

// feature(simulator): simulated brakes follow their coils, show it at digital inputs, and stick (`onbeat fault brake`)
#[test]
fn a_load_falls_only_while_its_brake_is_open() {
    let robot = RobotConfig::parse(LIFT, "lift.toml").unwrap();
    let mut segment = compose::segment::segment(&robot).unwrap();
    let targets = crate::fault::targets(&robot, &mut segment);
    let (link, _) = FaultControl::pair();
    let (segment, handle) = FaultySegment::new(segment, link, &Script::default());
    let mut rig = Rig { segment, handle, targets, now: Duration::ZERO };
    rig.wait(10);
    let angle = |rig: &mut Rig| rig.drive(0).axes()[0].plant().position();
    rig.take("drive load drive 0.5Nm");
    rig.wait(200);
    assert_eq!(angle(&mut rig), 0.0, "the brake holds it");
    rig.take("brake stuck-open drive for 100ms");
    let from = rig.now.as_millis() as u64;
    rig.wait(from + 90);
    let fell = angle(&mut rig);
    assert!(fell.abs() > 1.0, "{fell}");
    rig.wait(from + 300);
    let caught = angle(&mut rig);
    rig.wait(from + 500);
    assert_eq!(angle(&mut rig), caught, "it holds again");
}
