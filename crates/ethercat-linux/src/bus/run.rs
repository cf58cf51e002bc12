//! The cycle of a bus: to Op, cycles until a stop request, safe outputs, back to Init.

use std::collections::VecDeque;
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::main_device::{
    BringUpPhase, CycleReport, Event, Input, MailboxOutcome, MailboxRequest, MainDevice, Output,
};
use ethercat::pdo::ProcessValue;
use ethercat::time::Instant;
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::{Pacer, Release};

use super::report::RunReport;
use super::{Bus, Error};
use crate::bring_up::{BRING_UP_TIMEOUT, BringUpError, TAKE_DOWN_TIMEOUT};
use crate::cyclic;

impl Bus {
    /// Takes the bus to Op and calls `control` in each cycle there, until [`Io::stop`] or a
    /// [`super::StopHandle`] ends it. Then, and also if this returns an error, `control` panics or
    /// the program unwinds, outputs are set to their safe values ([`Bus::set_safe`]), and the bus
    /// goes to Init. If the process is killed, the SubDevices' watchdogs do that. Only an invalid
    /// period is refused beforehand: the bus stays in PreOp.
    ///
    /// A cycle takes the replies to the last one's frames, calls `control`, and sends; it never
    /// waits for the wire beyond its release. A SubDevice that leaves Op shows in [`Io::is_fresh`]
    /// and [`Io::event`], and is brought back; if it stays out of Op for a second, the run ends
    /// with an error, unless [`Bus::continue_out_of_op`] was called. From Op on a cycle allocates
    /// nothing.
    ///
    /// The cycle runs on the thread that calls this, with its scheduling: a real-time priority and
    /// a CPU are set before ([`Bus`] shows how). [`RunReport`] shows whether they are needed.
    ///
    /// # Errors
    /// A bus that is not up, a period that cannot be run, a SubDevice that does not reach Op or
    /// stays out of it, a bus that does not answer for a second.
    pub fn run(
        &mut self,
        period: Duration,
        mut control: impl FnMut(&mut Io<'_>),
    ) -> Result<RunReport, Error> {
        let main_device = self.main_device.as_mut().ok_or(Error::NotUp)?;
        main_device.set_period(period)?;
        main_device.request_state(AlState::Op);
        let mut running = BusRun::new(self, period);
        let ended = running.until_asked(&mut control);
        running.report.out_of_op = running.out_of_op();
        let report = running.report;
        drop(running);
        ended.map(|()| report)
    }
}

/// Process data and more in one cycle of [`Bus::run`].
#[derive(Debug)]
pub struct Io<'a> {
    main_device: &'a mut MainDevice,
    events: &'a mut VecDeque<Event>,
    release: Release,
    period: Duration,
    stop: bool,
}

impl Io<'_> {
    /// The value of an input as it came in last: see [`Io::is_fresh`].
    #[must_use]
    pub fn get<T: ProcessValue>(&self, input: Input<T>) -> T {
        self.main_device.get(input)
    }

    /// Sets an output from this cycle on. An integer beyond the range of the entry becomes the
    /// nearest value in range.
    pub fn set<T: ProcessValue>(&mut self, output: Output<T>, value: T) {
        self.main_device.set(output, value);
    }

    /// True if the input came in with the last frames; otherwise its value is older.
    #[must_use]
    pub fn is_fresh<T: ProcessValue>(&self, input: Input<T>) -> bool {
        self.main_device.inputs_fresh(input.position())
    }

    /// Number of the cycle: its place on the grid of releases. Skipped cycles leave a gap.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.release.cycle
    }

    /// Its release: the ideal instant, on the machine's monotonic clock.
    #[must_use]
    pub fn release(&self) -> Instant {
        self.release.instant
    }

    /// Time between two releases.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Ends the run after this cycle.
    pub fn stop(&mut self) {
        self.stop = true;
    }

    /// The next event of the bus: a SubDevice lost or in another state, an emergency, the outcome
    /// of a request. The oldest are dropped if they are not taken.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sends a request to a SubDevice's mailbox, in addition to process data; the outcome is an
    /// [`Io::event`].
    ///
    /// # Errors
    /// The request, if it cannot be queued.
    pub fn submit(&mut self, request: MailboxRequest) -> Result<(), MailboxOutcome> {
        self.main_device.submit(request)
    }

    /// Reads the latch inputs of a SubDevice, in addition to process data, into
    /// [`SubDevice::latches`](ethercat::main_device::SubDevice::latches); false if it has none. See
    /// [`MainDevice::read_latches`].
    pub fn read_latches(&mut self, position: usize) -> bool {
        self.main_device.read_latches(position)
    }

    /// The MainDevice itself: states, working counters, clocks.
    #[must_use]
    pub fn main_device(&self) -> &MainDevice {
        self.main_device
    }
}

