//! Every frame of a link, into a pcapng file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ethercat::link::{Link, MAXIMUM_FRAME_LENGTH};
use rtrb::{Consumer, Producer, RingBuffer};

use super::pcapng::{Direction, Statistics, Writer};
use crate::clock::{Clock, MonotonicClock};
use crate::sys::{clock as system_clock, scheduling};

/// Bytes between the link and the writer: about a second of full frames at 4 kHz.
const RING: usize = 8 << 20;

/// Time stamp (8 bytes), length (2), direction (1), spare (1).
const HEADER: usize = 12;

/// How often the writer looks; the ring holds much more than comes in that time.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Records every frame sent and received, with nanosecond time stamps and its direction.
///
/// The link's thread only copies the frame into a bounded ring; another thread writes the file. If the
/// ring is full the frame is missing in the file and counted. Dropping the capture writes what is left.
#[derive(Debug)]
pub struct Capture<L> {
    link: L,
    ring: Producer<u8>,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<io::Result<u64>>>,
}

/// How a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Frames in the file.
    pub written: u64,
    /// Frames that found the ring full and are missing in the file.
    pub dropped: u64,
}

impl<L: Link> Capture<L> {
    /// Captures into a new file at `path`; `interface` is the name the file gives the link.
    ///
    /// # Errors
    /// What the operating system says about the file.
    pub fn create(link: L, path: &Path, interface: &str) -> io::Result<Self> {
        Self::to_writer(link, BufWriter::with_capacity(1 << 20, File::create(path)?), interface)
    }

    /// Captures into anything that can be written to.
    ///
    /// # Errors
    /// What `output` says about the first blocks.
    pub fn to_writer(link: L, output: impl Write + Send + 'static, interface: &str) -> io::Result<Self> {
        Self::with_capacity(link, output, interface, RING)
    }

    fn with_capacity(
        link: L,
        output: impl Write + Send + 'static,
        interface: &str,
        capacity: usize,
    ) -> io::Result<Self> {
        let mut file = Writer::new(output, interface)?;
        file.flush()?;
        let (ring, frames) = RingBuffer::new(capacity);
        let shared = Arc::new(Shared::default());
        let drain = Drain { file, frames, shared: Arc::clone(&shared) };
        let writer = thread::Builder::new().name("capture".into()).spawn(move || drain.run())?;
        Ok(Self { link, ring, shared, writer: Some(writer) })
    }

    /// Frames missing in the file so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Writes what is left, closes the file and says how it went. Not for the real-time path.
    ///
    /// # Errors
    /// The first error of writing the file; frames after it are missing.
    pub fn finish(mut self) -> io::Result<CaptureSummary> {
        let written = self.close()?;
        Ok(CaptureSummary { written, dropped: self.dropped() })
    }
}

impl<L> Capture<L> {
    fn record(&mut self, direction: Direction, frame: &[u8]) {
        let length = frame.len().min(MAXIMUM_FRAME_LENGTH);
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MonotonicClock.now().as_nanos().to_le_bytes());
        header[8..10].copy_from_slice(&(length as u16).to_le_bytes());
        header[10] = direction as u8;
        let fits = self.ring.slots() >= HEADER + length
            && self.ring.push_entire_slice(&header).is_ok()
            && self.ring.push_entire_slice(&frame[..length]).is_ok();
        if !fits {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn close(&mut self) -> io::Result<u64> {
        // Release: partner of the writer's Acquire; all frames are in the ring before it sees the flag.
        self.shared.stop.store(true, Ordering::Release);
        let Some(writer) = self.writer.take() else { return Ok(0) };
        writer.thread().unpark();
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the capture's writer panicked")))
    }
}

impl<L> Drop for Capture<L> {
    fn drop(&mut self) {
        // `finish` reports errors; here nobody listens.
        let _ = self.close();
    }
}

impl<L: Link> Link for Capture<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        // Before it is sent: a fast reply must not carry an earlier time than its request.
        self.record(Direction::Outbound, frame);
        self.link.transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let received = self.link.receive(buffer, timeout)?;
        if let Some(length) = received {
            self.record(Direction::Inbound, &buffer[..length]);
        }
        Ok(received)
    }
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    dropped: AtomicU64,
}

/// The writer's side of the ring.
struct Drain<W> {
    file: Writer<W>,
    frames: Consumer<u8>,
    shared: Arc<Shared>,
}

impl<W: Write> Drain<W> {
    fn run(mut self) -> io::Result<u64> {
        // The creating thread may already be a real-time one; this must not inherit that.
        let _ = scheduling::set_ordinary();
        // Ring times are monotonic; files count from 1970.
        let epoch = system_clock::realtime_nanos().wrapping_sub(system_clock::monotonic().as_nanos());
        let start = system_clock::realtime_nanos();
        let mut written = 0;
        loop {
            // Acquire: partner of the Release in `close`. Read before draining, so that frames stored
            // before the flag are still found.
            let last = self.shared.stop.load(Ordering::Acquire);
            let before = written;
            while self.write_one(epoch)? {
                written += 1;
            }
            if last {
                break;
            }
            if written > before {
                // A process killed at any time leaves a readable file.
                self.file.flush()?;
            }
            thread::park_timeout(LOOK_EVERY);
        }
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        let end = system_clock::realtime_nanos();
        self.file.statistics(&Statistics { start, end, received: written + dropped, dropped })?;
        self.file.flush()?;
        Ok(written)
    }

