//! Diagnosis of a run: causes of its late cycles, and disturbances of its real-time threads.

use std::thread;
use std::time::Duration;

use diagnose::Explainer;
use diagnose::disturbance::{CycleWatch, Disturbances};
use ipc::diagnostics::{LateCycles, Watched};
use machine::cpus::Cpus;
use machine::task;
use onbeat_ethercat_linux::link::{PacketLink, SIMULATED_SYSTEM_CALLS};
use record::CycleRecord;
use robot::{ControllerKind, RobotConfig};
use rt::clock::now_ns;
use rt::profile::{self, Grants};
use rt::task::Subject;
use types::late::{LateCycle, LateReport};
use types::time::nanoseconds;

use crate::compose::link::SimulatedTime;
use crate::robot::Settings;
use crate::summary::Diagnosis;
use crate::{Error, Notice, Reporter};

/// Lateness above which cycles are late without a request.
const LATE_ABOVE: Duration = Duration::from_micros(50);

/// Diagnosis of a run in progress.
pub(super) struct Diagnostician {
    explainer: Option<Explainer>,
    /// Explanations were requested: they are reported, recorded, and in the results.
    is_requested: bool,
    watch: Option<CycleWatch>,
}

impl Diagnostician {
    /// Starts to record for explanations: to be done before the cycle starts. Without a request
    /// late cycles are explained from their records if programs may `ask`.
    pub(super) fn start(
        asked: &Settings,
        robot: &RobotConfig,
        ask: bool,
        reporter: &mut dyn Reporter,
    ) -> Self {
        let is_requested = asked.late_above.is_some();
        let settings = diagnose::Settings {
            late_above_ns: nanoseconds(asked.late_above.unwrap_or(LATE_ABOVE)),
            period_ns: nanoseconds(robot.cycle.period),
            waits_for_reply: robot.cycle.frame_order == robot::FrameOrder::WaitForReply,
            cpu: profile::cpu(&robot.cycle.real_time_profile())
                .filter(|&cpu| is_requested && may_be_bound_to(cpu)),
        };
        let explainer = match (is_requested, ask) {
            (true, _) => Some(Explainer::start(settings)),
            (false, true) => Some(Explainer::by_records(settings)),
            (false, false) => None,
        };
        if let Some(why) = explainer.as_ref().and_then(Explainer::trace_is_missing) {
            reporter.notice(&Notice::NoTrace(why.to_string()));
        }
        Self { explainer, is_requested, watch: None }
    }

    /// Follows the thread of the cycle, and watches it and the other tasks, if requested.
    pub(super) fn follow(
        &mut self,
        settings: &Settings,
        robot: &RobotConfig,
        (thread, granted): (i32, &Grants),
        beside: impl Iterator<Item = Subject>,
    ) -> Result<(), Error> {
        self.explainer.iter_mut().for_each(|explainer| explainer.follow(thread));
        let Some(detail) = settings.watch else { return Ok(()) };
        let mut expected = match settings.wire.interface {
            Some(_) => PacketLink::SYSTEM_CALLS.to_vec(),
            None if settings.wire.time == SimulatedTime::Host => SIMULATED_SYSTEM_CALLS.to_vec(),
            None => Vec::new(),
        };
        let is_external = |it: &robot::Controller| it.kind == ControllerKind::External;
        if settings.wire.capture.is_some() || robot.controllers.iter().any(is_external) {
            // The thread that writes the file is woken up; so is a controller process, and waited
            // for.
            expected.push("futex");
        }
        let times = (robot.cycle.period, granted.spin_margin());
        let mut watch = CycleWatch::start(detail, thread, times, &expected)?;
        beside.for_each(|task| watch.add(task));
        self.watch = Some(watch);
        Ok(())
    }

    /// Takes a measured cycle.
    pub(super) fn see(&self, record: &CycleRecord) {
        self.watch.iter().for_each(|watch| watch.see(record));
    }

    /// Takes all cycles measured since the last look, once [`Self::see`] has had each; late ones
    /// are reported.
    pub(super) fn look(&mut self, measured: &[CycleRecord], reporter: &mut dyn Reporter) {
        if let Some(explainer) = &mut self.explainer {
            explainer.look(measured).into_iter().for_each(|late| reporter.late(late));
        }
    }

    /// Ends the measurement: the stop follows.
    pub(super) fn close(&self) {
        self.watch.iter().for_each(CycleWatch::close);
    }

    /// Disturbances of the cycle and of the other tasks, for clients; none unless they are watched.
    pub(super) fn watched(&self) -> Vec<Watched> {
        self.watch.iter().flat_map(CycleWatch::read).map(|found| watched(&found)).collect()
    }

