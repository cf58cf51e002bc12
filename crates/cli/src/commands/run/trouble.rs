//! End of a run in words: lost SubDevices, drives in fault, stopped axes.

use control::bus::MOST_NAMED as MOST_TOLD;
use control::status::Status;
use control::verdict::Finding;
use onbeat::compose::findings::FindingWords;
use robot::RobotConfig;

use crate::failure::Failure;

/// Most findings named after the listed causes.
const MOST_NAMED: usize = 12;

/// States of the SubDevices and the axes when the run came to its end.
pub(super) struct Standing<'a> {
    pub(super) robot: &'a RobotConfig,
    /// Before the stop.
    pub(super) status: &'a Status,
    /// Cause for which the link carried no frames at the end, if that is known.
    pub(super) link_trouble: Option<&'a str>,
}

impl Standing<'_> {
    /// True if the drive of this axis answered.
    pub(super) fn drive_answers(&self, axis: usize) -> bool {
        self.answers(self.robot.axes[axis].sub_device)
    }

    /// True if this SubDevice did.
    pub(super) fn answers(&self, position: usize) -> bool {
        let it = self.status.sub_devices.get(position);
        it.is_none_or(|it| it.silent_for(self.robot.cycle.period).is_none())
    }

    /// Findings, each a sentence with its exit code; of many alike the first, and the names of the
    /// rest.
    pub(super) fn verdict(&self, findings: &[Finding]) -> Result<(), Failure> {
        let mut verdict = Ok(());
        for alike in findings.chunk_by(|one, next| kind(one) == kind(next)) {
            let (told, rest) = alike.split_at(alike.len().min(MOST_TOLD));
            let rest =
                (!rest.is_empty()).then(|| Failure::new(self.names(rest)).or_code(rest[0].exit_code()));
            for failure in told.iter().map(|it| self.failure(it)).chain(rest) {
                verdict = Failure::both(verdict, Err(failure));
            }
        }
        verdict
    }

    fn failure(&self, finding: &Finding) -> Failure {
        Failure::new(self.sentence(finding)).or_code(finding.exit_code())
    }

    /// Positions of the findings that are not listed one by one.
    fn names(&self, rest: &[Finding]) -> String {
        let names: Vec<String> =
            rest.iter().filter_map(|it| self.words().place_of(it)).take(MOST_NAMED).collect();
        let more = match rest.len() - names.len() {
            0 => String::new(),
            more => format!("; and {more} more, which --json has in its findings"),
        };
        format!("nor did {} more end well: {}{more}", rest.len(), names.join(", "))
    }

    fn words(&self) -> FindingWords<'_> {
        FindingWords { robot: self.robot, status: self.status, link_trouble: self.link_trouble }
    }

    /// One finding in words: where, what was expected, what was found, and what to do.
    pub(super) fn sentence(&self, finding: &Finding) -> String {
        self.words().sentence(finding)
    }

    /// Reason that an axis is not enabled that its controller wants to be, with what to do.
    pub(super) fn not_enabled(&self, axis: usize) -> Option<String> {
        self.words().not_enabled(axis)
    }
}

/// Kind of a finding; findings of one kind are named together.
fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Overrun { .. }
        | Finding::BusFailed { .. }
        | Finding::BusLost { .. }
        | Finding::ControllerLost
        | Finding::CommandLost => "",
        Finding::AxisInFault { .. }
        | Finding::AxisStopped { .. }
        | Finding::QuickStopIgnored { .. }
        | Finding::NotEnabled { .. }
        | Finding::NotDisabled { .. } => "axes",
        Finding::Silent { .. } | Finding::OutsideOp { .. } | Finding::LostInTheStop { .. } => "SubDevices",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::observer::Cause;
    use motion::supervision::StopReason;
    use robot::Overrides;

    fn told(findings: &[Finding]) -> Vec<String> {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let status = Status::initial(6, 6);
        let standing = Standing { robot: &robot, status: &status, link_trouble: None };
        let verdict = standing.verdict(findings).unwrap_err().to_string();
        verdict.lines().map(str::to_owned).collect()
    }

    // feature(program): exit codes, from one verdict for program and fault matrix
    #[test]
    fn of_many_that_did_not_end_well_the_rest_is_named() {
        let lost = |position| Finding::LostInTheStop { position, cycles: 7 };
        let stopped = |axis| Finding::AxisStopped {
            axis,
            reason: StopReason::Stale,
            with: None,
            because: Cause::default(),
        };
        let findings: Vec<Finding> = (0..4).map(stopped).chain((0..5).map(lost)).collect();
        let few = told(&findings);
        assert_eq!(few.len(), 8, "{few:#?}");
        assert_eq!(few[3], "nor did 1 more end well: axis \"axis-4\"");
        assert!(few[4].starts_with("SubDevice 0 \"drive-1\" did not answer for 7 cycles"), "{few:#?}");
        assert_eq!(few[7], "nor did 2 more end well: SubDevice 3 \"drive-4\", SubDevice 4 \"drive-5\"");
        let last = told(&(0..20).map(lost).collect::<Vec<_>>()).pop().unwrap();
        assert!(last.starts_with("nor did 17 more end well: SubDevice 3 "), "{last}");
        assert!(last.ends_with("; and 5 more, which --json has in its findings"), "{last}");
    }
}
