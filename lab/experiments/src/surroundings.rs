//! State of the machine before and during a measurement, and the resulting doubts.

use std::path::Path;
use std::time::Duration;

use machine::conditions::{self, Conditions};
use machine::usage::{Busy, Usage};
use report::Report;
use robot::{Overrides, RobotConfig};

use crate::Context;

/// Observer of the machine during a measurement.
#[derive(Debug)]
pub struct Surroundings {
    conditions: Conditions,
    before: Option<Busy>,
    begin: Option<Usage>,
}

impl Surroundings {
    /// Observes the machine for a second before anything is started, then begins.
    #[must_use]
    pub fn begin(context: &Context) -> Self {
        let (conditions, first) = (conditions::read(), Usage::now().ok());
        context.wait(LOOK);
        let begin = Usage::now().ok();
        let before = begin.as_ref().zip(first.as_ref()).map(|(now, first)| now.since(first));
        Self { conditions, before, begin }
    }

    /// The same for a measurement of this robot; without a file of the built-in one. A file with an
    /// error ends the measurement, which reports it.
    #[must_use]
    pub(crate) fn of_robot(mut self, file: Option<&Path>) -> Self {
        if let Ok(robot) = RobotConfig::read_or_built_in(file, Overrides::default()) {
            self.conditions = self.conditions.of_robot(&robot.name, robot.sha256());
        }
        self
    }

    /// Adds the conditions and doubts to a report; to be called after the measurement.
    pub fn end(&self, report: &mut Report) {
        report.facts(&conditions::facts(&self.conditions));
        let over = self.begin.as_ref().and_then(|begin| Some(Usage::now().ok()?.since(begin)));
        for (name, busy) in [("machine before", &self.before), ("machine meanwhile", &over)] {
            report.condition(name, busy.as_ref().map_or("not known".to_owned(), Busy::to_string));
        }
        self.doubt(over.as_ref(), report);
        if cfg!(debug_assertions) {
            report.warn("this program was built without optimisation; measure with one built by `cargo build --release`");
        }
    }

    fn doubt(&self, over: Option<&Busy>, report: &mut Report) {
        let percent = |share: f64| (share * 100.0).round();
        if let Some(busy) = self.before.as_ref().map(|it| it.whole.busy).filter(|&busy| busy > BUSY) {
            report.warn(format!(
                "the machine was {} % busy before the measurement began: stop what else runs, and measure again",
                percent(busy)
            ));
        }
        if let Some(steal) = over.map(|it| it.whole.steal).filter(|&steal| steal > STOLEN) {
            report.warn(format!(
                "the hypervisor ran something else for {:.1} % of the time: the tails are its own; \
                 measure on hardware or on a machine with dedicated CPUs",
                steal * 100.0
            ));
        }
        if !self.conditions.preempt_rt {
            report.warn("the kernel is not a PREEMPT_RT one; install one for bounded latencies");
        }
        if let Some(governor) = self.conditions.governor.as_deref().filter(|&it| it != "performance") {
            report.warn(format!("the CPU frequency governor is {governor}; set it to performance"));
        }
    }
}

/// Time of observation before a measurement.
const LOOK: Duration = Duration::from_secs(1);

/// Share of busy time before a measurement above which the machine was not idle.
const BUSY: f64 = 0.1;

/// Share of stolen time above which the hypervisor affects the numbers: one cycle in a thousand.
const STOLEN: f64 = 0.001;

#[cfg(test)]
mod tests {
    use machine::usage::Shares;

    use super::*;

    fn busy(busy: f64, steal: f64) -> Busy {
        let whole = Shares { busy, idle: 1.0 - busy - steal, steal };
        Busy { whole, ..Busy::default() }
    }

    fn warnings(before: Busy, over: Busy) -> Vec<String> {
        let conditions = Conditions { preempt_rt: true, ..Conditions::default() };
        let mut report = Report::default();
        Surroundings { conditions, before: Some(before), begin: None }.doubt(Some(&over), &mut report);
        report.warnings
    }

    #[test]
    fn a_quiet_dedicated_machine_raises_no_doubt() {
        assert_eq!(warnings(busy(0.02, 0.0), busy(0.9, 0.0)), Vec::<String>::new());
    }

    #[test]
    fn what_ran_before_and_what_was_stolen_is_said() {
        let said = warnings(busy(0.4, 0.0), busy(0.9, 0.02));
        assert!(said[0].contains("40 % busy before") && said[1].contains("2.0 % of the time"), "{said:?}");
        assert_eq!(said.len(), 2);
    }
}
