//! Wake-up latency of this machine: sleeping from release to release, with nothing to do in
//! between.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::clock::{Clock, MonotonicClock};
use crate::pacer::{Overruns, Pacer};
use crate::profile::{Granted, RealTimeProfile};

/// Settings of a probe.
#[derive(Clone, Debug)]
pub struct ProbeConfiguration {
    /// Time from release to release.
    pub period: Duration,
    /// Cycles to measure; releases passed over are none.
    pub cycles: u64,
    /// Requests of the probing thread to the system before its first cycle.
    pub profile: RealTimeProfile,
}

/// Outcome of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Cycles measured: fewer than requested if it was stopped.
    pub cycles: u64,
    /// Cycles without a recorded latency, because `each` had fallen behind.
    pub dropped: u64,
    /// Wake-ups so late that the next release had passed.
    pub overruns: Overruns,
    /// Requests that the system granted, in words.
    pub granted: String,
    /// Requests that it refused, each a sentence.
    pub refusals: Vec<String>,
}

/// Measures how long after its release a thread with this profile runs, cycle by cycle.
///
/// The probe runs on a separate thread. It sleeps, reads the clock and puts the difference into a
/// ring, allocates nothing and makes no other system call. `each` is called on the calling thread,
/// with the number of the release and its latency in nanoseconds, in order, some milliseconds
/// later; it may take its time. If it takes so much that the ring is full, cycles are dropped and
/// counted.
///
/// # Errors
/// The error of starting a thread.
pub fn wakeup_latencies(
    configuration: &ProbeConfiguration,
    stop: &AtomicBool,
    mut each: impl FnMut(u64, u64),
) -> io::Result<Probed> {
    let (producer, mut consumer) = resident_ring(configuration.cycles);
    thread::scope(|scope| {
        let probe = thread::Builder::new()
            .name("probe".into())
            .spawn_scoped(scope, move || probe(configuration, stop, producer))?;
        loop {
            // Read before the ring is emptied: earlier records are taken below.
            let ended = probe.is_finished();
            while let Ok((cycle, latency)) = consumer.pop() {
                each(cycle, latency);
            }
            if ended {
                return Ok(probe.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            thread::sleep(LOOK_AGAIN);
        }
    })
}

/// The probing thread: profile, then the loop, then the profile given back.
fn probe(configuration: &ProbeConfiguration, stop: &AtomicBool, ring: Producer<CycleInfo>) -> Probed {
    let granted = Granted::ask(&configuration.profile);
    let mut probed = Probed {
        granted: granted.to_string(),
        refusals: granted.refusals().collect(),
        ..Probed::default()
    };
    let mut pacer = Pacer::new(MonotonicClock, configuration.period).with_spin(granted.spin_margin());
    measure(&mut pacer, configuration.cycles, stop, ring, &mut probed);
    probed.overruns = pacer.overruns();
    probed
}

/// Number of a release and how late it was, ns.
type CycleInfo = (u64, u64);

/// The loop that is measured. It allocates nothing and cannot fail.
fn measure<C: Clock>(
    pacer: &mut Pacer<C>,
    cycles: u64,
    stop: &AtomicBool,
    mut ring: Producer<CycleInfo>,
    probed: &mut Probed,
) {
    // Relaxed: the flag carries nothing but itself.
    while probed.cycles < cycles && !stop.load(Ordering::Relaxed) {
        let release = pacer.wait();
        let latency = pacer.clock().now().since(release.instant);
        let latency = types::time::nanoseconds(latency);
        probed.cycles += 1;
        probed.dropped += u64::from(ring.push((release.cycle, latency)).is_err());
    }
}

/// A ring with every page touched: its first round faults none in.
fn resident_ring(cycles: u64) -> (Producer<CycleInfo>, Consumer<CycleInfo>) {
    let slots = cycles.clamp(1, RING_SLOTS) as usize;
    let (mut producer, mut consumer) = RingBuffer::new(slots);
    while producer.push((0, 0)).is_ok() {}
    while consumer.pop().is_ok() {}
    (producer, consumer)
}

/// Cycles the ring holds at most: 16 s of a period of 250 us.
const RING_SLOTS: u64 = 1 << 16;
/// Interval at which the calling thread empties the ring.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    use crate::clock::VirtualClock;

    fn configuration(cycles: u64) -> ProbeConfiguration {
        let profile = RealTimeProfile::ORDINARY;
        ProbeConfiguration { period: Duration::from_micros(500), cycles, profile }
    }

    #[test]
    fn every_cycle_is_given_once_in_order() {
        let mut cycles = Vec::new();
        let probed =
            wakeup_latencies(&configuration(200), &AtomicBool::new(false), |cycle, _| cycles.push(cycle))
                .unwrap();
        assert_eq!((probed.cycles, probed.dropped, cycles.len()), (200, 0, 200));
        assert!(cycles.windows(2).all(|pair| pair[0] < pair[1]), "{cycles:?}");
        // Numbers are indices on the grid; missing ones are the skipped releases.
        assert_eq!(cycles[0], 0);
        assert_eq!(cycles[199], 199 + probed.overruns.skipped);
        assert_eq!(probed.refusals, Vec::<String>::new());
    }

    #[test]
    fn stops_on_request() {
        let stop = AtomicBool::new(false);
        let mut seen = 0;
        let probed = wakeup_latencies(&configuration(u64::MAX), &stop, |_, _| {
            seen += 1;
            if seen == 20 {
                stop.store(true, Ordering::Relaxed);
            }
        })
        .unwrap();
        assert!(probed.cycles >= 20 && probed.cycles == seen, "{seen}: {probed:?}");
    }

    /// In virtual time none is ever late, and a full ring drops and counts.
    #[test]
    fn a_full_ring_drops_and_counts() {
        let (producer, mut consumer) = resident_ring(8);
        let mut pacer = Pacer::new(VirtualClock::default(), Duration::from_millis(1));
        let mut probed = Probed::default();
        measure(&mut pacer, 20, &AtomicBool::new(false), producer, &mut probed);
        assert_eq!((probed.cycles, probed.dropped), (20, 12));
        let kept: Vec<_> = std::iter::from_fn(|| consumer.pop().ok()).collect();
        assert_eq!(kept, (0..8).map(|cycle| (cycle, 0)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_refused_is_said() {
        let profile = RealTimeProfile { cpu: Some(1_000_000), ..RealTimeProfile::ORDINARY };
        let configuration = ProbeConfiguration { profile, ..configuration(3) };
        let probed = wakeup_latencies(&configuration, &AtomicBool::new(false), |_, _| ()).unwrap();
        assert_eq!((probed.cycles, probed.refusals.len()), (3, 1));
        assert!(probed.refusals[0].contains("CPU 1000000"), "{:?}", probed.refusals);
    }
}
