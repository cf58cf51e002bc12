//! `onbeat simulate --record`: every process data frame that comes, with the kernel's time stamp.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::stop::StopHandle;
use ethercat::pdo::PdoMapping;
use ethercat::sii::Image;
use ethercat::wire::Command;
use ethercat::wire::frame::places;
use ethercat_linux::serve::{Arrival, Served};
use machine::conditions;
use machine::usage::Usage;
use record::recording::Header;
use record::{Facts, RecordingWriter};
use robot::{ApplicationKind, RobotConfig};
use rt::clock::{Clock, MonotonicClock};
use rt::output::{OutputThread, Taken, Unfinished};
use rtrb::{Consumer, Producer, RingBuffer};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde_json::{Value, json};
use simulator::Segment;
use simulator::application::sii::pdos;
use types::signal::Flow;

use super::probe::{OutputBits, OutputProbe};
use crate::failure::Failure;
use crate::output::LAST_TIMEOUT;

/// Subject of a recording of arrivals.
const WHAT: &str = "bus";

/// Columns of the recording; -1 where a frame has no value.
///
/// | column | meaning |
/// |---|---|
/// | `frame` | number of the frame, from 0; frames without process data leave gaps |
/// | `arrival_ns` | kernel receive time stamp, CLOCK_REALTIME |
/// | `bytes` | length without the frame check sequence |
/// | `generation` | Onbeat's number of the frame, modulo 2^32; other MainDevices have none |
/// | `logical_address` | of the first logical datagram: the lowest in a recording begins a cycle |
/// | `outputs` | watched outputs while in Op; bit 0, of the cycle number, changes every cycle |
const COLUMNS: [&str; 6] = ["frame", "arrival_ns", "bytes", "generation", "logical_address", "outputs"];

/// Time without a frame after which rows in memory are written.
const IDLE: Duration = Duration::from_secs(1);

type Row = [i64; COLUMNS.len()];

/// Rows between the serving thread and the writer: sixteen seconds of 4 kHz and more.
const ROWS: usize = 1 << 16;

/// Interval of the writer's looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Takes rows from the thread that serves the segment, which it never holds up; another thread
/// writes them.
pub(super) struct FrameRecorder {
    path: PathBuf,
    ring: Producer<Row>,
    writer: OutputThread<io::Result<()>>,
    /// Facts known only at the end.
    end: Sender<Facts>,
    probe: Option<OutputProbe>,
    rows: u64,
    dropped: u64,
    kernel_dropped: u32,
    usage: Option<Usage>,
    offset_ns: i128,
}

impl FrameRecorder {
    /// Begins a recording of the frames for `robot` on `interface`. Called before the thread gets
    /// its priority, which the writer must not inherit. A file that fails raises `stop`.
    pub(super) fn create(
        path: &Path,
        robot: &RobotConfig,
        segment: &Segment,
        interface: &str,
        stop: StopHandle,
    ) -> Result<Self, Failure> {
        let fail = |error: io::Error| cannot_write(path, &error);
        let watched = watched_outputs(robot, segment)?;
        let header = Header {
            what: WHAT.into(),
            columns: COLUMNS.map(str::to_owned).into(),
            facts: facts(robot, interface, watched.as_ref()),
        };
        let file = BufWriter::with_capacity(1 << 16, create_at_once(path).map_err(fail)?);
        let mut file = RecordingWriter::begin(file, &header).map_err(fail)?;
        file.flush().map_err(fail)?;
        let (ring, rows) = RingBuffer::new(ROWS);
        let (end, bottom) = mpsc::channel();
        let writer = OutputThread::start("record", move |taken| {
            let result = write(file, rows, &bottom, taken);
            if result.is_err() {
                // SubDevices without their record are useless: end with an error.
                stop.stop();
            }
            result
        });
        Ok(Self {
            path: path.to_owned(),
            ring,
            writer: writer.map_err(fail)?,
            end,
            probe: watched.map(|watched| OutputProbe::new(watched.bits)),
            rows: 0,
            dropped: 0,
            kernel_dropped: 0,
            usage: Usage::now().ok(),
            offset_ns: clock_offset_ns(),
        })
    }

