//! A segment on the caller's own thread: with a virtual clock, whole systems run in no time at all.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use ethercat::link::{End, MAXIMUM_FRAME_LENGTH, Segment};
use ethercat::time::Instant;

use super::Link;
use rt::clock::{Clock, MonotonicClock};

/// Frames on their way at once.
const FRAMES: usize = 256;

/// A link to a segment that answers inside [`Link::transmit`]; the reply can be received after the
/// time it would take on the wire.
///
/// With a [`rt::clock::VirtualClock`] a run is the same every time, and no stall of the host loses
/// or delays a frame. A receive that waits moves the clock to the next reply, or to the end of its
/// timeout. Frames need no allocation and no system call.
#[derive(Debug)]
pub struct DirectLink<S, C> {
    segment: S,
    clock: C,
    round_trip: Duration,
    replies: DirectReplies,
    spent: Duration,
}

/// One end of a ring on the caller's own thread, as [`DirectLink`]; made by [`DirectEnd::ring`].
#[derive(Debug)]
pub struct DirectEnd<S, C> {
    shared: Arc<Mutex<DirectState<S>>>,
    end: End,
    clock: C,
    round_trip: Duration,
}

/// Parts that both ends of a ring have in common.
#[derive(Debug)]
struct DirectState<S> {
    segment: S,
    replies: [DirectReplies; 2],
    spent: Duration,
}

/// A ring: replies in the order they were sent.
#[derive(Debug)]
struct DirectReplies {
    replies: Vec<DirectReply>,
    first: usize,
    count: usize,
}

#[derive(Clone, Debug)]
struct DirectReply {
    due: Instant,
    length: usize,
    bytes: [u8; MAXIMUM_FRAME_LENGTH],
}

impl DirectReplies {
    fn new() -> Self {
        let reply = DirectReply { due: Instant::EPOCH, length: 0, bytes: [0; MAXIMUM_FRAME_LENGTH] };
        Self { replies: vec![reply; FRAMES], first: 0, count: 0 }
    }

    fn next_due(&self) -> Option<Instant> {
        (self.count > 0).then(|| self.replies[self.first].due)
    }

    /// Appends a frame that is due then, if there is space.
    fn push(&mut self, frame: &[u8], due: Instant) {
        let reply = &mut self.replies[(self.first + self.count) % FRAMES];
        reply.bytes[..frame.len()].copy_from_slice(frame);
        (reply.length, reply.due) = (frame.len(), due);
        self.count += 1;
    }

    fn pop(&mut self, buffer: &mut [u8]) -> usize {
        let reply = &self.replies[self.first];
        let length = reply.length.min(buffer.len());
        buffer[..length].copy_from_slice(&reply.bytes[..length]);
        self.first = (self.first + 1) % FRAMES;
        self.count -= 1;
        length
    }

    fn is_full(&self) -> bool {
        self.count == FRAMES
    }
}

impl<S: Segment, C: Clock> DirectLink<S, C> {
    /// A link to `segment` with this time from transmit to reply.
    pub fn new(segment: S, clock: C, round_trip: Duration) -> Self {
        Self { segment, clock, round_trip, replies: DirectReplies::new(), spent: Duration::ZERO }
    }

    /// The segment.
    pub fn segment(&mut self) -> &mut S {
        &mut self.segment
    }
}

impl<S: Segment, C: Clock> Link for DirectLink<S, C> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let now = self.clock.now();
        let Self { segment, replies, spent, .. } = self;
        let due = now + self.round_trip;
        measured(spent, || {
            segment.advance(now);
            let mut bytes = copy(frame, replies.is_full())?;
            let bytes = &mut bytes[..frame.len()];
            if segment.process_frame(now, bytes) {
                replies.push(bytes, due);
            }
            Ok(())
        })
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let due = wait(&self.clock, self.replies.next_due(), timeout);
        let now = self.clock.now();
        measured(&mut self.spent, || self.segment.advance(now));
        Ok(due.then(|| self.replies.pop(buffer)))
    }

    fn take_simulation_time(&mut self) -> Duration {
        mem::take(&mut self.spent)
    }
}

impl<S: Segment, C: Clock + Clone> DirectEnd<S, C> {
    /// Both ends of `segment`, a ring, with this time from transmit to reply.
    pub fn ring(segment: S, clock: C, round_trip: Duration) -> [Self; 2] {
        let shared = DirectState {
            segment,
            replies: [DirectReplies::new(), DirectReplies::new()],
            spent: Duration::ZERO,
        };
        let shared = Arc::new(Mutex::new(shared));
        End::ALL.map(|end| Self { shared: Arc::clone(&shared), end, clock: clock.clone(), round_trip })
    }
}

impl<S, C> DirectEnd<S, C> {
    /// Both ends belong to one thread, so that this is free. A lock held by another thread is not
    /// waited for.
    fn shared(&self) -> io::Result<MutexGuard<'_, DirectState<S>>> {
        match self.shared.try_lock() {
            Ok(shared) => Ok(shared),
            Err(TryLockError::Poisoned(shared)) => Ok(shared.into_inner()),
            Err(TryLockError::WouldBlock) => Err(io::Error::from_raw_os_error(libc::EBUSY)),
        }
    }
}

