use std::ops::RangeInclusive;
use std::time::Duration;

use ethercat::main_device::Configuration;
use serde::Deserialize;
use serde::de::Deserializer;
use types::{AfterOutage, FrameOrder, OverrunPolicy, Profile};

use super::usual;
use crate::field::{refused, time, time_or, time_within, whole, within};

/// `[cycle]`: period of the real-time cycle, and its demands on the operating system.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cycle {
    /// Time from release to release; 50 us to 1 s.
    #[serde(deserialize_with = "time")]
    pub period: Duration,
    /// Real-time profile; by default memory is locked, and P and S are on where the file gives their values.
    #[serde(default, deserialize_with = "profile")]
    pub profile: Profile,
    /// SCHED_FIFO priority for P, 1 to 99.
    #[serde(default = "usual_priority", deserialize_with = "whole::<_, _, 1, 99>")]
    pub priority: u8,
    /// Runtime reserved in every period under SCHED_DEADLINE, for P; `None` selects SCHED_FIFO.
    #[serde(default, deserialize_with = "time")]
    pub deadline_runtime: Option<Duration>,
    /// CPU the cycle is bound to; `None` leaves the choice to the scheduler, or to C.
    #[serde(default, deserialize_with = "whole::<_, _, 0, HIGHEST_CPU>")]
    pub cpu: Option<usize>,
    /// Time before a release at which S wakes up and spins.
    #[serde(default = "usual_spin_margin", deserialize_with = "spin_margin")]
    pub spin_margin: Duration,
    /// Treatment of releases missed by an overrun.
    #[serde(default)]
    pub overrun: OverrunPolicy,
    /// Reply that a cycle works with.
    #[serde(default)]
    pub frame_order: FrameOrder,
    /// Outage of an axis after which its drive gets a quick stop; `None` for 20 cycles.
    #[serde(default, deserialize_with = "time")]
    pub outage_time: Option<Duration>,
    /// Behaviour of an axis after an outage.
    #[serde(default)]
    pub after_outage: AfterOutage,
    /// Loss of the bus after which the run ends; `None` waits for ever.
    #[serde(default = "usual_loss_time", deserialize_with = "loss_time")]
    pub loss_time: Option<Duration>,
}

impl Cycle {
    /// Shortest and longest period.
    pub const PERIODS: RangeInclusive<Duration> = Configuration::PERIODS;

    /// SCHED_FIFO priority, if P is selected.
    #[must_use]
    pub fn fifo_priority(&self) -> Option<u8> {
        self.profile.priority.then_some(self.priority)
    }
}

/// Highest CPU number in the kernel's CPU sets.
pub(crate) const HIGHEST_CPU: i64 = 1023;

usual! {
    usual_priority: u8 = 80;
    usual_spin_margin: Duration = Duration::from_micros(50);
    usual_loss_time: Option<Duration> = Some(Duration::from_secs(10));
}

fn profile<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Profile, D::Error> {
    let letters = String::deserialize(deserializer)?;
    letters.parse().map_err(|_| {
        let remedy = "P is priority, M memory lock, C CPU shield, S spinning sleep, as in \"PM\"";
        refused(format_args!("profile = {letters:?}"), "letters of PMCS, each once, or \"none\"", remedy)
    })
}

fn spin_margin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let margins = Duration::from_micros(1)..=Duration::from_secs(1);
    let remedy = "choose a little more than the machine's usual wake-up latency, as \"50us\"";
    time_within(deserializer, margins, remedy)
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