    /// Late cycles of the last minutes, for programs that ask.
    pub(super) fn recent(&self) -> Option<Box<dyn Fn(u64) -> LateReport + Send>> {
        let recent = self.explainer.as_ref()?.recent();
        Some(Box::new(move |last_ns| recent.report(now_ns(), last_ns)))
    }

    /// Explainer of a run with explanations.
    fn requested(&self) -> Option<&Explainer> {
        self.explainer.as_ref().filter(|_| self.is_requested)
    }

    /// Late cycles with an explanation so far.
    pub(super) fn late(&self) -> Option<LateCycles> {
        let explainer = self.requested()?;
        Some(LateCycles {
            above_ns: explainer.late_above_ns(),
            count: explainer.late_cycles(),
            newest: explainer.newest().cloned().map(LateCycle::with_largest_causes).collect(),
        })
    }

    /// Late cycles that the last look explained.
    pub(super) fn explained(&self) -> &[LateCycle] {
        self.requested().map_or(&[], Explainer::explained)
    }

    /// Late cycles that no look has explained yet, at the end.
    pub(super) fn explain_rest(&mut self) -> &[LateCycle] {
        if let Some(explainer) = &mut self.explainer {
            explainer.look(&[]);
        }
        self.explained()
    }

    /// Results, after the end of the cycle.
    pub(super) fn finish(self) -> Diagnosis {
        Diagnosis {
            disturbances: self.watch.iter().flat_map(CycleWatch::read).collect(),
            explanation: self.explainer.filter(|_| self.is_requested).map(Explainer::finish),
        }
    }
}

/// True if the cycle will get the CPU it asks for: otherwise it may run on any, and all are
/// recorded. A thread tries it, so that this one stays where it is.
fn may_be_bound_to(cpu: usize) -> bool {
    let bind = move || task::set_affinity(task::current(), &Cpus::one(cpu)).is_ok();
    thread::spawn(bind).join().unwrap_or(false)
}

/// Disturbances of a thread, for clients.
fn watched(found: &Disturbances) -> Watched {
    let counts = found.counts;
    Watched {
        means: found.means.to_string(),
        preemptions: counts.preemptions,
        sleeps: counts.sleeps,
        minor_faults: counts.minor_faults,
        major_faults: counts.major_faults,
        system_calls: counts.system_calls,
        blocking_calls: counts.blocking_calls,
        causes: found.causes.iter().take(MOST_CAUSES).cloned().collect(),
        firsts: found.firsts.iter().map(ToString::to_string).collect(),
        missing: found.missing.clone(),
        lost: found.lost,
    }
}

/// Maximum number of reported causes: the document has space for all tasks.
const MOST_CAUSES: usize = 8;

#[cfg(test)]
mod tests {
    use diagnose::disturbance::{Counts, Disturbance, First, Frame, Kind, Means};

    use super::*;

    #[test]
    fn unavailable_cpu_is_not_recorded() {
        let mine = task::affinity(task::current()).unwrap();
        assert!(mine.last().is_some_and(may_be_bound_to));
        assert!(!may_be_bound_to(4095));
        assert_eq!(task::affinity(task::current()).unwrap(), mine, "this thread stays where it is");
    }

    #[test]
    fn findings_are_in_the_document() {
        let frame = Frame { function: "reads".into(), file: Some("a.rs".into()), line: Some(7) };
        let cause = |count| Disturbance {
            kind: Kind::Task,
            name: format!("thread {count}"),
            count,
            first_period: 1,
            last_period: 2,
        };
        let found = Disturbances {
            name: "sonar".into(),
            tid: 5,
            means: Means::Tracepoints,
            missing: vec![],
            counts: Counts { system_calls: 2, sleeps: 1, blocking_calls: 1, ..Counts::default() },
            causes: (0..20).rev().map(cause).collect(),
            firsts: vec![First {
                kind: Kind::BlockingCall,
                name: "read".into(),
                period: 9,
                at_ns: 1,
                backtrace: vec![frame],
                backtrace_period: Some(11),
            }],
            lost: 0,
        };
        let told = watched(&found);
        assert_eq!((told.system_calls, told.sleeps, told.blocking_calls), (2, 1, 1));
        let first = "blocking system call (read) in period 9, and in period 11 there\n    reads at a.rs:7";
        assert_eq!(told.firsts, [first]);
        assert_eq!(told.means, "tracepoints");
        let counts: Vec<u64> = told.causes.iter().map(|it| it.count).collect();
        assert_eq!(counts, [19, 18, 17, 16, 15, 14, 13, 12], "the most frequent, no more than find room");
        let json = serde_json::to_value(&told.causes[0]).unwrap();
        let expected = r#"{"kind":"task","name":"thread 19","count":19,"first_period":1,"last_period":2}"#;
        assert_eq!(json, serde_json::from_str::<serde_json::Value>(expected).unwrap());
    }
}