    fn write_one(&mut self, epoch: u64) -> io::Result<bool> {
        let mut header = [0; HEADER];
        let mut frame = [0; MAXIMUM_FRAME_LENGTH];
        let length = match self.frames.read_chunk(HEADER) {
            Ok(chunk) => {
                // Not taken out yet: the frame behind it may still be on its way into the ring.
                let (first, second) = chunk.as_slices();
                header[..first.len()].copy_from_slice(first);
                header[first.len()..].copy_from_slice(second);
                usize::from(u16::from_le_bytes([header[8], header[9]]))
            }
            Err(_) => return Ok(false),
        };
        if self.frames.slots() < HEADER + length {
            return Ok(false);
        }
        let complete = self.frames.pop_entire_slice(&mut header).is_ok()
            && self.frames.pop_entire_slice(&mut frame[..length]).is_ok();
        debug_assert!(complete, "the ring had {} bytes", HEADER + length);
        let time = u64::from_le_bytes(header[..8].try_into().unwrap_or_default()).wrapping_add(epoch);
        let direction =
            if header[10] == Direction::Inbound as u8 { Direction::Inbound } else { Direction::Outbound };
        self.file.packet(time, direction, &frame[..length])?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
    use pcap_file::pcapng::{Block, PcapNgReader};

    /// Gives every frame back, reversed.
    #[derive(Default)]
    struct Mirror(VecDeque<Vec<u8>>);

    impl Link for Mirror {
        fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
            self.0.push_back(frame.iter().rev().copied().collect());
            Ok(())
        }

        fn receive(&mut self, buffer: &mut [u8], _: Duration) -> io::Result<Option<usize>> {
            Ok(self.0.pop_front().map(|frame| {
                buffer[..frame.len()].copy_from_slice(&frame);
                frame.len()
            }))
        }
    }

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Time stamp, direction flags and bytes.
    type Packet = (Duration, u32, Vec<u8>);

    /// The frames in the file, then received and dropped of the statistics.
    fn read_back(sink: &Sink) -> (Vec<Packet>, u64, u64) {
        let bytes = sink.0.lock().unwrap().clone();
        let mut reader = PcapNgReader::new(bytes.as_slice()).unwrap();
        let (mut frames, mut statistics) = (Vec::new(), None);
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    let flags = packet.options.iter().find_map(|option| match option {
                        EnhancedPacketOption::Flags(flags) => Some(*flags),
                        _ => None,
                    });
                    frames.push((packet.timestamp, flags.unwrap(), packet.data.to_vec()));
                }
                Block::InterfaceStatistics(block) => {
                    let (mut received, mut dropped) = (None, None);
                    for option in &block.options {
                        match option {
                            InterfaceStatisticsOption::IsbIfRecv(count) => received = Some(*count),
                            InterfaceStatisticsOption::IsbIfDrop(count) => dropped = Some(*count),
                            _ => {}
                        }
                    }
                    statistics = Some((received.unwrap(), dropped.unwrap()));
                }
                Block::InterfaceDescription(_) => {}
                other => panic!("a block nobody wrote: {other:?}"),
            }
        }
        let (received, dropped) = statistics.expect("no statistics block");
        (frames, received, dropped)
    }

    #[test]
    fn frames_are_read_back_with_their_direction_and_order_of_time() {
        let sink = Sink::default();
        let mut capture = Capture::to_writer(Mirror::default(), sink.clone(), "test0").unwrap();
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        for length in 60..160_u8 {
            let frame: Vec<u8> = (0..length).collect();
            capture.transmit(&frame).unwrap();
            assert_eq!(capture.receive(&mut buffer, Duration::ZERO).unwrap(), Some(frame.len()));
        }
        assert_eq!(capture.receive(&mut buffer, Duration::ZERO).unwrap(), None);
        assert_eq!(capture.finish().unwrap(), CaptureSummary { written: 200, dropped: 0 });

        let (frames, received, dropped) = read_back(&sink);
        assert_eq!((frames.len(), received, dropped), (200, 200, 0));
        assert!(frames.is_sorted_by_key(|(time, ..)| *time));
        for (pair, length) in frames.chunks(2).zip(60..160_u8) {
            let sent: Vec<u8> = (0..length).collect();
            assert_eq!((pair[0].1, &pair[0].2), (2, &sent));
            assert_eq!((pair[1].1, pair[1].2.iter().rev().copied().collect::<Vec<_>>()), (1, sent));
        }
    }

    #[test]
    fn a_full_ring_drops_and_counts_and_the_file_says_so() {
        let sink = Sink::default();
        // The writer cannot take anything out while the test holds the file.
        let mut capture = {
            let capture = Capture::with_capacity(Mirror::default(), sink.clone(), "test0", 1000);
            capture.unwrap()
        };
        let held = sink.0.lock().unwrap();
        for _ in 0..100 {
            capture.transmit(&[7; 60]).unwrap();
        }
        drop(held);
        let summary = capture.finish().unwrap();
        // 1000 bytes hold 13 frames of 72; the writer may have taken one out before it was held up.
        assert!((13..=14).contains(&summary.written), "{summary:?}");
        assert_eq!(summary.written + summary.dropped, 100);
        let (frames, received, dropped) = read_back(&sink);
        assert_eq!((frames.len() as u64, received, dropped), (summary.written, 100, summary.dropped));
    }

    #[test]
    fn a_file_that_cannot_be_written_never_disturbs_the_link() {
        struct Full(u32);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 2 { Err(io::Error::from_raw_os_error(libc::ENOSPC)) } else { Ok(bytes.len()) }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut capture = Capture::to_writer(Mirror::default(), Full(0), "test0").unwrap();
        for _ in 0..10 {
            capture.transmit(&[7; 60]).unwrap();
        }
        assert_eq!(capture.finish().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
}
