//! Latency from an interrupt to user code: of a timer, a frame, a GPIO line (controllers paper,
//! Figure 6).

mod found;
pub(crate) mod frames;
mod gpio;
mod timer;

use std::io;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use report::{Report, Section};
use rt::profile::RealTimeProfile;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::json;

pub use self::found::Condition;
pub use self::gpio::Line;

use self::found::Found;
use self::frames::{Exchange, Received};
use self::timer::Timer;
use crate::cable::{Cable, FAR, NEAR};
use crate::distribution::{self, Durations};
use crate::load::{Load, Loads};
use crate::paper::Paper;
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::sys::stamped::StampedSocket;
use crate::thread::{default_cpu, real_time};
use crate::{Context, Error};

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Number of interrupts of each kind.
    pub samples: usize,
    /// Time between two interrupts.
    pub interval: Duration,
    /// `SCHED_FIFO` priority of the thread that waits for them, where it is a real-time one.
    pub priority: u8,
    /// Conditions, one after the other.
    pub conditions: Vec<Condition>,
    /// CPU of that thread.
    pub cpu: usize,
    /// Interface to send frames on, which SubDevices return; `None` for a private cable.
    pub interface: Option<String>,
    /// Input GPIO line; the experiment waits for its edges.
    pub gpio_input: Option<Line>,
    /// GPIO line wired to it, which makes the edges.
    pub gpio_output: Option<Line>,
    /// GPIO line that the waiting thread sets to the input's level after each edge.
    pub gpio_answer: Option<Line>,
    /// GPIO line wired to the answering line; the kernel stamps its edges.
    pub gpio_observe: Option<Line>,
}

/// Loads of a loaded condition, one process of each for each CPU: computing, and calls of the
/// kernel.
const LOADS: [Load; 2] = [Load::Cpu, Load::KernelLock];

impl Default for Interrupt {
    fn default() -> Self {
        Self {
            samples: 10_000,
            interval: Duration::from_millis(1),
            priority: 80,
            conditions: Condition::ALL.to_vec(),
            cpu: default_cpu(),
            interface: None,
            gpio_input: None,
            gpio_output: None,
            gpio_answer: None,
            gpio_observe: None,
        }
    }
}

const FRAME: &str = "NIC: kernel's receive stamp to user code";
const REACTION: &str = "NIC: frame in to frame out, by kernel stamps";
const GPIO: &str = "GPIO: kernel's edge stamp to user code";
const ANSWER: &str = "GPIO: edge in to edge out, by kernel stamps";