    /// A frame has come and gone. Neither allocates nor waits.
    pub(super) fn watch(&mut self, segment: &Segment, arrival: Arrival, frame: &[u8]) {
        self.kernel_dropped = arrival.dropped;
        let Some(logical_address) = logical_address(frame) else { return };
        let outputs = self.probe.as_mut().and_then(|probe| probe.levels(segment, frame));
        let row = [
            arrival.frame as i64,
            arrival.stamp_ns as i64,
            frame.len() as i64,
            generation(frame).map_or(-1, i64::from),
            logical_address.into(),
            outputs.map_or(-1, |levels| levels as i64),
        ];
        match self.ring.push(row) {
            Ok(()) => self.rows += 1,
            Err(_) => self.dropped += 1,
        }
    }

    /// Writes what is left and how it went.
    pub(super) fn finish(self, served: Served) -> Result<String, Failure> {
        let Self {
            path, ring, writer, end: bottom, rows, dropped, kernel_dropped, usage, offset_ns, ..
        } = self;
        // The writer ends when the ring is empty and has no producer any more.
        drop(ring);
        let fail = |error: io::Error| cannot_write(&path, &error);
        let moved_ns = clock_offset_ns() - offset_ns;
        let mut end = match json!({
            "frames_received": served.received,
            "frames_returned": served.returned,
            "frames_refused": served.refused,
            "rows_dropped": dropped,
            "kernel_dropped": kernel_dropped,
            // CLOCK_REALTIME against CLOCK_MONOTONIC: how far it was set or leapt (slewing moves
            // both).
            "clock_moved_ns": i64::try_from(moved_ns).unwrap_or(i64::MAX),
        }) {
            Value::Object(end) => end,
            _ => Facts::new(),
        };
        if let (Some(before), Ok(now)) = (usage, Usage::now()) {
            end.insert("machine".into(), serde_json::to_value(now.since(&before))?);
        }
        // A writer that is gone has its failure to tell.
        let _ = bottom.send(end);
        match writer.finish(LAST_TIMEOUT) {
            Ok(outcome) => outcome.map_err(fail)?,
            Err(Unfinished::Panicked) => return Err(Failure::new("the recording's writer panicked")),
            Err(Unfinished::Hangs) => {
                return Err(Failure::new(format!(
                    "{}: it takes nothing any more; {} of {rows} process data frames are in it: record elsewhere",
                    path.display(),
                    writer.taken()
                )));
            }
        }
        let lost = match dropped + u64::from(kernel_dropped) {
            0 => String::new(),
            lost => format!("; {lost} more came too fast to be recorded"),
        };
        Ok(format!("{rows} process data frames in {}{lost}", path.display()))
    }
}

