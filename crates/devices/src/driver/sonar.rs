//! Driver of an HC-SR04 on two GPIO lines.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, EdgeKind, EventClock, Value};

use crate::pair::{DeviceError, Driver, Poke};
use crate::sonar::{Edge, Listener, Outcome, TRIGGER};
use crate::task::sonar::Sample;

/// Interface between the driver and a GPIO chip: two lines.
pub trait Lines: Send + 'static {
    /// Location of the lines, for messages.
    fn place(&self) -> String;

    /// Requests the lines.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(&mut self) -> Result<(), DeviceError>;

    /// Sends a pulse of at least [`TRIGGER`] on the trigger line.
    ///
    /// # Errors
    /// The operating system's error.
    fn trigger(&mut self) -> Result<(), DeviceError>;

    /// Waits for the next edge of the echo line, at most `longest`.
    ///
    /// # Errors
    /// The operating system's error.
    fn edge(&mut self, longest: Duration) -> Result<Option<Edge>, DeviceError>;

    /// Releases the lines.
    fn close(&mut self);
}

/// Lines of a GPIO chip. Edges are stamped by the kernel's interrupt handler.
#[derive(Debug)]
pub struct Gpio {
    chip: PathBuf,
    trigger: u32,
    echo: u32,
    requests: Option<[Request; 2]>,
}

impl Gpio {
    /// Creates lines by their offsets on a chip, for example `/dev/gpiochip0`. An HC-SR04 answers
    /// with 5 V and needs a divider.
    #[must_use]
    pub fn new(chip: impl Into<PathBuf>, trigger: u32, echo: u32) -> Self {
        Self { chip: chip.into(), trigger, echo, requests: None }
    }

    fn requests(&self) -> Result<&[Request; 2], DeviceError> {
        self.requests.as_ref().ok_or_else(|| DeviceError("it is not open".into()))
    }
}

impl Lines for Gpio {
    fn place(&self) -> String {
        format!("{} lines {} and {}", self.chip.display(), self.trigger, self.echo)
    }

    fn open(&mut self) -> Result<(), DeviceError> {
        let wrong = |line| move |error| DeviceError::new(format_args!("line {line}"), error);
        let trigger = Request::builder()
            .on_chip(&self.chip)
            .with_consumer("onbeat sonar trigger")
            .with_line(self.trigger)
            .as_output(Value::Inactive)
            .request()
            .map_err(wrong(self.trigger))?;
        let echo = Request::builder()
            .on_chip(&self.chip)
            .with_consumer("onbeat sonar echo")
            .with_line(self.echo)
            .with_edge_detection(EdgeDetection::BothEdges)
            .with_event_clock(EventClock::Monotonic)
            .request()
            .map_err(wrong(self.echo))?;
        self.requests = Some([trigger, echo]);
        Ok(())
    }

    fn trigger(&mut self) -> Result<(), DeviceError> {
        let [trigger, _] = self.requests()?;
        let set = |value| trigger.set_lone_value(value).map_err(|error| DeviceError::new("trigger", error));
        set(Value::Active)?;
        // Too short for a sleep; the system calls around it lengthen the pulse further.
        let begin = Instant::now();
        while begin.elapsed() < TRIGGER {
            std::hint::spin_loop();
        }
        set(Value::Inactive)
    }

    fn edge(&mut self, longest: Duration) -> Result<Option<Edge>, DeviceError> {
        let [_, echo] = self.requests()?;
        let wrong = |error| DeviceError::new("echo", error);
        if !echo.wait_edge_event(longest).map_err(wrong)? {
            return Ok(None);
        }
        let event = echo.read_edge_event().map_err(wrong)?;
        let up = event.kind == EdgeKind::Rising;
        Ok(Some(Edge { stamp_ns: event.timestamp_ns, up, number: event.line_seqno }))
    }

    fn close(&mut self) {
        self.requests = None;
    }
}

/// Driver of an HC-SR04.
#[derive(Debug)]
pub struct HcSr04<L> {
    lines: L,
    listener: Listener,
    unanswered: u32,
}

/// Time to wait for the edges of a ping: longer than the echo line stays up without an echo (38
/// ms).
const LISTEN: Duration = Duration::from_millis(45);

/// Consecutive unanswered pings after which the sensor counts as disconnected.
const MOST_UNANSWERED: u32 = 10;

impl<L: Lines> HcSr04<L> {
    /// Creates a driver over these lines.
    #[must_use]
    pub fn new(lines: L) -> Self {
        Self { lines, listener: Listener::default(), unanswered: 0 }
    }

    /// Waits for edges until the outcome of the ping is known.
    fn listen(&mut self, longest: Duration) -> Result<Option<Outcome>, DeviceError> {
        let begin = Instant::now();
        loop {
            let left = longest.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let Some(edge) = self.lines.edge(left)? else { return Ok(None) };
            if let Some(outcome) = self.listener.take(edge) {
                return Ok(Some(outcome));
            }
        }
    }
}

impl<L: Lines> Driver for HcSr04<L> {
    type Request = Poke;
    type Sample = Sample;
    const ASKED: bool = true;

    fn device(&self) -> String {
        self.lines.place()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        self.lines.open()?;
        (self.listener, self.unanswered) = (Listener::default(), 0);
        // The lines exist; the first ping shows if a sensor is connected.
        match self.ping()? {
            Some(_) => Ok("a sonar that answers".into()),
            None => Err(DeviceError(
                "no answer to a ping: is it wired, powered, and its echo line behind a divider?".into(),
            )),
        }
    }

    fn exchange(
        &mut self,
        _request: &Poke,
        sample: &mut Sample,
        _timeout: Duration,
    ) -> Result<bool, DeviceError> {
        match self.ping()? {
            Some(Outcome::Echo { length_ns, stamp_ns }) => *sample = Sample { stamp_ns, length_ns },
            Some(Outcome::Nothing { stamp_ns }) => *sample = Sample { stamp_ns, length_ns: 0 },
            None => {
                self.unanswered += 1;
                if self.unanswered >= MOST_UNANSWERED {
                    let error = format!("no answer to {} pings in a row", self.unanswered);
                    return Err(DeviceError(error));
                }
                return Ok(false);
            }
        }
        self.unanswered = 0;
        Ok(true)
    }

    fn close(&mut self) {
        self.lines.close();
    }
}

impl<L: Lines> HcSr04<L> {
    fn ping(&mut self) -> Result<Option<Outcome>, DeviceError> {
        // Discards edges of an earlier ping.
        while let Some(edge) = self.lines.edge(Duration::ZERO)? {
            let _ = self.listener.take(edge);
        }
        if self.listener.is_up() {
            thread::sleep(Duration::from_millis(1));
        }
        self.lines.trigger()?;
        self.listen(LISTEN)
    }
}
