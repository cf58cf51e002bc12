use std::time::Duration;

use types::{AfterOutage, FrameOrder, OverrunPolicy, Profile};

/// Real-time cycle: its period, and its demands on the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Time from release to release; 50 us to 1 s.
    pub period: Duration,
    /// Real-time profile.
    pub profile: Profile,
    /// SCHED_FIFO priority for P, 1 to 99.
    pub priority: u8,
    /// Runtime reserved in every period under SCHED_DEADLINE, for P; `None` selects SCHED_FIFO.
    pub deadline_runtime: Option<Duration>,
    /// CPU the cycle is bound to; `None` leaves the choice to the scheduler, or to C.
    pub cpu: Option<usize>,
    /// Time before a release at which S wakes up and spins.
    pub spin_margin: Duration,
    /// Treatment of releases missed by an overrun.
    pub overrun: OverrunPolicy,
    /// Reply that a cycle works with.
    pub frame_order: FrameOrder,
    /// Outage of an axis after which its drive gets a quick stop; `None` for 20 cycles.
    pub outage_time: Option<Duration>,
    /// Behaviour of an axis after an outage.
    pub after_outage: AfterOutage,
    /// Loss of the bus after which the run ends; `None` waits for ever.
    pub loss_time: Option<Duration>,
}

impl Cycle {
    /// SCHED_FIFO priority, if P is selected.
    #[must_use]
    pub fn fifo_priority(&self) -> Option<u8> {
        self.profile.priority.then_some(self.priority)
    }
}
