//! An HC-SR04 on two GPIO lines.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, EdgeKind, EventClock, Value};

use crate::pair::datagram::Poke;
use crate::pair::{DeviceError, Driver};
use crate::sonar::{Edge, Listener, Outcome, TRIGGER};
use crate::task::sonar::Sample;

/// Two lines: what lies between the driver and a GPIO chip.
pub trait Lines: Send + 'static {
    /// Where they are, for people.
    fn place(&self) -> String;

    /// Makes them accessible.
    ///
    /// # Errors
    /// What the system says.
    fn open(&mut self) -> Result<(), DeviceError>;

    /// A pulse of at least [`TRIGGER`] on the trigger line.
    ///
    /// # Errors
    /// What the system says.
    fn trigger(&mut self) -> Result<(), DeviceError>;

    /// The next edge of the echo line; waits for it this long at most.
    ///
    /// # Errors
    /// What the system says.
    fn edge(&mut self, longest: Duration) -> Result<Option<Edge>, DeviceError>;

    /// Lets go of them.
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
    /// Lines by their numbers on a chip, as `/dev/gpiochip0`. An HC-SR04 answers with 5 V: it needs a divider.
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
        // Shorter than a sleep; the system calls around it make it longer still.
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

/// The driver.
#[derive(Debug)]
pub struct HcSr04<L> {
    lines: L,
    listener: Listener,
    unanswered: u32,
}

/// How long one ping is listened to: longer than the echo line stays up when nothing is there (38 ms).
const LISTEN: Duration = Duration::from_millis(45);

/// Pings that were not answered at all, after which the sensor is taken for gone.
const MOST_UNANSWERED: u32 = 10;

impl<L: Lines> HcSr04<L> {
    /// Behind these lines.
    #[must_use]
    pub fn new(lines: L) -> Self {
        Self { lines, listener: Listener::default(), unanswered: 0 }
    }

    /// Listens until it is clear what became of a ping.
    fn listen(&mut self, longest: Duration) -> Result<Option<Outcome>, DeviceError> {
        let begin = Instant::now();
        loop {
            let left = longest.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let Some(edge) = self.lines.edge(left)? else { return Ok(None) };
            if let Some(outcome) = self.listener.hear(edge) {
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
        // The lines are there; whether a sensor is shows with the first ping.
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
        _patience: Duration,
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
        // Edges of an older ping are not of this one.
        while let Some(edge) = self.lines.edge(Duration::ZERO)? {
            let _ = self.listener.hear(edge);
        }
        if self.listener.is_up() {
            thread::sleep(Duration::from_millis(1));
        }
        self.lines.trigger()?;
        self.listen(LISTEN)
    }
}