impl<S: Segment, C: Clock> Link for DirectEnd<S, C> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let now = self.clock.now();
        let DirectState { segment, replies, spent } = &mut *self.shared()?;
        measured(spent, || {
            segment.advance(now);
            let mut bytes = copy(frame, replies.iter().any(DirectReplies::is_full))?;
            let bytes = &mut bytes[..frame.len()];
            if let Some(end) = segment.process_frame_at(self.end, now, bytes) {
                replies[end as usize].push(bytes, now + self.round_trip);
            }
            Ok(())
        })
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let next = self.shared()?.replies[self.end as usize].next_due();
        let due = wait(&self.clock, next, timeout);
        let now = self.clock.now();
        let DirectState { segment, replies, spent } = &mut *self.shared()?;
        measured(spent, || segment.advance(now));
        Ok(due.then(|| replies[self.end as usize].pop(buffer)))
    }

    fn take_simulation_time(&mut self) -> Duration {
        self.shared().map_or(Duration::ZERO, |mut shared| mem::take(&mut shared.spent))
    }
}

/// Does `work` of the segment, and adds the host's time for it to `spent`.
fn measured<T>(spent: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begun = MonotonicClock.now();
    let done = work();
    *spent += MonotonicClock.now().since(begun);
    done
}

/// A copy of `frame` to be changed, unless it is too long or there is no space for its reply.
fn copy(frame: &[u8], is_full: bool) -> io::Result<[u8; MAXIMUM_FRAME_LENGTH]> {
    if is_full {
        return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
    }
    let mut bytes = [0; MAXIMUM_FRAME_LENGTH];
    let copy = bytes.get_mut(..frame.len()).ok_or_else(|| io::Error::from_raw_os_error(libc::EMSGSIZE))?;
    copy.copy_from_slice(frame);
    Ok(bytes)
}

/// Waits for a reply that is due `next`, for `timeout` at most; true if it is due then.
fn wait<C: Clock>(clock: &C, next: Option<Instant>, timeout: Duration) -> bool {
    let end = clock.now() + timeout;
    let due = next.filter(|due| *due <= end);
    if !timeout.is_zero() {
        clock.sleep_until(due.unwrap_or(end));
    }
    due.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::clock::VirtualClock;

    /// Answers frames that do not start with 0, and remembers the time it was given.
    #[derive(Default)]
    struct Echo(Instant);

    impl Segment for Echo {
        fn process_frame(&mut self, _: Instant, frame: &mut [u8]) -> bool {
            frame[1] = 0xEE;
            frame[0] != 0
        }
        fn advance(&mut self, now: Instant) {
            self.0 = now;
        }
    }

    #[test]
    fn an_end_of_a_ring_waits_for_no_other_thread() {
        let clock = VirtualClock::default();
        let [mut first, mut second] = DirectEnd::ring(Echo::default(), clock, Duration::ZERO);
        let shared = Arc::clone(&first.shared);
        let held = shared.lock().unwrap();
        assert_eq!(first.transmit(&[1; 60]).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        assert_eq!(second.take_simulation_time(), Duration::ZERO);
        drop(held);
        assert!(second.transmit(&[1; 60]).is_ok());
    }

    #[test]
    fn replies_come_in_order_after_the_time_on_the_wire() {
        let clock = VirtualClock::default();
        let mut link = DirectLink::new(Echo::default(), clock.clone(), Duration::from_micros(30));
        let mut buffer = [0; 100];
        for round in 1..=300_u32 {
            for number in 1..=3 {
                link.transmit(&[number; 60]).unwrap();
                clock.advance(Duration::from_micros(1));
            }
            link.transmit(&[0; 60]).unwrap();
            assert_eq!(link.receive(&mut buffer, Duration::ZERO).unwrap(), None);
            for number in 1..=3 {
                assert_eq!(link.receive(&mut buffer, Duration::from_millis(1)).unwrap(), Some(60));
                assert_eq!(buffer[..3], [number, 0xEE, number]);
            }
            assert_eq!(clock.now().as_nanos(), u64::from(round) * 32_000);
            assert_eq!(link.segment().0, clock.now());
        }
        assert_eq!(link.receive(&mut buffer, Duration::from_millis(1)).unwrap(), None);
        assert_eq!(clock.now().as_nanos(), 300 * 32_000 + 1_000_000);
    }

    #[test]
    fn frames_beyond_the_capacity_are_refused() {
        let mut link = DirectLink::new(Echo::default(), VirtualClock::default(), Duration::ZERO);
        for _ in 0..FRAMES {
            link.transmit(&[1; 60]).unwrap();
        }
        assert_eq!(link.transmit(&[1; 60]).unwrap_err().raw_os_error(), Some(libc::ENOBUFS));
    }
}
