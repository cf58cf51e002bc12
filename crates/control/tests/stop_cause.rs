//! Cause of a stop: the first one stays, whatever happens to the computer afterwards.
use crate::support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat_linux::link::{DirectLink, Link};
use motion::supervision::{AfterOutage, Outage, StopReason};
use onbeat_control::controller::{Controller, CycleInfo};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::signal::Io;
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use support::{PERIOD, Sway, cycle_of, segment, supervised};

/// A link without replies while it is cut.
struct Cut<L>(L, Arc<AtomicBool>);

impl<L: Link> Link for Cut<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Ok(()) } else { self.0.transmit(frame) }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.0.receive(buffer, timeout)
    }
}

/// Cuts the link for 50 cycles, and stalls the computer before or in the outage.
struct Cutting {
    sway: Sway,
    clock: VirtualClock,
    is_cut: Arc<AtomicBool>,
    stall_at: u64,
}

impl Controller for Cutting {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        self.is_cut.store((CUT..CUT + 50).contains(&info.cycle), Ordering::Relaxed);
        if info.cycle == self.stall_at {
            self.clock.advance(PERIOD * 10);
        }
    }
}

/// Cycle in which the link is cut.
const CUT: u64 = 2_000;

/// Cycles of the stall by which the stop of the axis is explained at the end; 0 for another cause.
fn stalled(stall_at: u64) -> u32 {
    let (clock, is_cut) = (VirtualClock::default(), Arc::new(AtomicBool::new(false)));
    let direct = DirectLink::new(segment(1), clock.clone(), Duration::from_micros(50));
    let link = Cut(direct, Arc::clone(&is_cut));
    let controller = Cutting { sway: Sway::new(1), clock: clock.clone(), is_cut, stall_at };
    let configuration = CycleConfiguration { cycles: Some(3_000), ..CycleConfiguration::every(PERIOD) };
    let mut axes = supervised(1);
    axes[0].supervision.as_mut().unwrap().outage = Outage { time: None, after: AfterOutage::Stay };
    let (cycle, _observer) = cycle_of(link, clock, &axes, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert!(ended.before_stop.cycle > CUT + 100, "{}", ended.before_stop.cycle);
    let axis = &ended.before_stop.axes[0];
    assert_eq!(axis.stop, Some(StopReason::Outage), "{axis:?}");
    axis.stalled
}

#[test]
fn a_stall_is_the_cause_of_an_outage_only_if_it_was_first() {
    assert_eq!(stalled(CUT + 30), 0, "the cable was out before");
    assert!(stalled(CUT - 1) >= 9);
}
