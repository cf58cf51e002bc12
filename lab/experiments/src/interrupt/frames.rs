//! Latency from the kernel's stamp on a received frame to user code, and to the reply's stamp at
//! the other end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ethercat::wire::datagram::{Address, Command, DatagramHeader};
use ethercat::wire::ethernet::MacAddress;
use ethercat::wire::frame::{Frame, FrameBuilder};
use rt::clock::MonotonicClock;
use rt::pacer::Pacer;
use rt::profile::{Granted, RealTimeProfile};
use rustix::time::{ClockId, clock_gettime};

use crate::sys::stamped::StampedSocket;

/// Exchange of frames.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Number of frames to send.
    pub(super) samples: usize,
    /// Time between two frames.
    pub(super) interval: Duration,
    /// Real-time profile of the receiving thread.
    pub(super) receiver: RealTimeProfile,
    /// Real-time profile of the thread that sends, and receives the replies.
    pub(super) sender: RealTimeProfile,
    /// True if each frame received is sent back.
    pub(super) replies: bool,
}

/// Results of an exchange.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Numbers of the received frames, in order.
    pub(super) numbers: Vec<u64>,
    /// Latencies from the kernel's stamp to user code, ns.
    pub(super) latencies: Vec<u64>,
    /// Times from the kernel's stamp on a frame to its stamp on the reply at the other end, ns.
    pub(super) reactions: Vec<u64>,
    /// Number of frames sent.
    pub(super) sent: usize,
    /// Stamps later than the instant at which they were read: the clock was stepped.
    pub(super) backwards: usize,
    /// Real-time settings refused.
    pub(super) refusals: Vec<String>,
}

/// Frame as seen by one side: its number, the kernel's stamp, and the time in user code, ns of
/// `CLOCK_REALTIME`.
type Seen = (u64, u64, u64);

/// Number of a reply, and the kernel's stamp on it.
type Reply = (u64, u64);

impl Exchange {
    /// Sends frames over `there`, receives them on `here` on a dedicated thread, and sends them
    /// back if required.
    ///
    /// # Errors
    /// A socket or a thread fails.
    pub(super) fn run(
        &self,
        here: StampedSocket,
        mut there: StampedSocket,
        stop: &AtomicBool,
    ) -> io::Result<Received> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiving = thread::Builder::new()
                .name("receiver".into())
                .spawn_scoped(scope, || self.receive(here, &over))?;
            let sending = thread::Builder::new()
                .name("sender".into())
                .spawn_scoped(scope, || self.send(&mut there, stop));
            let sent = sending.map(join);
            over.store(true, Ordering::Relaxed);
            let (seen, mut refusals) = join(receiving)?;
            let (replies, sent, more) = sent??;
            refusals.extend(more);
            refusals.sort();
            refusals.dedup();
            Ok(Received { sent, refusals, ..matched(&seen, &replies) })
        })
    }

    /// Receives frames until the exchange has ended and no more arrive: frames of this exchange,
    /// with both times.
    fn receive(
        &self,
        mut socket: StampedSocket,
        over: &AtomicBool,
    ) -> io::Result<(Vec<Seen>, Vec<String>)> {
        let granted = Granted::ask(&self.receiver);
        let mut seen: Vec<Seen> = vec![(u64::MAX, 0, 0); self.samples];
        std::hint::black_box(&mut seen).clear();
        let mut frame = [0; FRAME];
        loop {
            let arrival = socket.receive(&mut frame)?;
            let now = realtime();
            match arrival {
                Some(arrival) => {
                    let length = arrival.length.min(FRAME);
                    let Some((number, stamp)) = number(&frame[..length]).zip(arrival.stamp_ns) else {
                        continue;
                    };
                    // At most as many as requested, for which memory is allocated.
                    if seen.len() < self.samples {
                        seen.push((number, stamp, now));
                    }
                    if self.replies {
                        socket.send(&frame[..length])?;
                    }
                }
                None if over.load(Ordering::Relaxed) => return Ok((seen, granted.refusals().collect())),
                None => {}
            }
        }
    }

    /// Sends frames; returns the replies, the number sent, and the settings refused.
    fn send(
        &self,
        socket: &mut StampedSocket,
        stop: &AtomicBool,
    ) -> io::Result<(Vec<Reply>, usize, Vec<String>)> {
        let granted = Granted::ask(&self.sender);
        let mut replies = Vec::with_capacity(self.samples);
        let mut buffer = [0; FRAME];
        let mut pacer = Pacer::new(MonotonicClock, self.interval);
        let mut sent = 0;
        while sent < self.samples && !stop.load(Ordering::Relaxed) {
            pacer.wait();
            let length = build(&mut buffer, sent as u64);
            socket.send(&buffer[..length])?;
            sent += 1;
            if self.replies {
                await_reply(socket, sent as u64 - 1, &mut replies)?;
            }
        }
        Ok((replies, sent, granted.refusals().collect()))
    }
}

