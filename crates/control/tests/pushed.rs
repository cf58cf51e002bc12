//! A drive that is pushed harder than its motor can hold: its fault reaction lasts, and its fault is
//! reported meanwhile. In virtual time.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, State};
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use onbeat_control::controller::{Controller, CycleInfo};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::Happening;
use onbeat_control::signal::Io;
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::Segment;
use support::{PERIOD, Sway, cycle_of, sub_device, supervised};

/// Cycle in which the push begins, or the drive has a fault without one.
const PUSHED: u64 = 2_000;

/// Error code of a fault without a push.
const RAISED: u16 = 0x2310;

/// Torque of the motor, N m, and of the push, mN m.
const MOTOR: f64 = 6.0;
const PUSH: i32 = 12_000;

/// The drive, with the push on its shaft or another fault.
struct Machine {
    segment: Segment,
    disturbed: Arc<AtomicBool>,
    pushes: bool,
}

impl ethercat::link::Segment for Machine {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.advance(now);
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        let servo = self.segment.sub_device_mut(0).unwrap().servo_mut().unwrap();
        let disturbed = self.disturbed.load(Ordering::Relaxed);
        match self.pushes {
            true => servo.set_load(0, if disturbed { PUSH } else { 0 }),
            false if self.disturbed.swap(false, Ordering::Relaxed) => servo.raise_fault(0, RAISED),
            false => {}
        }
        self.segment.advance(now);
    }
}

/// Begins the disturbance, and notes the states of the drive.
struct Disturbing {
    sway: Sway,
    disturbed: Arc<AtomicBool>,
    see: std::sync::mpsc::Sender<(u64, State)>,
}

impl Controller for Disturbing {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        if info.cycle == PUSHED {
            self.disturbed.store(true, Ordering::Relaxed);
        }
        let state = io.split().0[0].state;
        let _ = state.map(|it| self.see.send((info.cycle, it)));
    }
}

/// Cycle and code of the only event of a fault; cycles of the fault reaction and of its end.
fn play(pushes: bool) -> ((u64, u16), [u64; 2]) {
    let (drive, _) = sub_device(CyclicMode::Position, |it| {
        (it.plant.inertia, it.plant.torque_limit) = (5e-4, MOTOR);
    });
    let disturbed = Arc::new(AtomicBool::new(false));
    let segment = Segment::new(vec![drive]);
    let machine = Machine { segment, disturbed: Arc::clone(&disturbed), pushes };
    let clock = VirtualClock::default();
    let link = DirectLink::new(machine, clock.clone(), Duration::from_micros(60));
    let (see, seen) = std::sync::mpsc::channel();
    let controller = Disturbing { sway: Sway::new(1), disturbed, see };
    let configuration = CycleConfiguration { cycles: Some(6_000), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, &supervised(1), controller, configuration);
    let _ = cycle.run(&StopHandle::new());
    let events: Vec<_> = std::iter::from_fn(|| observer.next_event()).collect();
    let seen: Vec<_> = seen.try_iter().collect();
    let states = [State::FaultReactionActive, State::Fault];
    let first = |state| seen.iter().find(|it| it.1 == state).map(|it| it.0);
    let cycles = states.map(|it| first(it).expect("a fault with a reaction"));
    let codes = events.iter().filter_map(|it| match it.what {
        Happening::DriveFault { code, .. } => Some((it.cycle, code)),
        _ => None,
    });
    let reported: Vec<_> = codes.collect();
    let [fault] = reported[..] else { panic!("expected one event of the fault: {events:?}") };
    (fault, cycles)
}

// feature(axes): a drive's fault is reported with its error code while its fault reaction lasts
#[test]
fn a_fault_is_reported_before_its_reaction_ends() {
    let ((cycle, code), [reaction, fault]) = play(true);
    assert!(fault - reaction > 1_000, "the push keeps the shaft turning: {reaction} to {fault}");
    assert_eq!(code, 0x8611, "following error");
    assert!((reaction..reaction + 100).contains(&cycle) && reaction < PUSHED + 200, "{reaction}, {cycle}");
}

#[test]
fn a_fault_with_a_short_reaction_is_reported_once() {
    let ((cycle, code), [reaction, fault]) = play(false);
    assert!(fault - reaction < 200, "{reaction} to {fault}");
    assert_eq!(code, RAISED);
    assert!((PUSHED..PUSHED + 100).contains(&cycle), "{cycle}");
}
