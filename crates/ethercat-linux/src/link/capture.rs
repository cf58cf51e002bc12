//! Every frame of a link, into a pcapng file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::redundancy::Ring;
use rtrb::{Consumer, Producer, RingBuffer};
use thiserror::Error;

use super::Link;
use super::pcapng::{Direction, SECTION_HEADER, Statistics, Writer};
use rt::clock::realtime_nanos;
use rt::clock::{Clock, MonotonicClock};
use rt::output::{OutputThread, Taken, Unfinished};

/// Bytes between the link and the writer: about a second of full frames at 4 kHz.
const RING: usize = 8 << 20;

/// Time stamp (8 bytes), length (2), direction (1), spare (1).
const HEADER: usize = 12;

/// Interval of the writer's looks; the ring holds much more than comes in that time.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Frames between two checks of the file.
const AT_ONCE: u64 = 64;

/// Time an output may take to open. One that takes longer opens meanwhile: frames wait in the ring.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time an output may take nothing at the end before it is given up.
const LAST_TIMEOUT: Duration = Duration::from_secs(3);

/// Records every frame sent and received, with nanosecond time stamps and its direction.
///
/// The link's thread only copies the frame into a bounded ring; another thread opens and writes the
/// file. If the ring is full the frame is missing in the file and counted. Dropping the capture
/// writes the remaining frames, as long as the file takes them.
#[derive(Debug)]
pub struct Capture<L> {
    link: L,
    ring: Producer<u8>,
    shared: Arc<CaptureState>,
    /// Frames that came by.
    seen: u64,
    writer: Option<OutputThread<io::Result<()>>>,
}

/// A capture that is whole, but for frames that came too fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Frames in the file.
    pub written: u64,
    /// Frames that found the ring full and are missing in the file.
    pub dropped: u64,
}

/// An incomplete capture: the frames in the file are complete.
#[derive(Debug, Error)]
#[error("{cause}; {written} frames are in it, {missing} are not")]
#[non_exhaustive]
pub struct CaptureError {
    /// The operating system's error about the file.
    pub cause: io::Error,
    /// Frames in the file.
    pub written: u64,
    /// All others.
    pub missing: u64,
}

impl<L: Link> Capture<L> {
    /// Captures into a new file at `path`, or replaces another capture; `interface` is the name of
    /// the link in the file.
    ///
    /// # Errors
    /// The operating system's error about the file, if it comes within a second: a FIFO without a
    /// reader, or a file server that is gone, delays no cycle, and is reported at the end.
    pub fn create(link: L, path: &Path, interface: &str) -> io::Result<Self> {
        let path = path.to_owned();
        let open = move || Ok(BufWriter::with_capacity(1 << 18, replace(&path)?));
        Self::open(link, open, interface, RING)
    }

    /// Captures into anything that can be written to.
    ///
    /// # Errors
    /// The error of `output` on the first blocks.
    pub fn to_writer(link: L, output: impl Write + Send + 'static, interface: &str) -> io::Result<Self> {
        Self::open(link, || Ok(output), interface, RING)
    }

    fn open<W: Write>(
        link: L,
        open: impl FnOnce() -> io::Result<W> + Send + 'static,
        interface: &str,
        capacity: usize,
    ) -> io::Result<Self> {
        let (ring, frames) = RingBuffer::new(capacity);
        let shared = Arc::new(CaptureState::default());
        let drain = Drain { frames, shared: Arc::clone(&shared) };
        let (tell, opened) = mpsc::sync_channel(1);
        let interface = interface.to_owned();
        let work = move |taken: &Taken| drain.run(begin(open, &interface, &tell), taken);
        let writer = OutputThread::start("capture", work)?;
        match opened.recv_timeout(OPEN_TIMEOUT) {
            Ok(outcome) => outcome?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(panicked()),
        }
        Ok(Self { link, ring, shared, seen: 0, writer: Some(writer) })
    }

    /// Frames missing in the file so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Writes the remaining frames, closes the file and returns the result. Not for the real-time
    /// path.
    ///
    /// # Errors
    /// The first error of writing the file, or a file that takes no more data; frames after it are
    /// missing.
    pub fn finish(mut self) -> Result<CaptureSummary, CaptureError> {
        let (closed, written) = self.close();
        match closed {
            Ok(()) => Ok(CaptureSummary { written, dropped: self.dropped() }),
            Err(cause) => Err(CaptureError { cause, written, missing: self.seen.saturating_sub(written) }),
        }
    }
}

/// Opens the output and writes its first blocks; the maker of the capture gets the first failure.
fn begin<W: Write>(
    open: impl FnOnce() -> io::Result<W>,
    interface: &str,
    tell: &SyncSender<io::Result<()>>,
) -> io::Result<Writer<W>> {
    let begun = open().and_then(|output| Writer::new(output, interface)).and_then(|mut file| {
        file.flush()?;
        Ok(file)
    });
    match begun {
        Ok(file) => {
            let _ = tell.send(Ok(()));
            Ok(file)
        }
        Err(error) => match tell.send(Err(error)) {
            Ok(()) => Err(io::Error::other("it could not be opened")),
            // The run has begun already: the error is reported at its end.
            Err(mpsc::SendError(error)) => Err(error.err().unwrap_or_else(panicked)),
        },
    }
}

fn panicked() -> io::Error {
    io::Error::other("the capture's writer panicked")
}