impl Interrupt {
    /// Runs the experiment. A kind of interrupt that is unavailable on this machine or to this user
    /// is skipped with a warning.
    ///
    /// # Errors
    /// A timer cannot be created, or a file cannot be written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context);
        let mut found = Found::default();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        for &condition in &self.conditions {
            if context.stopped() {
                break;
            }
            let loads = if condition.loaded { LOADS.repeat(cpus) } else { Vec::new() };
            let mut loads = Loads::start(context, &loads)?;
            self.measure(context, condition, &mut found)?;
            found.doubts.extend(loads.ended());
        }
        let mut report = self.report(&found);
        surroundings.end(&mut report);
        report.warnings.extend(found.doubts);
        Ok(report)
    }

    /// Measures all kinds in one condition.
    fn measure(&self, context: &Context, condition: Condition, found: &mut Found) -> Result<(), Error> {
        found.condition = Some(condition);
        let profile = self.profile(condition);
        for timer in Timer::ALL {
            context.say(format_args!("interrupt: {}, {}", timer.name(), condition.name()));
            let (latencies, refusals) = self
                .timer(timer, &profile, context.stop)
                .map_err(|error| Error::other(format_args!("interrupt, {}: {error}", timer.name())))?;
            found.refused(refusals);
            self.keep(context, found, timer.name(), latencies)?;
        }
        self.frames(context, &profile, found)?;
        self.gpio(context, &profile, found)
    }

    /// Profile of the waiting thread.
    fn profile(&self, condition: Condition) -> RealTimeProfile {
        if condition.real_time {
            real_time(Some(self.priority), self.cpu)
        } else {
            RealTimeProfile { cpu: Some(self.cpu), ..RealTimeProfile::ORDINARY }
        }
    }

    fn timer(
        &self,
        timer: Timer,
        profile: &RealTimeProfile,
        stop: &AtomicBool,
    ) -> io::Result<(Vec<u64>, Vec<String>)> {
        // On a dedicated thread, so that its real-time settings end with it.
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("timer".into())
                .spawn_scoped(scope, || timer.measure(self.samples, self.interval, profile, stop))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn frames(&self, context: &Context, profile: &RealTimeProfile, found: &mut Found) -> Result<(), Error> {
        context.say("interrupt: NIC");
        let exchanged = match &self.interface {
            Some(name) => self.over_interface(name, profile, context.stop),
            None => self.over_cable(profile, context.stop),
        };
        let received = match exchanged {
            Ok(received) => received,
            Err(error) => {
                found.doubt(format!("frames are not measured: {error}"));
                return Ok(());
            }
        };
        if received.latencies.is_empty() && received.sent > 0 {
            let name = self.interface.as_deref().unwrap_or(NEAR);
            found.doubt(format!(
                "of {} frames sent on {name} none came back: expected SubDevices at its other end, or `onbeat \
                 simulate`",
                received.sent
            ));
        }
        if received.backwards > 0 {
            let count = received.backwards;
            found.doubt(format!("{count} frames were stamped after they were read: the clock was stepped"));
        }
        found.lost += received.sent.saturating_sub(received.latencies.len() + received.backwards);
        found.refused(received.refusals.clone());
        self.keep(context, found, FRAME, received.latencies)?;
        if self.interface.is_none() {
            self.keep(context, found, REACTION, received.reactions)?;
        }
        Ok(())
    }

    fn over_cable(&self, profile: &RealTimeProfile, stop: &AtomicBool) -> Result<Received, Error> {
        let cable = Cable::lay()?;
        let open = |name: &'static str| {
            StampedSocket::open(name, TIMEOUT)
                .map_err(|error| Error::other(format_args!("{name}: {error}")))
        };
        let here = cable.near.within(move || open(NEAR))?;
        let there = cable.far.within(move || open(FAR))?;
        self.exchange(profile, true).run(here, there, stop).map_err(Error::other)
    }

    fn over_interface(
        &self,
        name: &str,
        profile: &RealTimeProfile,
        stop: &AtomicBool,
    ) -> Result<Received, Error> {
        let open = || {
            StampedSocket::open(name, TIMEOUT).map_err(|error| {
                Error::other(format_args!("interface {name}: {error} (raw sockets need CAP_NET_RAW)"))
            })
        };
        self.exchange(profile, false).run(open()?, open()?, stop).map_err(Error::other)
    }

    fn exchange(&self, profile: &RealTimeProfile, replies: bool) -> Exchange {
        Exchange {
            samples: self.samples,
            interval: self.interval,
            receiver: *profile,
            sender: real_time(Some(self.priority.saturating_sub(10).max(1)), another_cpu(self.cpu)),
            replies,
        }
    }

    fn gpio(&self, context: &Context, profile: &RealTimeProfile, found: &mut Found) -> Result<(), Error> {
        let Some(input) = &self.gpio_input else {
            found.gpio = gpio::what_there_is();
            return Ok(());
        };
        context.say("interrupt: GPIO");
        let lines = gpio::Lines {
            input,
            output: self.gpio_output.as_ref(),
            answer: self.gpio_answer.as_ref(),
            observe: self.gpio_observe.as_ref(),
        };
        match gpio::measure(lines, self.samples, self.interval, profile, context.stop) {
            Ok(edges) => {
                found.refused(edges.refusals);
                found.gpio = format!("GPIO: {} edges of {input}.", edges.latencies.len());
                self.keep(context, found, GPIO, edges.latencies)?;
                match &self.gpio_observe {
                    Some(_) => self.keep(context, found, ANSWER, edges.reactions),
                    None => Ok(()),
                }
            }
            Err(why) => {
                found.doubt(why);
                Ok(())
            }
        }
    }

    /// Records the measurements of one kind, and keeps them for the tables.
    fn keep(
        &self,
        context: &Context,
        found: &mut Found,
        name: &str,
        latencies: Vec<u64>,
    ) -> Result<(), Error> {
        let words = name.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let mut slug: Vec<String> =
            words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
        let condition = found.condition.unwrap_or(Condition::ALL[0]);
        if condition != Condition::ALL[0] {
            slug.extend(condition.name().split(", ").map(str::to_owned));
        }
        let settings = facts([
            ("from", name.into()),
            ("condition", condition.name().into()),
            ("priority", self.priority.into()),
            ("cpu", self.cpu.into()),
            ("interval_ns", (self.interval.as_nanos() as u64).into()),
        ]);
        let mut raw = Raw::begin(context, &slug.join("-"), "interrupt", &["latency_ns"], settings)?;
        raw.append(&[&latencies])?;
        raw.finish(facts([]))?;
        found.cells.push((condition, Durations::new(name, latencies)));
        Ok(())
    }

    fn report(&self, found: &Found) -> Report {
        let mut report = Report {
            experiment: "interrupt".into(),
            title: "From an interrupt to user code".into(),
            source: Some("the controllers paper, Figure 6".into()),
            measured: "from the instant that is programmed (timer) or stamped by the kernel (frame, edge) to the first \
                       clock reading of the thread that waits for it"
                .into(),
            good: "some microseconds for all of them, with a maximum far below the period of the cycle that is to \
                   react"
                .into(),
            found: Some(
                "5 to 8 us from input to output with a real-time driver, at most four times as long in ordinary Linux"
                    .into(),
            ),
            ..Report::default()
        };
        report.condition("real-time", format!("SCHED_FIFO {}, memory locked", self.priority));
        report.condition("ordinary", "ordinary scheduling, on the same CPU");
        let loads = LOADS.map(|load| load.describe()).join(", ");
        report.condition("load", format!("on each CPU: {loads}"));
        report.condition("CPU of the waiting thread", self.cpu.to_string());
        report.condition("interval", format!("{} us", self.interval.as_micros()));
        let wire = self.interface.as_ref().map_or_else(
            || {
                let sender = another_cpu(self.cpu);
                format!("a private veth cable; frames are sent from CPU {sender}")
            },
            |name| format!("interface {name}"),
        );
        report.condition("frames over", wire);
        report.condition("frames lost", found.lost.to_string());
        report.condition("samples", format!("{} of each kind in each condition", self.samples));
        for &condition in &self.conditions {
            let cells = found.of(condition);
            let caption = format!("Latency, us, {}", condition.name());
            report.sections.push(distribution::table(&caption, "from", &cells));
        }
        report.sections.push(found.ratios(&self.conditions));
        report.sections.push(Section::Text(found.gpio.clone()));
        report.sections.push(Section::Text(NOTES.into()));
        Paper::Controllers.append(&["Figures 6 and 7"], &mut report);
        for &condition in &self.conditions {
            let caption = format!("Latency, {}", condition.name());
            report.sections.extend(distribution::plots(&caption, &found.of(condition)));
        }
        let cell = |(condition, it): &(Condition, Durations)| json!({ "from": it.name, "condition": condition.name(), "latency_ns": it.statistics() });
        report.values.extend(facts([
            ("cells", found.cells.iter().map(cell).collect()),
            ("frames_lost", found.lost.into()),
        ]));
        report
    }
}

const NOTES: &str = "A timer's latency holds all of the way: the interrupt, its handler, the wake-up and the switch. A frame's begins where \
                     the kernel takes it from the driver, after the interrupt itself; a veth cable has no interrupt at all, its frames come \
                     by a soft interrupt on the sender's CPU. An edge's begins in the interrupt handler of the GPIO driver. The paper's is \
                     from an input to an output, both set and read outside: edge in to edge out is that way but for the interrupt before its first stamp, \
                     and with one more before its second.";

/// Longest wait of a socket for one frame.
const TIMEOUT: Duration = Duration::from_millis(100);

/// First CPU other than `cpu` that this process may use; `cpu` itself if it is the only one.
fn another_cpu(cpu: usize) -> usize {
    let Ok(allowed) = sched_getaffinity(None) else { return cpu };
    (0..CpuSet::MAX_CPU).find(|&other| other != cpu && allowed.is_set(other)).unwrap_or(cpu)
}
