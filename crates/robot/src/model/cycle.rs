use std::ops::RangeInclusive;
use std::time::Duration;

use ethercat::main_device::Configuration;
use serde::Deserialize;
use serde::de::Deserializer;
use types::{
    AfterOutage, CycleClock, FrameOrder, OverrunPolicy, Profile, RealTimeProfile, Residency, Scheduling,
};

use super::usual;
use crate::error::refused;
use crate::field::{time, time_or, time_within, whole, within};

/// `[cycle]`: period of the real-time cycle, and its demands on the operating system.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cycle {
    /// Time from release to release; 50 us to 1 s.
    #[serde(deserialize_with = "time")]
    pub period: Duration,
    /// Letters of the real-time profile, if they are said: [`Cycle::profile`].
    #[serde(default, deserialize_with = "profile")]
    pub profile: Option<Profile>,
    /// SCHED_FIFO priority for P, 1 to 99; `None` for the usual one.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 99>")]
    pub priority: Option<u8>,
    /// Runtime reserved in every period under SCHED_DEADLINE, for P; `None` selects SCHED_FIFO.
    #[serde(default, deserialize_with = "time")]
    pub deadline_runtime: Option<Duration>,
    /// CPU the cycle is bound to; `None` leaves the choice to the scheduler, or to C.
    #[serde(default, deserialize_with = "whole::<_, _, 0, HIGHEST_CPU>")]
    pub cpu: Option<usize>,
    /// Time before a release at which S wakes up and spins; `None` for the usual one.
    #[serde(default, deserialize_with = "spin_margin")]
    pub spin_margin: Option<Duration>,
    /// Preparation of the network interface, if it is said: [`Cycle::prepares_nic`].
    #[serde(default)]
    pub prepare_nic: Option<bool>,
    /// CPU of the interface's interrupts; `None` for the cycle's, or with C for another.
    #[serde(default, deserialize_with = "whole::<_, _, 0, HIGHEST_CPU>")]
    pub nic_cpu: Option<usize>,
    /// Treatment of releases missed by an overrun.
    #[serde(default)]
    pub overrun: OverrunPolicy,
    /// Reply that a cycle works with.
    #[serde(default)]
    pub frame_order: FrameOrder,
    /// Clock that the releases follow.
    #[serde(default)]
    pub clock: CycleClock,
    /// Outage of an axis after which its drive gets a quick stop; `None` for 20 cycles.
    #[serde(default, deserialize_with = "time")]
    pub outage_time: Option<Duration>,
    /// Behaviour of an axis after an outage.
    #[serde(default)]
    pub after_outage: AfterOutage,
    /// Faults of drives that are reset at the start of a run.
    #[serde(default)]
    pub reset_faults: ResetFaults,
    /// Further error codes that are reset then.
    #[serde(default)]
    pub reset_codes: Vec<u16>,
    /// Loss of the bus after which the run ends; `None` waits for ever.
    #[serde(default = "usual_loss_time", deserialize_with = "loss_time")]
    pub loss_time: Option<Duration>,
}

/// Faults that are reset at the start of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetFaults {
    /// No fault: a person resets each.
    #[default]
    None,
    /// Faults of a lost communication, as a crash leaves them: 0x7500 and 0x8100 to 0x81FF.
    Communication,
}

impl Cycle {
    /// Shortest and longest period.
    pub const PERIODS: RangeInclusive<Duration> = Configuration::PERIODS;

