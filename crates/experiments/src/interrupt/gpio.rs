//! Latency from an edge on a GPIO line, stamped by the kernel's interrupt handler, to user code.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use control::clock::{Clock, MonotonicClock};
use control::profile::{Granted, RealTimeProfile};
use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, EventClock, Value};

use crate::distribution::resident;

/// Line of a GPIO chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Device of the chip, for example `/dev/gpiochip0`.
    pub chip: PathBuf,
    /// Offset of the line on the chip.
    pub offset: u32,
}

impl FromStr for Line {
    type Err = String;

    /// Parses `gpiochip0:17`, also with the whole path.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("found \"{text}\", expected a GPIO line as gpiochip0:17");
        let (chip, offset) = text.rsplit_once(':').ok_or_else(wrong)?;
        let offset = offset.parse().map_err(|_| wrong())?;
        if chip.is_empty() {
            return Err(wrong());
        }
        let chip =
            if chip.starts_with('/') { PathBuf::from(chip) } else { PathBuf::from("/dev").join(chip) };
        Ok(Self { chip, offset })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chip.display(), self.offset)
    }
}

/// Chips of this machine, and the remedy if there is none; a sentence for people.
pub(super) fn what_there_is() -> String {
    match gpiocdev::chip::chips().unwrap_or_default() {
        chips if chips.is_empty() => {
            "GPIO: this machine has no GPIO chip (/dev/gpiochip*): not measured.".into()
        }
        chips => {
            let names: Vec<String> = chips.iter().map(|chip| chip.display().to_string()).collect();
            format!(
                "GPIO: not measured, for no line was named. This machine has {}: wire an output to an input, and name \
                 both with --gpio-input CHIP:LINE --gpio-output CHIP:LINE; or an input alone whose edges come from \
                 outside.",
                names.join(", ")
            )
        }
    }
}

/// Latencies of `samples` edges of `input`, ns, and the settings refused. With `output` the edges are
/// generated here, one per interval; without it they are waited for.
///
/// # Errors
/// A line cannot be requested; it is named.
pub(super) fn measure(
    input: &Line,
    output: Option<&Line>,
    samples: usize,
    interval: Duration,
    profile: &RealTimeProfile,
    stop: &AtomicBool,
) -> Result<(Vec<u64>, Vec<String>), String> {
    let edges = Request::builder()
        .on_chip(&input.chip)
        .with_consumer("onbeat measure")
        .with_line(input.offset)
        .with_edge_detection(EdgeDetection::BothEdges)
        .with_event_clock(EventClock::Monotonic)
        .request()
        .map_err(|error| format!("GPIO line {input}: {error}"))?;
    let driven = output.map(|line| {
        let mut builder = Request::builder();
        builder.on_chip(&line.chip).with_consumer("onbeat measure").with_line(line.offset);
        let request = builder.as_output(Value::Inactive).request();
        request.map_err(|error| format!("GPIO line {line}: {error}"))
    });
    let driven = driven.transpose()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = thread::Builder::new()
            .name("gpio".into())
            .spawn_scoped(scope, || watch(&edges, samples, profile, &over))
            .map_err(|error| format!("GPIO: a thread: {error}"))?;
        let driven = driven.as_ref().map_or(Ok(()), |driven| drive(driven, samples, interval, stop));
        let begin = Instant::now();
        // Wait for the last edges, or for external ones: their expected duration, and a second.
        let timeout =
            interval.saturating_mul(u32::try_from(samples).unwrap_or(u32::MAX)) + Duration::from_secs(1);
        while !watching.is_finished() && begin.elapsed() < timeout && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
        let watched = watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        driven?;
        watched
    })
}

fn drive(line: &Request, samples: usize, interval: Duration, stop: &AtomicBool) -> Result<(), String> {
    for edge in 0..samples {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(interval);
        let value = if edge % 2 == 0 { Value::Active } else { Value::Inactive };
        line.set_lone_value(value).map_err(|error| format!("GPIO output: {error}"))?;
    }
    Ok(())
}

fn watch(
    edges: &Request,
    samples: usize,
    profile: &RealTimeProfile,
    over: &AtomicBool,
) -> Result<(Vec<u64>, Vec<String>), String> {
    let granted = Granted::ask(profile);
    let failed = |error| format!("GPIO input: {error}");
    let mut latencies = resident(samples);
    while latencies.len() < samples && !over.load(Ordering::Relaxed) {
        if edges.wait_edge_event(Duration::from_millis(100)).map_err(failed)? {
            let event = edges.read_edge_event().map_err(failed)?;
            latencies.push(MonotonicClock.now().as_nanos().saturating_sub(event.timestamp_ns));
        }
    }
    Ok((latencies, granted.refusals().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_what_is_none_is_refused() {
        let line: Line = "gpiochip0:17".parse().unwrap();
        assert_eq!(line, Line { chip: "/dev/gpiochip0".into(), offset: 17 });
        assert_eq!("/dev/gpiochip3:4".parse::<Line>().unwrap().to_string(), "/dev/gpiochip3:4");
        for wrong in ["", ":", "gpiochip0", "gpiochip0:", ":3", "gpiochip0:x", "gpiochip0:-1"] {
            assert!(wrong.parse::<Line>().unwrap_err().contains("expected a GPIO line"), "{wrong}");
        }
    }

    #[test]
    fn a_chip_that_is_not_there_is_named() {
        let line = Line { chip: "/dev/gpiochip999".into(), offset: 1 };
        let measured =
            measure(&line, None, 1, Duration::ZERO, &RealTimeProfile::ORDINARY, &AtomicBool::new(false));
        assert!(measured.unwrap_err().starts_with("GPIO line /dev/gpiochip999:1: "));
    }
}
