//! Driver of a SCIP 2.0 laser range finder on a serial port.

use std::path::PathBuf;
use std::time::Duration;

use ipc::sensor::MOST_POINTS;
use rt::clock::now_ns;

use super::serial::Serial;
use crate::pair::{DeviceError, Driver, Poke, Remarks};
use crate::scip::session::TIMEOUT;
use crate::scip::{Event, Parameters, Session};
use crate::task::range_finder::Sample;

/// Driver of a laser range finder.
#[derive(Debug)]
pub struct RangeFinder {
    port: PathBuf,
    baud: u32,
    talk: Option<(Serial, Session)>,
    parameters: Parameters,
    remarks: Remarks,
}

/// Default speed of such sensors, bit/s; sensors on USB ignore it.
pub const BAUD: u32 = 115_200;

impl RangeFinder {
    /// Creates a driver on this port.
    #[must_use]
    pub fn new(port: impl Into<PathBuf>, baud: u32) -> Self {
        Self {
            port: port.into(),
            baud,
            talk: None,
            parameters: Parameters::default(),
            remarks: Remarks::default(),
        }
    }

    /// Runs the session for `timeout`, or until it has an event.
    fn talk(&mut self, timeout: Duration) -> Result<Option<Event>, DeviceError> {
        let Some((port, session)) = &mut self.talk else {
            return Err(DeviceError("it is not open".into()));
        };
        let begin = now_ns();
        let end = begin + timeout.as_nanos() as u64;
        let mut bytes = [0; 4_096];
        loop {
            if let Some(event) = session.poll_event() {
                return Ok(Some(event));
            }
            if let Some(line) = session.poll_transmit() {
                port.write_within(&line, TIMEOUT).map_err(|error| DeviceError::new("writing", error))?;
            }
            let now = now_ns();
            let due = session.poll_timeout().unwrap_or(end);
            if due <= now {
                session.handle_timeout(now);
                continue;
            }
            if now >= end {
                return Ok(None);
            }
            let wait = Duration::from_nanos(due.min(end) - now);
            let read =
                port.read_within(&mut bytes, wait).map_err(|error| DeviceError::new("reading", error))?;
            if read > 0 {
                session.handle_bytes(&bytes[..read], now_ns());
            }
        }
    }
}

impl Driver for RangeFinder {
    type Request = Poke;
    type Sample = Sample;
    const ASKED: bool = false;

    fn device(&self) -> String {
        self.port.display().to_string()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        let port =
            Serial::open(&self.port, self.baud).map_err(|error| DeviceError::new("opening", error))?;
        self.talk = Some((port, Session::new(now_ns())));
        // Every state of a session has its own timeout.
        loop {
            match self.talk(TIMEOUT)? {
                Some(Event::Ready(told)) => {
                    let (version, parameters) = *told;
                    let (first, last) = (parameters.first, parameters.last);
                    let found = format!(
                        "{} {}, firmware {}, steps {first} to {last} of {}, {} to {} mm",
                        version.product,
                        version.serial,
                        version.firmware,
                        parameters.steps_per_turn,
                        parameters.shortest,
                        parameters.longest
                    );
                    self.parameters = parameters;
                    return Ok(found);
                }
                Some(Event::Failed(error)) => return Err(DeviceError(error.to_string())),
                Some(Event::Wrong(_) | Event::Scan(_)) | None => {}
            }
        }
    }

    fn exchange(
        &mut self,
        _request: &Poke,
        sample: &mut Sample,
        timeout: Duration,
    ) -> Result<bool, DeviceError> {
        match self.talk(timeout)? {
            Some(Event::Scan(scan)) => {
                let Parameters { steps_per_turn, front, shortest, longest, turns_per_minute, .. } =
                    self.parameters;
                sample.stamp_ns = scan.stamp_ns;
                sample.turn_us = 60_000_000 / turns_per_minute.max(1);
                sample.steps_per_turn = steps_per_turn;
                (sample.first, sample.front) = (scan.sector.first, front);
                sample.reach = [shortest, longest];
                sample.count = scan.ranges.len().min(MOST_POINTS);
                sample.ranges[..sample.count].copy_from_slice(&scan.ranges[..sample.count]);
                Ok(true)
            }
            Some(Event::Wrong(error)) => {
                self.remarks.count(|times| format!("{times} wrong replies so far; the last: {error}"));
                Ok(false)
            }
            Some(Event::Failed(error)) => Err(DeviceError(error.to_string())),
            Some(Event::Ready(_)) | None => Ok(false),
        }
    }

    fn close(&mut self) {
        if let Some((mut port, _)) = self.talk.take() {
            // Switches the laser off, since it is no longer used.
            let _ = port.write_within(b"QT\n", Duration::from_millis(100));
        }
    }

    fn remark(&mut self) -> Option<String> {
        self.remarks.take()
    }
}
