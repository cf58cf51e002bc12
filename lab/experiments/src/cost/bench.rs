//! A cycle with a link and a clock that leave out all foreign work: the wire and its SubDevices are
//! simulated while the cycle sleeps, and that time is subtracted from its clock.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use control::axis::AxisConfiguration;
use control::controller::Controller;
use control::cycle::{Cycle, CycleConfiguration};
use control::stop::StopHandle;
use ethercat::al::AlState;
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{Configuration, MainDevice};
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::Link;
use record::CycleRecord;
use rt::clock::{Clock, MonotonicClock};
use simulator::Segment;
use types::Signal;

use crate::Error;

/// Period of the cycle; its clock jumps over what is left of it.
const PERIOD: Duration = Duration::from_millis(1);

/// Cycles in Op that are left out: caches and branches are cold.
const WARM_UP: usize = 500;

/// Frames under way at once.
const FRAMES: usize = 256;

/// A bus and its cycle.
pub(super) struct Bench {
    /// SubDevices.
    pub(super) segment: Segment,
    /// Axes bound to them.
    pub(super) axes: Vec<AxisConfiguration>,
    /// Process data by name.
    pub(super) signals: Vec<Signal>,
    /// Controller.
    pub(super) controller: Box<dyn Controller>,
}

/// Measured cycles.
pub(super) struct Measured {
    /// One record for each cycle.
    pub(super) records: Vec<CycleRecord>,
    /// Frames of a cycle.
    pub(super) frames: f64,
}

impl Bench {
    /// Runs `cycles` cycles on this thread; `None` once `stop` is set, which is checked while the
    /// clock is stopped.
    ///
    /// # Errors
    /// The bus does not come up, or the cycle lost frames: its times are then meaningless.
    pub(super) fn measure(self, cycles: usize, stop: &AtomicBool) -> Result<Option<Measured>, Error> {
        let stopping = StopHandle::new();
        let wire = BenchWire::new(self.segment, stop, &stopping);
        let mut link = wire.clone();
        let failed = |error: &dyn std::fmt::Display| Error::other(format_args!("cost: {error}"));
        let configuration =
            Configuration { target: AlState::Op, period: PERIOD, ..Configuration::default() };
        let mut main_device = MainDevice::new(configuration).map_err(|error| failed(&error))?;
        let came_up = Pump { main_device: &mut main_device, link: &mut link, clock: &wire, stop }
            .bring_up(Duration::from_secs(600), |_| ());
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        came_up.map_err(|error| failed(&error))?;
        let run = (cycles + WARM_UP) as u64;
        let configuration = CycleConfiguration { cycles: Some(run), ..CycleConfiguration::every(PERIOD) };
        let (mut cycle, mut observer) =
            Cycle::new(main_device, link, wire.clone(), &self.axes, self.controller, configuration)
                .map_err(|error| failed(&error))?;
        if !self.signals.is_empty() {
            cycle.set_signals(self.signals).map_err(|error| failed(&error))?;
        }
        let before = wire.state.borrow().sent;
        let ended = cycle.run(&stopping);
        if stopping.is_requested() {
            return Ok(None);
        }
        let frames = wire.state.borrow().sent - before;
        let records: Vec<CycleRecord> = std::iter::from_fn(|| observer.next_record()).collect();
        if observer.dropped_records() > 0 || ended.cycles_in_op < run {
            return Err(failed(&format_args!("expected {run} cycles in Op, found {}", ended.cycles_in_op)));
        }
        let all = records.len();
        let from = all.saturating_sub(cycles);
        Ok(Some(Measured { frames: frames as f64 / all.max(1) as f64, records: records[from..].to_vec() }))
    }
}

/// Link and clock in one: frames wait until the cycle sleeps, and pass the segment then.
#[derive(Clone)]
struct BenchWire<'a> {
    state: Rc<RefCell<BenchState>>,
    /// Set when the user wants to stop; and the request to the cycle then.
    stop: &'a AtomicBool,
    stopping: StopHandle,
}

struct BenchState {
    segment: Segment,
    buffers: Vec<[u8; MAXIMUM_FRAME_LENGTH]>,
    lengths: [usize; FRAMES],
    /// Frames sent, passed through the segment, received: each is ahead of the next.
    sent: u64,
    passed: u64,
    received: u64,
    /// Time jumped over, less time hidden, ns.
    ahead: i128,
}

impl<'a> BenchWire<'a> {
    fn new(segment: Segment, stop: &'a AtomicBool, stopping: &StopHandle) -> Self {
        let buffers = vec![[0; MAXIMUM_FRAME_LENGTH]; FRAMES];
        let state = BenchState {
            segment,
            buffers,
            lengths: [0; FRAMES],
            sent: 0,
            passed: 0,
            received: 0,
            ahead: 0,
        };
        Self { state: Rc::new(RefCell::new(state)), stop, stopping: stopping.clone() }
    }
}

impl BenchState {
    fn now(&self) -> Instant {
        let now = i128::from(MonotonicClock.now().as_nanos()) + self.ahead;
        Instant::from_nanos(u64::try_from(now).unwrap_or(0))
    }

    /// Passes the frames under way through the segment while the clock is stopped.
    fn pass(&mut self) {
        let begun = self.now();
        self.segment.advance(begun);
        while self.passed < self.sent {
            let place = self.passed as usize % FRAMES;
            let frame = &mut self.buffers[place][..self.lengths[place]];
            if !self.segment.process_frame(begun, frame) {
                self.lengths[place] = 0;
            }
            self.passed += 1;
        }
        let took = self.now().as_nanos().saturating_sub(begun.as_nanos());
        self.ahead -= i128::from(took);
    }
}

impl Clock for BenchWire<'_> {
    fn now(&self) -> Instant {
        self.state.borrow().now()
    }

    fn sleep_until(&self, instant: Instant) {
        let mut state = self.state.borrow_mut();
        if self.stop.load(Ordering::Relaxed) {
            self.stopping.hurry();
        }
        state.pass();
        let left = instant.as_nanos().saturating_sub(state.now().as_nanos());
        state.ahead += i128::from(left);
    }
}

impl Link for BenchWire<'_> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        let place = state.sent as usize % FRAMES;
        if state.sent - state.received == FRAMES as u64 || frame.len() > MAXIMUM_FRAME_LENGTH {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        state.buffers[place][..frame.len()].copy_from_slice(frame);
        state.lengths[place] = frame.len();
        state.sent += 1;
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let mut state = self.state.borrow_mut();
        if !timeout.is_zero() && state.received == state.passed {
            state.pass();
            if state.received == state.passed {
                state.ahead += timeout.as_nanos() as i128;
            }
        }
        while state.received < state.passed {
            let place = state.received as usize % FRAMES;
            let length = state.lengths[place].min(buffer.len());
            buffer[..length].copy_from_slice(&state.buffers[place][..length]);
            state.received += 1;
            if length > 0 {
                return Ok(Some(length));
            }
        }
        Ok(None)
    }
}
