//! Requests of a robot's cycle to the operating system.

use control::profile::{RealTimeProfile, Residency, Scheduling};
use robot::{Cycle, Robot};

/// The profile of the cycle's thread.
pub fn profile(cycle: &Cycle) -> RealTimeProfile {
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

/// Scheduling of simulated SubDevices: programs do not hold up real ones either. And real ones take no CPU from the
/// cycle: they come one priority below it.
pub fn simulated(robot: &Robot) -> Option<Scheduling> {
    let below = |priority: u8| priority.saturating_sub(1).max(1);
    robot.cycle.fifo_priority().map(|priority| Scheduling::Fifo { priority: below(priority) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use control::cycle::{CycleConfiguration, USUAL_LOSS};
    use control::profile::SPIN_MARGIN;

    use super::*;

    /// The crates `robot` and `runtime` do not know each other: each has these.
    #[test]
    fn a_cycle_of_which_the_file_says_only_the_period_is_the_usual_one() {
        let file = r#"
            name = "one"
            [cycle]
            period = "1ms"
            [bus]
            [[bus.sub_device]]
            name = "one"
        "#;
        let cycle = Robot::parse(file, "one.toml").unwrap().cycle;
        assert_eq!((cycle.loss_time, cycle.spin_margin), (Some(USUAL_LOSS), SPIN_MARGIN));
        let fifo = Some(Scheduling::Fifo { priority: cycle.priority });
        assert_eq!(RealTimeProfile::default().scheduling, fifo);
        let usual = CycleConfiguration::every(Duration::from_millis(1));
        assert_eq!((cycle.loss_time, cycle.overrun), (usual.loss, usual.overrun));
    }
}
