//! `measure tasks`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use onbeat_experiments::tasks::Tasks;
use support::{Folder, conduct, number, table};

// feature(measure): `measure tasks`: two tasks beside their computed response times
#[test]
fn both_tasks_run_their_jobs_beside_their_computed_response_times() {
    let folder = Folder::new();
    let experiment = Tasks { duration: Duration::from_millis(600), ..Tasks::default() };
    let report = conduct(&folder, |context| experiment.run(context));

    let responses = table(&report, "Response time, us");
    // The papers' task set: the first is never kept waiting, the second by three jobs of the first.
    assert_eq!(number(responses, "tau1", "computed R"), 500.0);
    assert_eq!(number(responses, "tau2", "computed R"), 3_000.0);
    for (task, jobs, execution) in [("tau1", 600, 500.0), ("tau2", 120, 1_500.0)] {
        let at = |column: &str| number(responses, task, column);
        assert!(at("minimum") <= at("average") && at("average") <= at("maximum"));
        assert!(at("computed R") >= execution);
        // A job used at least what was asked of it, and could not answer sooner (clocks differ by parts in ten thousand).
        let used = number(table(&report, "Processor time of a job"), task, "minimum");
        assert!(used >= execution && at("minimum") >= execution * 0.999, "{task}: {used}");

        let recording = folder.recording(task);
        assert!(recording.complete);
        assert_eq!(recording.header.columns, ["release_ns", "start_ns", "end_ns", "execution_ns"]);
        // On a machine that stood still for longer than ten periods some are passed over, and that is told.
        let told = report
            .text()
            .contains(&format!("{task}: {} releases were passed over", jobs - recording.rows().len()));
        assert!(recording.rows().len() == jobs || told, "{}", report.text());
        let (releases, period): (Vec<i64>, _) =
            (recording.column("release_ns").unwrap().collect(), 600_000_000 / jobs as i64);
        let apart = |pair: &[i64]| pair[1] - pair[0];
        assert!(releases.windows(2).all(|pair| apart(pair) > 0 && apart(pair) % period == 0));
        assert!(recording.rows().all(|row| row[0] <= row[1] && row[1] < row[2]));
    }
    // Both were released together: that is the critical instant the analysis speaks of.
    let first = |task: &str| folder.recording(task).column("release_ns").unwrap().next().unwrap();
    assert_eq!(first("tau1"), first("tau2"));
}
