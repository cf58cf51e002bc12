//! A segment in this process, on a separate thread, as if behind a network card.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ethercat::link::{End, MAXIMUM_FRAME_LENGTH, Segment};
use rtrb::{Consumer, Producer, RingBuffer};

use super::Link;
use rt::clock::{Clock, MonotonicClock};
use rt::doorbell::Doorbell;
use rt::scheduling::{self, Scheduling};

/// Frames that can be under way at once; a network card has a few hundred.
const FRAMES: usize = 256;

/// The longest a segment goes without the time.
pub(crate) const ADVANCE_EVERY: Duration = Duration::from_micros(250);

/// A link to a [`Segment`] on a separate thread.
///
/// Frames cross through two bounded rings of preallocated buffers, so both calls are free of
/// allocation and locks. A transmit makes a system call only if the segment's thread sleeps.
/// Dropping the link stops the thread.
pub struct SimulatedLink<S> {
    outgoing: Producer<Box<Buffer>>,
    incoming: Consumer<Box<Buffer>>,
    end: End,
    #[expect(clippy::vec_box, reason = "the boxes move through the rings")]
    free: Vec<Box<Buffer>>,
    shared: Arc<SimulatedState>,
    control: SegmentControl<S>,
    thread: Option<Thread<S>>,
}

/// The segment's thread, and the end of its work: dropping a segment of many SubDevices takes long.
type Thread<S> = (JoinHandle<S>, mpsc::Receiver<()>);

/// The system calls that a [`SimulatedLink`] makes, by name: to wake its segment's thread, and to
/// wait for it.
pub const SIMULATED_SYSTEM_CALLS: [&str; 1] = ["futex"];

impl<S: Segment + 'static> SimulatedLink<S> {
    /// Starts the segment's thread with the ordinary scheduling policy.
    #[must_use]
    pub fn new(segment: S) -> Self {
        Self::with_scheduling(segment, None)
    }

    /// Starts the segment's thread with this policy; a refused policy is left out.
    #[must_use]
    pub fn with_scheduling(segment: S, scheduling: Option<Scheduling>) -> Self {
        let (near, far) = pipe();
        let (control, thread) = start(segment, scheduling, vec![far]);
        Self::of(near, End::First, control, thread)
    }

    /// The same for both ends of a ring; dropping either stops the thread. A frame that comes out
    /// at the other end keeps its buffer, so both ends have to send equally often.
    #[must_use]
    pub fn ring(segment: S, scheduling: Option<Scheduling>) -> (Self, Self) {
        let ((first, far_first), (second, far_second)) = (pipe(), pipe());
        let (control, thread) = start(segment, scheduling, vec![far_first, far_second]);
        let second = Self::of(second, End::Second, control.clone(), None);
        (Self::of(first, End::First, control, thread), second)
    }

    fn of(near: Near, end: End, control: SegmentControl<S>, thread: Option<Thread<S>>) -> Self {
        let mut free = Vec::with_capacity(2 * FRAMES);
        free.extend((0..FRAMES).map(|_| Box::default()));
        let (shared, Near { outgoing, incoming }) = (Arc::clone(&control.shared), near);
        Self { outgoing, incoming, end, free, shared, control, thread }
    }

    /// A handle to reach the segment while the link is in use elsewhere.
    #[must_use]
    pub fn control(&self) -> SegmentControl<S> {
        self.control.clone()
    }

    /// Stops the thread and hands the segment back; `None` if it panicked or never started.
    #[must_use]
    pub fn into_segment(mut self) -> Option<S> {
        self.stop();
        self.thread.take().and_then(|(thread, _)| thread.join().ok())
    }
}

impl<S> SimulatedLink<S> {
    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.request.ring();
    }

    fn take(&mut self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            let reply = self.incoming.pop().ok()?;
            let length = reply.length.min(buffer.len());
            buffer[..length].copy_from_slice(&reply.bytes[..length]);
            // Every buffer has its place in `free` from the start: this never grows it.
            self.free.push(reply);
            if length > 0 {
                return Some(length);
            }
        }
    }
}

impl<S> Drop for SimulatedLink<S> {
    fn drop(&mut self) {
        // Without its handle the thread drops the segment.
        let over = self.thread.take().map(|(_, over)| over);
        self.stop();
        let _ = over.map(|over| over.recv());
    }
}

impl<S> Link for SimulatedLink<S> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > MAXIMUM_FRAME_LENGTH {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        if self.free.is_empty() {
            // Buffers of frames that never came back wait in the ring with length 0.
            while let Ok(reply) = self.incoming.peek() {
                if reply.length > 0 {
                    break;
                }
                self.free.extend(self.incoming.pop());
            }
        }
        // As a network card with a full ring: the frame is not sent.
        let mut buffer = self.free.pop().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOBUFS))?;
        buffer.length = frame.len();
        buffer.bytes[..frame.len()].copy_from_slice(frame);
        // As many places as buffers: never full.
        let _ = self.outgoing.push(buffer);
        self.shared.request.ring();
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        if let Some(length) = self.take(buffer) {
            return Ok(Some(length));
        }
        if timeout.is_zero() {
            return Ok(None);
        }
        let clock = MonotonicClock;
        let end = clock.now() + timeout;
        loop {
            let left = end.since(clock.now());
            if left.is_zero() {
                return Ok(None);
            }
            self.shared.replies[self.end as usize].wait(left, || !self.incoming.is_empty());
            if let Some(length) = self.take(buffer) {
                return Ok(Some(length));
            }
        }
    }
}