/// Makes the file, or empties an earlier recording. A FIFO without a reader is refused: nothing
/// waits for a reader.
fn create_at_once(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let is_new = !std::fs::metadata(path).is_ok_and(|it| it.is_file());
    let mut options = OpenOptions::new();
    options.read(!is_new).write(true).create(is_new).truncate(false).custom_flags(nonblocking);
    let mut file = options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => io::Error::new(error.kind(), "a FIFO without a reader"),
        _ => error,
    })?;
    // Not every file system has locks.
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    if file.metadata()?.is_file() && locked == Err(Errno::WOULDBLOCK) {
        return Err(io::Error::other("another program writes it"));
    }
    if !is_new {
        record::recording::check_replaceable(&mut file)?;
        file.set_len(0)?;
    }
    // From here on its own thread waits.
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// Empties the ring into the file until it is not filled any more, then writes the end.
fn write<W: Write>(
    mut file: RecordingWriter<W>,
    mut rows: Consumer<Row>,
    end: &Receiver<Facts>,
    taken: &Taken,
) -> io::Result<()> {
    let (mut flushed, mut idle) = (0, Duration::ZERO);
    loop {
        // Asked before emptying: what was stored before it is found below.
        let last = rows.is_abandoned();
        let mut written = 0;
        while let Ok(row) = rows.pop() {
            file.row(&row)?;
            written += 1;
        }
        idle = if written > 0 { Duration::ZERO } else { idle + LOOK_EVERY };
        // A process killed at any time leaves what came up to a second before.
        if idle > IDLE && !file.is_flushed() {
            file.flush()?;
        }
        let now = file.flushed_rows();
        taken.add(now - std::mem::replace(&mut flushed, now));
        if last {
            return end.recv().map_or(Ok(()), |end| file.finish(&end).map(drop));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Outputs that are recorded.
struct Watched {
    /// Name of their signal, or of their SubDevice.
    name: String,
    bits: OutputBits,
    number_of_cycle: bool,
}

/// The signal with the number of the cycle, or else the first digital outputs.
fn watched_outputs(robot: &RobotConfig, segment: &Segment) -> Result<Option<Watched>, Failure> {
    let mappings: Vec<Option<PdoMapping>> = robot
        .bus
        .sub_devices
        .iter()
        .zip(segment.sub_devices())
        .map(|(described, simulated)| match described.explicit_mapping() {
            Some(mapping) => Some(mapping.clone()),
            None => Image::parse(simulated.sii()).ok().map(|image| pdos(&image)),
        })
        .collect();
    let signals = robot.signals(|position| mappings.get(position)?.as_ref())?;
    let number = signals.into_iter().find(|signal| signal.flow == Flow::Cycle).map(|signal| Watched {
        bits: OutputBits {
            position: signal.sub_device,
            first: u32::try_from(signal.bit_offset).unwrap_or(u32::MAX),
            // More than are needed to see what is missing.
            count: u32::from(signal.value_type.bits()).min(32),
        },
        name: signal.name,
        number_of_cycle: true,
    });
    let mut others = robot.bus.sub_devices.iter().enumerate().filter_map(|(position, it)| {
        let simulation =
            it.simulation.as_ref().filter(|it| it.application == ApplicationKind::DigitalOutputs)?;
        let bits = OutputBits { position, first: 0, count: u32::from(simulation.channels).min(63) };
        Some(Watched { name: it.name.clone(), bits, number_of_cycle: false })
    });
    Ok(number.or_else(|| others.next()))
}

fn facts(robot: &RobotConfig, interface: &str, watched: Option<&Watched>) -> Facts {
    let mut facts = conditions::facts(&conditions::read().of_robot(&robot.name, robot.sha256()));
    let mut add = |name: &str, value: Value| facts.insert(name.into(), value);
    add("sub_devices", robot.bus.sub_devices.len().into());
    add("period_ns", types::time::nanoseconds(robot.cycle.period).into());
    add("interface", interface.into());
    add("stamps", "kernel receive time stamps (SO_TIMESTAMPNS), CLOCK_REALTIME".into());
    add("outputs", watched.map(|it| it.name.as_str()).into());
    // Bits of `outputs` that count the cycles; 0 if they do something else.
    add("cycle_number_bits", watched.filter(|it| it.number_of_cycle).map_or(0, |it| it.bits.count).into());
    facts
}

/// Address of the first logical datagram; `None` for frames without process data.
fn logical_address(frame: &[u8]) -> Option<u32> {
    places(frame).find(|place| place.header.command.is_logical()).map(|place| place.header.address)
}

/// The number that Onbeat's MainDevice gives every frame, in a NOP datagram of four bytes before
/// all others.
fn generation(frame: &[u8]) -> Option<u32> {
    let first = places(frame).next()?;
    let is_number = first.header.command == Command::Nop && first.header.length == 4;
    let data = frame.get(first.data()).filter(|_| is_number)?;
    data.try_into().map(u32::from_le_bytes).ok()
}

/// Offset of CLOCK_REALTIME from CLOCK_MONOTONIC, ns.
fn clock_offset_ns() -> i128 {
    let realtime = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    realtime as i128 - i128::from(MonotonicClock.now().as_nanos())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!(
        "{}: the recording cannot be written ({error}), expected a place for a new file: choose another path",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // feature(measure): `simulate --record` replaces no file but a recording of Onbeat
    #[test]
    fn only_a_recording_is_replaced() {
        let path = std::env::temp_dir().join(format!("onbeat-observed-{}", std::process::id()));
        let header = Header { what: WHAT.into(), columns: Vec::new(), facts: Facts::new() };
        let mut own = Vec::new();
        RecordingWriter::begin(&mut own, &header).unwrap().finish(&Facts::new()).unwrap();
        for (content, is_replaced) in [(&b"my thesis"[..], false), (b"", true), (&own, true)] {
            fs::write(&path, content).unwrap();
            let opened = create_at_once(&path);
            assert_eq!(opened.is_ok(), is_replaced, "{content:?}: {opened:?}");
            let left = fs::read(&path).unwrap();
            assert_eq!(left, if is_replaced { &[] } else { content });
        }
        fs::write(&path, b"my thesis").unwrap();
        let why = create_at_once(&path).unwrap_err().to_string();
        assert_eq!(why, "there is a file that is no recording");
        // Another program writes its recording.
        fs::write(&path, &own).unwrap();
        let other = File::open(&path).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        assert_eq!(create_at_once(&path).unwrap_err().to_string(), "another program writes it");
        assert_eq!(fs::read(&path).unwrap(), own);
        fs::remove_file(&path).unwrap();
    }
}