    /// Real-time profile. Unless its letters are said, memory is locked, and P and S are on where
    /// their values are given.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let priority = self.priority.is_some() || self.deadline_runtime.is_some();
        self.profile.unwrap_or_else(|| Profile::M.and(priority, self.spin_margin.is_some()))
    }

    /// SCHED_FIFO priority of P.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(Profile::PRIORITY)
    }

    /// Time before a release at which S wakes up and spins.
    #[must_use]
    pub fn spin_margin(&self) -> Duration {
        self.spin_margin.unwrap_or(Profile::SPIN_MARGIN)
    }

    /// True if the network interface is prepared for the cycle while it runs. By default, a CPU for
    /// its interrupts implies it.
    #[must_use]
    pub fn prepares_nic(&self) -> bool {
        self.prepare_nic.unwrap_or(self.nic_cpu.is_some())
    }

    /// Profile that the thread of the cycle requests from the operating system.
    #[must_use]
    pub fn real_time_profile(&self) -> RealTimeProfile {
        let fifo = Scheduling::Fifo { priority: self.priority() };
        let (deadline, period) = (self.period, self.period);
        let reserved = |runtime| Scheduling::Deadline { runtime, deadline, period };
        let asked = self.profile();
        RealTimeProfile {
            scheduling: asked.priority.then(|| self.deadline_runtime.map_or(fifo, reserved)),
            memory: asked.memory.then(Residency::default),
            shield: asked.shield,
            spin: asked.spin.then_some(self.spin_margin()),
            cpu: self.cpu,
        }
    }

    /// SCHED_FIFO priority, if P is selected.
    #[must_use]
    pub fn fifo_priority(&self) -> Option<u8> {
        self.profile().priority.then_some(self.priority())
    }

    /// Replaces the file's values by these. As in the file, a value requests its letter unless the
    /// letters are given with it.
    pub(crate) fn replace(&mut self, by: Overrides) {
        let priority = by.priority.is_some() || by.deadline_runtime.is_some();
        let letters = by.profile.unwrap_or_else(|| self.profile().and(priority, by.spin_margin.is_some()));
        if by.priority.is_some() {
            (self.priority, self.deadline_runtime) = (by.priority, None);
        }
        self.profile = Some(letters);
        self.period = by.period.unwrap_or(self.period);
        self.deadline_runtime = by.deadline_runtime.or(self.deadline_runtime);
        self.cpu = by.cpu.or(self.cpu);
        self.spin_margin = by.spin_margin.or(self.spin_margin);
        self.prepare_nic = by.prepare_nic.or(by.nic_cpu.map(|_| true)).or(self.prepare_nic);
        self.nic_cpu = by.nic_cpu.or(self.nic_cpu);
        self.overrun = by.overrun.unwrap_or(self.overrun);
        self.frame_order = by.frame_order.unwrap_or(self.frame_order);
    }
}

/// Values of `[cycle]` that replace the file's values; they are checked in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Replaces the period; a SYNC0 that follows the period follows this one.
    pub period: Option<Duration>,
    /// Replaces the letters of the profile.
    pub profile: Option<Profile>,
    /// Replaces the priority, or a reservation.
    pub priority: Option<u8>,
    /// Replaces the reservation.
    pub deadline_runtime: Option<Duration>,
    /// Replaces the CPU.
    pub cpu: Option<usize>,
    /// Replaces the spin margin.
    pub spin_margin: Option<Duration>,
    /// Replaces the choice to prepare the network interface.
    pub prepare_nic: Option<bool>,
    /// Replaces the CPU of the interface's interrupts.
    pub nic_cpu: Option<usize>,
    /// Replaces the treatment of missed releases.
    pub overrun: Option<OverrunPolicy>,
    /// Replaces the reply that a cycle works with.
    pub frame_order: Option<FrameOrder>,
}

/// Highest CPU number in the kernel's CPU sets.
pub(crate) const HIGHEST_CPU: i64 = 1023;

usual! {
    usual_loss_time: Option<Duration> = Some(types::cycle::LOSS_TIME);
}

fn profile<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Profile>, D::Error> {
    let letters = String::deserialize(deserializer)?;
    letters.parse().map(Some).map_err(|_| {
        let remedy = "P is priority, M memory lock, C CPU shield, S spinning sleep, as in \"PM\"";
        refused(format_args!("profile = {letters:?}"), "letters of PMCS, each once, or \"none\"", remedy)
    })
}

fn spin_margin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let margins = Duration::from_micros(1)..=Duration::from_secs(1);
    let remedy = "choose a little more than the machine's usual wake-up latency, as \"50us\"";
    time_within(deserializer, margins, remedy).map(Some)
}

fn loss_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let expected = "a number and a unit (ns, us, ms, s, min, h) in quotes, as in \"10s\", or \"wait\"";
    let Some(time) = time_or(deserializer, Some("wait"), expected)? else { return Ok(None) };
    let losses = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);
    let remedy = "choose how long a cable may be out, as \"10s\", or \"wait\"";
    within("loss_time", time, &losses)
        .map(|()| Some(time))
        .map_err(|[found, expected]| refused(found, expected, remedy))
}