impl<S> fmt::Debug for SimulatedLink<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedLink").finish_non_exhaustive()
    }
}

/// Reaches a simulated link's segment from any thread, while frames pass.
pub struct SegmentControl<S> {
    sender: Arc<Mutex<mpsc::Sender<Call<S>>>>,
    shared: Arc<SimulatedState>,
}

impl<S> SegmentControl<S> {
    /// Runs `call` on the segment, between two frames, and returns its result; `None` once the link
    /// is dropped. Not for the real-time path: it waits.
    pub fn run<R: Send + 'static>(&self, call: impl FnOnce(&mut S) -> R + Send + 'static) -> Option<R> {
        let (answer, answered) = mpsc::sync_channel(1);
        let call = Box::new(move |segment: &mut S| {
            let _ = answer.send(call(segment));
        });
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(call).ok()?;
        self.shared.request.ring();
        answered.recv().ok()
    }
}

impl<S> Clone for SegmentControl<S> {
    fn clone(&self) -> Self {
        Self { sender: Arc::clone(&self.sender), shared: Arc::clone(&self.shared) }
    }
}

impl<S> fmt::Debug for SegmentControl<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentControl").finish_non_exhaustive()
    }
}

type Call<S> = Box<dyn FnOnce(&mut S) + Send>;

struct Buffer {
    /// Bytes in use; 0 when the frame did not come back.
    length: usize,
    bytes: [u8; MAXIMUM_FRAME_LENGTH],
}

impl Default for Buffer {
    fn default() -> Self {
        Self { length: 0, bytes: [0; MAXIMUM_FRAME_LENGTH] }
    }
}

#[derive(Default)]
struct SimulatedState {
    /// Rung for the segment's thread: a frame, a call, or the end.
    request: Doorbell,
    /// Rung for the receiver at each end: a reply.
    replies: [Doorbell; 2],
    stop: AtomicBool,
}

/// The link's side of the rings of one end.
struct Near {
    outgoing: Producer<Box<Buffer>>,
    incoming: Consumer<Box<Buffer>>,
}

/// The segment's side of them.
struct Far {
    requests: Consumer<Box<Buffer>>,
    replies: Producer<Box<Buffer>>,
}

/// Rings for the buffers of both ends of a ring of SubDevices, wherever they are.
fn pipe() -> (Near, Far) {
    let (outgoing, requests) = RingBuffer::new(2 * FRAMES);
    let (replies, incoming) = RingBuffer::new(2 * FRAMES);
    (Near { outgoing, incoming }, Far { requests, replies })
}

fn start<S: Segment + 'static>(
    mut segment: S,
    scheduling: Option<Scheduling>,
    ends: Vec<Far>,
) -> (SegmentControl<S>, Option<Thread<S>>) {
    // Power comes on before the first frame, which would wait for it.
    segment.advance(MonotonicClock.now());
    let (sender, calls) = mpsc::channel();
    let shared = Arc::new(SimulatedState::default());
    let wire = SimulatedWire { segment, ends, calls, shared: Arc::clone(&shared) };
    let (working, over) = mpsc::channel();
    let thread = thread::Builder::new()
        .name("segment".into())
        .spawn(move || {
            // Ignored: there is no privilege needed to leave a real-time policy.
            let _ = scheduling::set_ordinary();
            let _ = scheduling.map(scheduling::schedule);
            scheduling::set_timer_slack(1);
            let segment = wire.run();
            let _ = scheduling::set_ordinary();
            drop(working);
            segment
        })
        .ok()
        .map(|thread| (thread, over));
    (SegmentControl { sender: Arc::new(Mutex::new(sender)), shared }, thread)
}

/// The segment's thread.
struct SimulatedWire<S> {
    segment: S,
    ends: Vec<Far>,
    calls: mpsc::Receiver<Call<S>>,
    shared: Arc<SimulatedState>,
}

impl<S: Segment> SimulatedWire<S> {
    /// Passes the frames that wait at `end`; true if there were any.
    fn pass(&mut self, end: End, clock: MonotonicClock) -> bool {
        let mut any = false;
        while let Some(mut buffer) = self.ends.get_mut(end as usize).and_then(|far| far.requests.pop().ok())
        {
            let length = buffer.length;
            let out = self.segment.process_frame_at(end, clock.now(), &mut buffer.bytes[..length]);
            let out = out.filter(|&out| self.ends.len() > out as usize);
            if out.is_none() {
                buffer.length = 0;
            }
            let out = out.unwrap_or(end);
            // As many places as buffers: never full.
            let _ = self.ends[out as usize].replies.push(buffer);
            self.shared.replies[out as usize].ring();
            any = true;
        }
        any
    }

