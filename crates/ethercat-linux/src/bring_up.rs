//! Before the cycle, and without one: a MainDevice on its link with no cycles.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::main_device::{BringUpPhase, BusError, Event, MainDevice};
use ethercat::time::Instant;
use ethercat::wire::{Frame, MacAddress};
use thiserror::Error;

use crate::link::Link;
use rt::clock::Clock;

/// Carries frames between a MainDevice and its link, until something is done.
///
/// For the time before the cycle, and for tools that need none. It may wait and allocate.
#[derive(Debug)]
pub struct Pump<'a, L: ?Sized, C> {
    /// The MainDevice.
    pub main_device: &'a mut MainDevice,
    /// Its link.
    pub link: &'a mut L,
    /// The clock it lives by.
    pub clock: &'a C,
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

impl<L: Link + ?Sized, C: Clock> Pump<'_, L, C> {
    /// Listens for another MainDevice on the wire, before the first frame is sent: 50 ms on a quiet
    /// wire. On a wire that others can reach, call it before [`Pump::bring_up`], which takes their
    /// SubDevices to Init.
    ///
    /// Frames that a killed process left on the wire come to an end and are no MainDevice.
    ///
    /// # Errors
    /// [`BringUpError::OtherMainDevice`] if replies to another's frames keep coming, a link that
    /// fails, a request to stop.
    pub fn listen(&mut self) -> Result<(), BringUpError> {
        let mut heard: Option<Heard> = None;
        let mut frame = [0; MAXIMUM_FRAME_LENGTH];
        let mut now = self.clock.now();
        let mut end = now + QUIET;
        while now < end {
            // Relaxed: nothing but the flag itself is passed through it.
            if self.stop.load(Ordering::Relaxed) {
                return Err(BringUpError::Stopped);
            }
            let received = self.link.receive(&mut frame, end.since(now).min(LONGEST_SLEEP))?;
            now = self.clock.now();
            let Some(address) = received.and_then(|length| processed_by_others(&frame[..length])) else {
                continue;
            };
            let heard = heard.get_or_insert(Heard { first: now, frames: 0 });
            heard.frames += 1;
            end = now + QUIET_AGAIN;
            let time = now.since(heard.first);
            if time >= KEEPS_COMING {
                return Err(BringUpError::OtherMainDevice { address, frames: heard.frames, time });
            }
        }
        Ok(())
    }

    /// Brings the bus to PreOp, all SubDevices identified and configured. `on_event` is called with
    /// each event.
    ///
    /// If that fails the bus is taken back to Init before this returns.
    ///
    /// # Errors
    /// A fault of the bus, a link that fails, a request to stop, or `timeout` at its end.
    pub fn bring_up(
        &mut self,
        timeout: Duration,
        mut on_event: impl FnMut(&Event),
    ) -> Result<(), BringUpError> {
        let outcome = self.until(timeout, |main_device, event| match event {
            Some(Event::Failed(error)) => Some(Err(error)),
            Some(event) => {
                on_event(&event);
                None
            }
            None => (main_device.phase() >= BringUpPhase::PreOp).then_some(Ok(())),
        });
        let outcome = outcome.and_then(|reached| reached.map_err(BringUpError::Bus));
        if outcome.is_err() {
            // The first error is the one to report.
            let _ = self.take_down();
        }
        outcome
    }

    /// Takes the bus to Init.
    ///
    /// # Errors
    /// A link that fails, or a bus that does not answer within two seconds.
    pub fn take_down(&mut self) -> Result<(), BringUpError> {
        self.main_device.request_state(AlState::Init);
        let deaf = AtomicBool::new(false);
        let mut pump =
            Pump { main_device: self.main_device, link: self.link, clock: self.clock, stop: &deaf };
        pump.until(TAKE_DOWN_TIMEOUT, |main_device, _| {
            (main_device.phase() == BringUpPhase::Down).then_some(())
        })
    }

    /// Runs until `look` returns a value: it gets every event, and the MainDevice whenever there
    /// are no more.
    ///
    /// # Errors
    /// A link that fails, a request to stop, or `timeout` at its end.
    pub fn until<R>(
        &mut self,
        timeout: Duration,
        mut look: impl FnMut(&mut MainDevice, Option<Event>) -> Option<R>,
    ) -> Result<R, BringUpError> {
        let mut end = self.clock.now() + timeout;
        let mut frame = [0; MAXIMUM_FRAME_LENGTH];
        let mut due = end;
        loop {
            let now = self.clock.now();
            // Time in which this thread did not run is none in which the bus was late.
            end = end + now.since(due);
            while let Some(frame) = self.main_device.next_frame(now) {
                self.link.transmit(frame).or_else(full_is_lost)?;
            }
            while let Some(event) = self.main_device.poll_event() {
                if let Some(result) = look(self.main_device, Some(event)) {
                    return Ok(result);
                }
            }
            if let Some(result) = look(self.main_device, None) {
                return Ok(result);
            }
            // Relaxed: nothing but the flag itself is passed through it.
            if self.stop.load(Ordering::Relaxed) {
                return Err(BringUpError::Stopped);
            }
            if now >= end {
                let (phase, awaited) = (self.main_device.phase(), self.main_device.awaited());
                return Err(BringUpError::TimedOut { phase, timeout, awaited });
            }
            self.main_device.note_ring(self.link.ring());
            let next = self.main_device.poll_timeout().unwrap_or(end).min(end);
            let timeout = next.since(now).clamp(Duration::from_micros(10), LONGEST_SLEEP);
            due = now + timeout + LATE;
            self.receive(&mut frame, timeout)?;
        }
    }

    /// Waits for a frame, and takes all waiting ones: frames that came while this thread did not
    /// run are not lost.
    fn receive(&mut self, frame: &mut [u8], timeout: Duration) -> Result<(), BringUpError> {
        let mut timeout = timeout;
        for _ in 0..FRAMES_AT_ONCE {
            let Some(length) = self.link.receive(frame, timeout)? else { break };
            self.main_device.handle_frame(self.clock.now(), &frame[..length]);
            timeout = Duration::ZERO;
        }
        Ok(())
    }
}

