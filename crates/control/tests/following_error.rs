//! The drive's own following error (0x60F4), if mapped: it counts in addition to the one that
//! supervision computes, in virtual time.
use crate::support;

use std::f64::consts::TAU;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use ethercat::cia402::State;
use ethercat::cia402::object::FOLLOWING_ERROR_ACTUAL_VALUE;
use ethercat::pdo::{PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::{Command, Frame};
use motion::supervision::{FollowingErrorLimit, StopReason};
use motion::{AxisScale, NewtonMetres, Radians, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisCommand, AxisReport};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::scripted::{Scene, play};
use support::supervised;

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// The default mapping, with the following error behind its inputs.
fn mapping() -> PdoMapping {
    let mut mapping = default_mapping();
    let value = u32::from(FOLLOWING_ERROR_ACTUAL_VALUE) << 16 | 32;
    mapping.inputs[0].entries.push(PdoEntry::from_mapping_value(value));
    mapping
}

/// A drive with a following error on the wire that differs from its own.
struct Shown {
    segment: Segment,
    counts: Arc<AtomicI32>,
}

impl Shown {
    fn new(counts: &Arc<AtomicI32>) -> Self {
        let description = ServoDescription {
            mapping: mapping(),
            ..ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"))
        };
        let sii = with_coe(IDENTITY, "Servo", mapping()).image().emit();
        let drive = Box::new(ServoDrive::new(&description).unwrap());
        let segment = Segment::new(vec![SubDevice::new(EscDescription::default(), sii, drive)]);
        Self { segment, counts: Arc::clone(counts) }
    }
}

impl ethercat::link::Segment for Shown {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        let comes_back = self.segment.process_frame(now, frame);
        let counts = self.counts.load(Ordering::Relaxed);
        let places: Vec<_> = Frame::parse(frame).unwrap().places().collect();
        let inputs = places.iter().filter(|it| matches!(it.header.command, Command::Lrw | Command::Lrd));
        for place in inputs.filter(|_| counts != AS_IT_IS) {
            let end = place.data().end;
            frame[end - 4..end].copy_from_slice(&counts.to_le_bytes());
        }
        comes_back
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// The following error is left as the drive counts it.
const AS_IT_IS: i32 = i32::MIN;

/// Farthest that the axis may be from its set-point, and for how long.
const WINDOW: f64 = 0.2;
const TIMEOUT: f64 = 0.05;

/// Cycle from which on the drive shows the following error of a test.
const FROM: u64 = 300;

/// One axis behind a gear, moved steadily; its drive shows `shown`, rad of the axis, from [`FROM`]
/// on, or what it counts. Cycle in which each report came, and the report.
fn run(gear_ratio: f64, shown: Option<f64>, window: f64) -> Vec<(u64, AxisReport)> {
    let counts = Arc::new(AtomicI32::new(AS_IT_IS));
    let mut axes: Vec<AxisConfiguration> = supervised(1);
    axes[0].scale = AxisScale::new(f64::from(1 << 20), gear_ratio, NewtonMetres(2.4)).unwrap();
    let limit = FollowingErrorLimit { distance: Radians(window), timeout: Seconds(TIMEOUT) };
    axes[0].supervision.as_mut().unwrap().following_error = Some(limit);
    let segment = Shown::new(&counts);
    let in_counts = shown.map(|radians| (radians * gear_ratio * f64::from(1 << 20) / TAU) as i32);
    let script = move |cycle: u64, _: &AxisReport, command: &mut AxisCommand| {
        if cycle == FROM {
            counts.store(in_counts.unwrap_or(AS_IT_IS), Ordering::Relaxed);
        }
        command.setpoint.position.0 += 1e-3;
    };
    let look =
        |scene: &Scene<'_>| (scene.cycles > 0 && !scene.stopping).then_some((scene.cycles, *scene.report));
    play(segment, &axes, 800, script, look)
}

fn stopped(seen: &[(u64, AxisReport)]) -> Option<u64> {
    seen.iter().find(|(_, report)| report.stop == Some(StopReason::FollowingError)).map(|(cycle, _)| *cycle)
}

/// An axis at the right position, with a drive that counts a following error.
// feature(axes): the drive's own following error (0x60F4) counts beside the computed one: the larger stops the axis
#[test]
fn following_error_beyond_the_window_stops_the_axis() {
    for (gear_ratio, shown) in [(1.0, 0.25), (1.0, -0.25), (5.0, 0.25), (-0.5, 0.25)] {
        let seen = run(gear_ratio, Some(shown), WINDOW);
        let cycles = (TIMEOUT * 1000.0) as u64;
        let stopped =
            stopped(&seen).unwrap_or_else(|| panic!("gear {gear_ratio}, {shown} rad: not stopped"));
        assert!((FROM + cycles..FROM + cycles + 6).contains(&stopped), "gear {gear_ratio}: {stopped}");
        // Its quick stop, then no torque.
        assert_eq!(seen.last().unwrap().1.state, Some(State::SwitchOnDisabled));
    }
}

/// Counts are of the drive: behind a gear the same number is another angle of the axis.
#[test]
fn following_error_within_the_window_does_not_stop() {
    for (gear_ratio, shown) in [(1.0, 0.19), (1.0, -0.19), (5.0, 0.19), (-0.5, -0.19), (1.0, 0.0)] {
        assert_eq!(stopped(&run(gear_ratio, Some(shown), WINDOW)), None, "gear {gear_ratio}, {shown} rad");
    }
}

/// A drive that shows no error does not hide that its axis is elsewhere.
#[test]
fn a_drive_that_counts_less_than_there_is_hides_nothing() {
    // No drive follows this closely.
    let seen = run(1.0, Some(0.0), 1e-5);
    assert!(stopped(&seen).is_some());
    assert_eq!(stopped(&run(1.0, None, WINDOW)), None, "it counts no more than there is");
}