    fn has_requests(&self) -> bool {
        self.ends.iter().any(|far| !far.requests.is_empty())
    }

    fn run(mut self) -> S {
        let clock = MonotonicClock;
        let mut advanced = clock.now();
        // Relaxed: nothing but the flag itself is passed through it.
        while !self.shared.stop.load(Ordering::Relaxed) {
            let mut busy = false;
            for end in End::ALL {
                busy |= self.pass(end, clock);
            }
            while let Ok(call) = self.calls.try_recv() {
                call(&mut self.segment);
                busy = true;
            }
            let now = clock.now();
            if now.since(advanced) >= ADVANCE_EVERY {
                self.segment.advance(now);
                advanced = now;
            }
            if !busy {
                let left = ADVANCE_EVERY.saturating_sub(clock.now().since(advanced));
                // A call rings too, but the channel cannot be checked for one: a call that races
                // with this wait is served at the next advance.
                self.shared
                    .request
                    .wait(left, || self.has_requests() || self.shared.stop.load(Ordering::Relaxed));
            }
        }
        self.segment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethercat::time::Instant;

    /// Counts, and answers every frame that does not start with 0.
    #[derive(Default)]
    struct Echo {
        frames: u32,
        advances: Vec<Instant>,
    }

    impl Segment for Echo {
        fn process_frame(&mut self, _: Instant, frame: &mut [u8]) -> bool {
            self.frames += 1;
            let returns = frame[0] != 0;
            frame[0] = frame[0].wrapping_add(1);
            returns
        }

        fn advance(&mut self, now: Instant) {
            self.advances.push(now);
        }
    }

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[test]
    fn every_frame_comes_back_changed_and_in_order() {
        let mut link = SimulatedLink::new(Echo::default());
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        for round in 0..500_usize {
            let burst = round % 7 + 1;
            for number in 0..burst {
                link.transmit(&vec![number as u8 + 1; 60 + round]).unwrap();
            }
            for number in 0..burst {
                assert_eq!(link.receive(&mut buffer, TIMEOUT).unwrap(), Some(60 + round));
                assert_eq!(&buffer[..2], [number as u8 + 2, number as u8 + 1]);
            }
        }
        assert_eq!(link.receive(&mut buffer, Duration::ZERO).unwrap(), None);
        assert_eq!(link.into_segment().unwrap().frames, (0..500).map(|round| round % 7 + 1).sum::<u32>());
    }

    #[test]
    fn lost_frame_returns_its_buffer() {
        let mut link = SimulatedLink::new(Echo::default());
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        let mut refused = 0;
        for _ in 0..4 * FRAMES {
            while link.transmit(&[0; 60]).is_err() {
                refused += 1;
                thread::yield_now();
            }
        }
        link.control().run(|_| ()).unwrap();
        link.transmit(&[9; 60]).unwrap();
        assert_eq!(link.receive(&mut buffer, TIMEOUT).unwrap(), Some(60));
        assert_eq!(link.free.len(), FRAMES, "after {refused} refusals");
    }

    #[test]
    fn a_receive_that_waits_ends_in_time() {
        let mut link = SimulatedLink::new(Echo::default());
        let begin = std::time::Instant::now();
        let received = link.receive(&mut [0; 100], Duration::from_millis(5)).unwrap();
        assert_eq!(received, None);
        let elapsed = begin.elapsed();
        assert!(elapsed >= Duration::from_millis(5) && elapsed < TIMEOUT, "{elapsed:?}");
    }

    #[test]
    fn segment_gets_the_time_and_calls_without_frames() {
        let link = SimulatedLink::new(Echo::default());
        let control = link.control();
        let begin = std::time::Instant::now();
        while control.run(|echo| echo.advances.len()).unwrap() < 5 {
            assert!(begin.elapsed() < TIMEOUT, "the segment is never told the time");
            thread::yield_now();
        }
        let echo = link.into_segment().unwrap();
        assert!(echo.advances.is_sorted() && echo.frames == 0);
        assert!(control.run(|_| ()).is_none());
    }

    #[test]
    fn frames_beyond_the_buffers_are_refused() {
        struct Stuck(mpsc::Receiver<()>);
        impl Segment for Stuck {
            fn process_frame(&mut self, _: Instant, _: &mut [u8]) -> bool {
                self.0.recv().is_ok()
            }
            fn advance(&mut self, _: Instant) {}
        }
        let (release, stuck) = mpsc::channel();
        let mut link = SimulatedLink::new(Stuck(stuck));
        for _ in 0..FRAMES {
            link.transmit(&[1; 60]).unwrap();
        }
        assert_eq!(link.transmit(&[1; 60]).unwrap_err().raw_os_error(), Some(libc::ENOBUFS));
        drop(release);
    }
}