impl<L> Capture<L> {
    fn record(&mut self, direction: Direction, frame: &[u8]) {
        self.seen += 1;
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

    /// Outcome of writing, and the number of frames written.
    fn close(&mut self) -> (io::Result<()>, u64) {
        // Release: pairs with the writer's Acquire; all frames are in the ring before it sees the
        // flag.
        self.shared.stop.store(true, Ordering::Release);
        let Some(writer) = self.writer.take() else { return (Ok(()), 0) };
        let result = writer.finish(LAST_TIMEOUT).unwrap_or_else(|why| {
            Err(match why {
                Unfinished::Hangs => io::Error::new(io::ErrorKind::TimedOut, "it takes nothing any more"),
                Unfinished::Panicked => panicked(),
            })
        });
        (result, writer.taken())
    }
}

impl<L> Drop for Capture<L> {
    fn drop(&mut self) {
        // `finish` reports errors; on drop there is no caller to report to.
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

    fn ring(&self) -> Option<Ring> {
        self.link.ring()
    }

    fn take_simulation_time(&mut self) -> Duration {
        self.link.take_simulation_time()
    }
}

#[derive(Debug, Default)]
struct CaptureState {
    stop: AtomicBool,
    dropped: AtomicU64,
}

/// The writer's side of the ring.
struct Drain {
    frames: Consumer<u8>,
    shared: Arc<CaptureState>,
}

impl Drain {
    fn run<W: Write>(mut self, file: io::Result<Writer<W>>, taken: &Taken) -> io::Result<()> {
        let mut file = file?;
        // Ring times are monotonic; files count from 1970.
        let epoch = realtime_nanos().wrapping_sub(MonotonicClock.now().as_nanos());
        let start = realtime_nanos();
        loop {
            // Acquire: pairs with the Release in `close`. Read before draining, so that frames
            // stored before the flag are still found.
            let last = self.shared.stop.load(Ordering::Acquire);
            let written = self.write_some(&mut file, epoch)?;
            // Also for a process killed at any time, which leaves a readable file.
            if written > 0 {
                file.flush()?;
                taken.add(written);
            } else if last {
                break;
            } else {
                thread::sleep(LOOK_EVERY);
            }
        }
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        let end = realtime_nanos();
        file.statistics(&Statistics { start, end, received: taken.count() + dropped, dropped })?;
        file.flush()
    }

    /// Writes waiting frames, in parts small enough to see the progress of a slow file.
    fn write_some<W: Write>(&mut self, file: &mut Writer<W>, epoch: u64) -> io::Result<u64> {
        let mut written = 0;
        while written < AT_ONCE && self.write_one(file, epoch)? {
            written += 1;
        }
        Ok(written)
    }

    fn write_one<W: Write>(&mut self, file: &mut Writer<W>, epoch: u64) -> io::Result<bool> {
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
        file.packet(time, direction, &frame[..length])?;
        Ok(true)
    }
}

/// Opens the file for a capture: a new one, or one that replaces a capture.
fn replace(path: &Path) -> io::Result<File> {
    // Others are not read: a FIFO is waited for until it has a reader.
    let is_file = fs::metadata(path).is_ok_and(|it| it.is_file());
    let mut file = File::options().read(is_file).write(true).create(true).truncate(false).open(path)?;
    if is_file {
        let mut begin = Vec::new();
        Read::by_ref(&mut file).take(SECTION_HEADER.len() as u64).read_to_end(&mut begin)?;
        if !begin.is_empty() && begin != SECTION_HEADER {
            return Err(io::Error::other("there is a file that is no capture"));
        }
        file.rewind()?;
        file.set_len(0)?;
    }
    Ok(file)
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
    #[derive(Debug, Default)]
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
            let output = sink.clone();
            Capture::open(Mirror::default(), || Ok(output), "test0", 1000).unwrap()
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
        let error = capture.finish().unwrap_err();
        assert_eq!(error.cause.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(error.written + error.missing, 10);
    }

    #[test]
    fn blocked_output_is_given_up_with_its_missing_frames() {
        struct Hangs(mpsc::Receiver<()>, u32);
        impl Write for Hangs {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.1 += 1;
                // From the first frame until the test ends.
                if self.1 > 2 {
                    let _ = self.0.recv();
                }
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (_hold, held) = mpsc::channel();
        let mut capture = Capture::to_writer(Mirror::default(), Hangs(held, 0), "test0").unwrap();
        for _ in 0..10 {
            capture.transmit(&[7; 60]).unwrap();
        }
        let error = capture.finish().unwrap_err();
        assert_eq!((error.cause.kind(), error.written, error.missing), (io::ErrorKind::TimedOut, 0, 10));
    }

    #[test]
    fn fifo_without_a_reader_delays_no_cycle() {
        let path = std::env::temp_dir().join(format!("onbeat-capture-fifo-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let mut capture = Capture::create(Mirror::default(), &path, "test0").unwrap();
        capture.transmit(&[7; 60]).unwrap();
        let error = capture.finish().unwrap_err();
        fs::remove_file(&path).unwrap();
        assert_eq!((error.cause.kind(), error.written, error.missing), (io::ErrorKind::TimedOut, 0, 1));
    }

    // feature(program): `--capture` replaces captures and no other file
    #[test]
    fn capture_replaces_only_a_capture() {
        let path = std::env::temp_dir().join(format!("onbeat-capture-{}", std::process::id()));
        fs::write(&path, "precious").unwrap();
        let refused = Capture::create(Mirror::default(), &path, "eth0").unwrap_err();
        assert_eq!(refused.to_string(), "there is a file that is no capture");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        let mut longer = SECTION_HEADER.to_vec();
        longer.resize(8192, 7);
        for before in [&[], &longer[..]] {
            fs::write(&path, before).unwrap();
            Capture::create(Mirror::default(), &path, "eth0").unwrap().finish().unwrap();
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.starts_with(&SECTION_HEADER) && bytes.len() < 8192, "{}", bytes.len());
        }
        fs::remove_file(&path).unwrap();
    }
}