/// Replies to frames that are not ours.
struct Heard {
    first: Instant,
    frames: u32,
}

/// Source address of an EtherCAT frame that SubDevices have processed.
fn processed_by_others(bytes: &[u8]) -> Option<MacAddress> {
    Frame::parse(bytes).ok().map(|frame| frame.source()).filter(|source| source.is_processed())
}

fn per_second(frames: u32, time: Duration) -> u32 {
    (f64::from(frames) / time.as_secs_f64().max(1e-3)).round() as u32
}

/// A full queue loses one frame, which will be sent again.
fn full_is_lost(error: io::Error) -> io::Result<()> {
    if error.raw_os_error() == Some(libc::ENOBUFS) { Ok(()) } else { Err(error) }
}

/// Requests to stop are noticed after this time.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Delays of this thread up to this one count as time of the bus.
const LATE: Duration = Duration::from_millis(2);

/// Frames taken before more are sent: as many as may be under way, so that a flood of foreign ones
/// takes a bounded time.
const FRAMES_AT_ONCE: usize = 64;

/// A wire without a frame for this time has no other MainDevice, unless its cycle is longer.
const QUIET: Duration = Duration::from_millis(50);

/// The same once a frame was received: the next one distinguishes a slow cycle from frames left by
/// a dead process.
const QUIET_AGAIN: Duration = Duration::from_millis(250);

/// Time in which the frames of a dead process arrive, also from SubDevices simulated on a busy
/// machine.
const KEEPS_COMING: Duration = Duration::from_millis(50);

/// Longest time of the whole bus to PreOp, or from there to Op; each step has a shorter time-out
/// and a separate error.
pub const BRING_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// Time a bus may take to Init.
pub(crate) const TAKE_DOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Reason that a bus did not come up.
#[non_exhaustive]
#[derive(Error)]
pub enum BringUpError {
    /// The fault of the bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Another MainDevice uses this wire.
    #[error(
        "another MainDevice is on this wire: {frames} replies in {time:.0?}, {} a second, that are not ours, from \
         {address}; end it, or take the SubDevices from it",
        per_second(*frames, *time)
    )]
    OtherMainDevice {
        /// Source address of the replies, with bit 1 of the first byte set by the SubDevices.
        address: MacAddress,
        /// Number that were received.
        frames: u32,
        /// Time from the first to the last.
        time: Duration,
    },
    /// The link failed.
    #[error("the link failed: {0}; check that the interface is still there, up, and has an MTU of 1500")]
    Link(#[from] io::Error),
    /// It took too long.
    #[error(
        "the bus did not come up within {timeout:?}: it stopped at {phase}{}; check cables and power",
        list(awaited)
    )]
    TimedOut {
        /// Phase it had reached.
        phase: BringUpPhase,
        /// Time it was given.
        timeout: Duration,
        /// Steps still waited for: [`MainDevice::awaited`].
        awaited: Vec<String>,
    },
    /// A stop was requested.
    #[error("stopped on request")]
    Stopped,
}

ethercat::debug_is_sentence!(BringUpError);

/// As many as are worth reading.
fn list(awaited: &[String]) -> String {
    let shown = &awaited[..awaited.len().min(AWAITED_SHOWN)];
    match (shown, awaited.len() - shown.len()) {
        ([], _) => String::new(),
        (shown, 0) => format!(", waiting for {}", shown.join("; ")),
        (shown, more) => format!(", waiting for {}; and {more} more", shown.join("; ")),
    }
}

/// SubDevices named where time is up.
const AWAITED_SHOWN: usize = 4;
