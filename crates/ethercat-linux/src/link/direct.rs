//! A segment on the caller's own thread: with a virtual clock, whole systems run in no time at all.

use std::io;
use std::time::Duration;

use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment};
use ethercat::time::Instant;

use super::Link;
use rt::clock::Clock;

/// Frames on their way at once.
const FRAMES: usize = 256;

/// A link whose segment answers inside [`Link::transmit`]; the reply can be received after the time it
/// would take on the wire.
///
/// With a [`rt::clock::VirtualClock`] a run is the same every time. A receive that waits lets the
/// clock go on to the next reply, or to the end of its timeout.
#[derive(Debug)]
pub struct DirectLink<S, C> {
    segment: S,
    clock: C,
    round_trip: Duration,
    /// A ring: replies in the order they were sent.
    replies: Vec<Reply>,
    first: usize,
    count: usize,
}

#[derive(Clone, Debug)]
struct Reply {
    due: Instant,
    length: usize,
    bytes: [u8; MAXIMUM_FRAME_LENGTH],
}

impl<S: Segment, C: Clock> DirectLink<S, C> {
    /// A link to `segment` with this time from transmit to reply.
    pub fn new(segment: S, clock: C, round_trip: Duration) -> Self {
        let reply = Reply { due: Instant::EPOCH, length: 0, bytes: [0; MAXIMUM_FRAME_LENGTH] };
        Self { segment, clock, round_trip, replies: vec![reply; FRAMES], first: 0, count: 0 }
    }

    /// The segment.
    pub fn segment(&mut self) -> &mut S {
        &mut self.segment
    }

    fn next_due(&self) -> Option<Instant> {
        (self.count > 0).then(|| self.replies[self.first].due)
    }
}

impl<S: Segment, C: Clock> Link for DirectLink<S, C> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let now = self.clock.now();
        self.segment.advance(now);
        if self.count == FRAMES {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        let reply = &mut self.replies[(self.first + self.count) % FRAMES];
        let Some(bytes) = reply.bytes.get_mut(..frame.len()) else {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        };
        bytes.copy_from_slice(frame);
        if self.segment.process_frame(now, bytes) {
            reply.length = frame.len();
            reply.due = now + self.round_trip;
            self.count += 1;
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let end = self.clock.now() + timeout;
        let due = self.next_due().filter(|due| *due <= end);
        if !timeout.is_zero() {
            self.clock.sleep_until(due.unwrap_or(end));
        }
        self.segment.advance(self.clock.now());
        if due.is_none() {
            return Ok(None);
        }
        let reply = &self.replies[self.first];
        let length = reply.length.min(buffer.len());
        buffer[..length].copy_from_slice(&reply.bytes[..length]);
        self.first = (self.first + 1) % FRAMES;
        self.count -= 1;
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::clock::VirtualClock;

    /// Answers frames that do not start with 0, and remembers the time it was told.
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
    fn more_frames_than_there_is_room_for_are_refused() {
        let mut link = DirectLink::new(Echo::default(), VirtualClock::default(), Duration::ZERO);
        for _ in 0..FRAMES {
            link.transmit(&[1; 60]).unwrap();
        }
        assert_eq!(link.transmit(&[1; 60]).unwrap_err().raw_os_error(), Some(libc::ENOBUFS));
    }
}
