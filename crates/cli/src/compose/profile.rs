//! What a robot's cycle asks of the operating system.

use robot::{Cycle, Overrun, Robot};
use runtime::pacer::OverrunPolicy;
use runtime::profile::{RealTimeProfile, Residency, Scheduling};

/// The profile of the cycle's thread.
pub(crate) fn profile(cycle: &Cycle) -> RealTimeProfile {
    let fifo = Scheduling::Fifo { priority: cycle.priority };
    let scheduling = cycle.deadline_runtime.map_or(fifo, |runtime| Scheduling::Deadline {
        runtime,
        deadline: cycle.period,
        period: cycle.period,
    });
    RealTimeProfile {
        scheduling: cycle.profile.priority.then_some(scheduling),
        memory: cycle.profile.memory.then(Residency::default),
        shield: cycle.profile.shield,
        spin: cycle.profile.spin.then_some(cycle.spin_margin),
        cpu: cycle.cpu,
    }
}

/// What its pacer does with releases that a beat ran past.
pub(crate) fn overrun(cycle: &Cycle) -> OverrunPolicy {
    match cycle.overrun {
        Overrun::Skip => OverrunPolicy::Skip,
        Overrun::CatchUp => OverrunPolicy::CatchUp,
        Overrun::Stop => OverrunPolicy::Stop,
    }
}

/// How simulated SubDevices are scheduled: programs do not hold up real ones either. And real ones take no CPU from the
/// cycle: they come one priority below it.
pub(crate) fn simulated(robot: &Robot) -> Option<Scheduling> {
    let below = |priority: u8| priority.saturating_sub(1).max(1);
    robot.cycle.fifo_priority().map(|priority| Scheduling::Fifo { priority: below(priority) })
}