/// Receives replies up to the one with this number; gives up if none comes in time, since frames
/// may be lost.
fn await_reply(socket: &mut StampedSocket, wanted: u64, replies: &mut Vec<Reply>) -> io::Result<()> {
    let mut buffer = [0; FRAME];
    while let Some(arrival) = socket.receive(&mut buffer)? {
        let reply = number(&buffer[..arrival.length.min(FRAME)]).zip(arrival.stamp_ns);
        replies.extend(reply);
        if reply.is_some_and(|(number, _)| number == wanted) {
            break;
        }
    }
    Ok(())
}

/// Latencies of frames, and reaction times of frames with a reply.
fn matched(seen: &[Seen], replies: &[Reply]) -> Received {
    let mut received = Received::default();
    let mut replies = replies.iter().peekable();
    for &(number, stamp, read) in seen {
        let Some(latency) = read.checked_sub(stamp) else {
            received.backwards += 1;
            continue;
        };
        received.numbers.push(number);
        received.latencies.push(latency);
        // Numbers on both sides increase.
        while replies.next_if(|reply| reply.0 < number).is_some() {}
        let reply = replies.next_if(|reply| reply.0 == number);
        received.reactions.extend(reply.and_then(|reply| reply.1.checked_sub(stamp)));
    }
    received
}

/// Builds the shortest Ethernet frame: one datagram without effect on any SubDevice, with the
/// number as its data.
pub(crate) fn build(buffer: &mut [u8; FRAME], number: u64) -> usize {
    let mut builder = FrameBuilder::new(buffer, SOURCE);
    let mut data = [0; 16];
    data[..8].copy_from_slice(&MARK.to_le_bytes());
    data[8..].copy_from_slice(&number.to_le_bytes());
    let header = DatagramHeader::new(Command::Nop, 0, Address::Logical(0), data.len() as u16);
    // 16 bytes fit into 60.
    let _ = builder.push_data(header, &data);
    builder.finish()
}

/// Number of a frame of ours; `None` for any other.
pub(crate) fn number(frame: &[u8]) -> Option<u64> {
    let frame = Frame::parse(frame).ok()?;
    let datagram = frame.datagrams().next()?;
    let (mark, number) = datagram.data.split_at_checked(8)?;
    let word = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    (datagram.header.command == Command::Nop && word(mark)? == MARK).then(|| word(number))?
}

fn realtime() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Bytes of a frame.
pub(crate) const FRAME: usize = 60;
/// Locally administered address.
const SOURCE: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0x0B]);
/// Mark of our frames.
const MARK: u64 = 0x6F6E_6265_6174_3A69;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_carries_its_number_and_others_have_none() {
        let mut buffer = [0xEE; FRAME];
        let length = build(&mut buffer, 0x1234_5678_9ABC);
        assert_eq!((length, number(&buffer)), (FRAME, Some(0x1234_5678_9ABC)));
        assert_eq!(number(&[0; FRAME]), None);
        assert_eq!(number(&buffer[..30]), None);
        buffer[30] ^= 1;
        assert_eq!(number(&buffer), None, "another mark");
    }

    #[test]
    fn replies_match_by_number_and_lost_ones_have_no_reaction() {
        let seen = [(0, 100, 110), (1, 200, 190), (2, 300, 305), (4, 500, 507)];
        let received = matched(&seen, &[(0, 150), (1, 250), (3, 444), (4, 560)]);
        assert_eq!((received.numbers, received.latencies), (vec![0, 2, 4], vec![10, 5, 7]));
        assert_eq!((received.reactions, received.backwards), (vec![50, 60], 1));
    }
}