/// A bus with its cycle; dropping it makes outputs safe and takes the bus to Init.
struct BusRun<'a> {
    bus: &'a mut Bus,
    pacer: Pacer<MonotonicClock>,
    period: Duration,
    events: VecDeque<Event>,
    report: RunReport,
    /// True if a [`super::StopHandle`] ended it.
    stopped: bool,
    /// When a reply came last.
    answered: Instant,
    /// Consecutive cycles that each SubDevice has been out of Op.
    out_of_op: Vec<u64>,
    frame: [u8; MAXIMUM_FRAME_LENGTH],
}

impl<'a> BusRun<'a> {
    fn new(bus: &'a mut Bus, period: Duration) -> Self {
        let pacer = Pacer::new(MonotonicClock, period);
        let sub_devices = bus.sub_devices().len();
        Self {
            bus,
            pacer,
            period,
            events: VecDeque::with_capacity(EVENTS),
            report: RunReport::default(),
            stopped: false,
            answered: MonotonicClock.now(),
            out_of_op: vec![0; sub_devices],
            frame: [0; MAXIMUM_FRAME_LENGTH],
        }
    }

    fn until_asked(&mut self, control: &mut impl FnMut(&mut Io<'_>)) -> Result<(), Error> {
        let begun = MonotonicClock.now();
        let mut in_op = false;
        while !self.bus.stop.is_requested() {
            let release = self.pacer.wait();
            let latency = MonotonicClock.now().since(release.instant);
            let cycle = self.receive(release.instant);
            self.take_events()?;
            let Some(main_device) = &mut self.bus.main_device else { return Err(Error::NotUp) };
            if main_device.phase() == BringUpPhase::Op {
                if !std::mem::replace(&mut in_op, true) {
                    // During bring-up there is time for everything.
                    self.report = RunReport { period: self.period, ..RunReport::default() };
                    self.pacer.forget_overruns();
                }
                self.report.cycle(release.cycle, latency);
                let events = &mut self.events;
                let mut io = Io { main_device, events, release, period: self.period, stop: false };
                control(&mut io);
                if io.stop {
                    return Ok(());
                }
            } else if MonotonicClock.now().since(begun) > BRING_UP_TIMEOUT {
                let (phase, awaited) = (main_device.phase(), main_device.awaited());
                let timeout = BRING_UP_TIMEOUT;
                return Err(BringUpError::TimedOut { phase, timeout, awaited }.into());
            }
            self.transmit();
            self.check_lost(cycle)?;
            if in_op {
                self.check_out_of_op()?;
            }
        }
        self.stopped = true;
        Ok(())
    }

    /// The replies to the last cycle's frames.
    fn receive(&mut self, end: Instant) -> CycleReport {
        let Bus { main_device: Some(main_device), link, .. } = &mut *self.bus else {
            return CycleReport::default();
        };
        let before = main_device.reception().accepted;
        let (clock, frame) = (MonotonicClock, &mut self.frame);
        let received = cyclic::receive(main_device, &mut **link, &clock, clock.now(), frame, end, |_| ());
        let now = MonotonicClock.now();
        if main_device.reception().accepted != before {
            self.answered = now;
        }
        self.report.link_errors += u64::from(received.is_err());
        let cycle = main_device.end_cycle(now);
        self.report.frames_lost += u64::from(cycle.frames_lost);
        self.report.working_counter_errors += u64::from(cycle.working_counter_errors);
        self.report.overruns = self.pacer.overruns();
        cycle
    }

    fn transmit(&mut self) {
        let Bus { main_device: Some(main_device), link, .. } = &mut *self.bus else { return };
        let now = MonotonicClock.now();
        main_device.begin_cycle(now);
        let errors = &mut self.report.link_errors;
        cyclic::transmit(main_device, &mut **link, now, |sent| *errors += u64::from(sent.is_err()));
    }

    /// Keeps events for [`Io::event`].
    fn take_events(&mut self) -> Result<(), Error> {
        let Some(main_device) = &mut self.bus.main_device else { return Err(Error::NotUp) };
        while let Some(event) = main_device.poll_event() {
            if let Event::Failed(error) = event {
                return Err(Error::Bus(error));
            }
            if self.events.len() == EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
        Ok(())
    }

    fn check_lost(&self, cycle: CycleReport) -> Result<(), Error> {
        if cycle.frames_lost == 0 {
            return Ok(());
        }
        let after = MonotonicClock.now().since(self.answered);
        if after > LOST { Err(Error::Lost { after }) } else { Ok(()) }
    }

    /// SubDevices outside Op that should be in it.
    fn out_of_op(&self) -> usize {
        let Some(main_device) = &self.bus.main_device else { return 0 };
        (0..main_device.sub_devices().len()).filter(|&position| is_out_of_op(main_device, position)).count()
    }

    /// Counts cycles, not time: while this computer stalls, no SubDevice can return.
    fn check_out_of_op(&mut self) -> Result<(), Error> {
        let Bus { main_device: Some(main_device), continues: false, .. } = &*self.bus else {
            return Ok(());
        };
        let most = LOST.as_nanos().div_ceil(self.period.as_nanos().max(1)) as u64;
        for ((position, it), out) in main_device.sub_devices().iter().enumerate().zip(&mut self.out_of_op) {
            *out = if is_out_of_op(main_device, position) { *out + 1 } else { 0 };
            if *out >= most {
                return Err(Error::OutOfOp {
                    position,
                    name: it.name.clone(),
                    after: LOST,
                    answers: !main_device.does_not_answer(position as u16),
                    status: it.al_status,
                    code: it.al_status_code,
                });
            }
        }
        Ok(())
    }

    /// Cycles with safe outputs until one was taken by all.
    fn make_safe(&mut self) {
        for cycle in 0..SAFE_CYCLES {
            let Bus { main_device: Some(main_device), safe, .. } = &mut *self.bus else { return };
            for (position, image) in safe.iter().enumerate() {
                let outputs = main_device.outputs_mut(position);
                outputs.iter_mut().zip(image).for_each(|(output, safe)| *output = *safe);
            }
            self.transmit();
            let release = self.pacer.wait();
            if self.receive(release.instant).all_fresh && cycle > 0 {
                return;
            }
        }
    }

    /// To Init, process data flowing until it is reached.
    fn take_down(&mut self) {
        let Some(main_device) = &mut self.bus.main_device else { return };
        main_device.request_state(AlState::Init);
        let end = MonotonicClock.now() + TAKE_DOWN_TIMEOUT;
        while MonotonicClock.now() < end {
            self.transmit();
            let release = self.pacer.wait();
            self.receive(release.instant);
            if self.bus.main_device.as_ref().is_none_or(|it| it.phase() == BringUpPhase::Down) {
                return;
            }
        }
    }
}

impl Drop for BusRun<'_> {
    fn drop(&mut self) {
        if self.bus.main_device.as_ref().is_some_and(|it| it.phase() == BringUpPhase::Op) {
            self.make_safe();
        }
        self.take_down();
        self.bus.main_device = None;
        if self.stopped {
            self.bus.stop.forget();
        }
    }
}

/// True if the SubDevice should be in Op and is not.
fn is_out_of_op(main_device: &MainDevice, position: usize) -> bool {
    let it = &main_device.sub_devices()[position];
    !it.is_absent() && it.sii_problem.is_none() && !main_device.is_in_op(position)
}

/// Events kept for [`Io::event`].
const EVENTS: usize = 256;

/// Time without any reply after which a bus is lost, and out of Op after which a SubDevice is.
const LOST: Duration = Duration::from_secs(1);

/// Cycles with safe outputs at most.
const SAFE_CYCLES: u32 = 10;
