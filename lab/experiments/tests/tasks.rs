//! `measure tasks`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use onbeat_experiments::tasks::{Busy, Tasks, Toggle};
use support::{Folder, conduct, goes_on, number, table};

// feature(measure): `measure tasks`: two tasks and their computed response times, busy in blocks of elapsed time and by processor time
// feature(measure): `--continue DIR` of `tasks`
#[test]
fn both_tasks_run_next_to_their_computed_response_times() {
    let folder = Folder::new();
    let experiment = Tasks { duration: Duration::from_millis(600), ..Tasks::named("controllers").unwrap() };
    let report = conduct(&folder, |context| experiment.run(context));

    let computed = table(&report, "Computed: worst response");
    // The paper's task set: the first is never kept waiting, the second by three jobs of the first.
    assert_eq!(
        (number(computed, "tau1", "computed R"), number(computed, "tau2", "computed R")),
        (500.0, 3_000.0)
    );
    let slack = |row: &str| computed.rows.iter().find(|it| it.name == row).unwrap().cells[5].clone();
    assert_eq!(["tau1", "tau2", "system"].map(slack), ["39.45 %", "65.63 %", "24.61 %"]);
    for (busy, slug) in [("blocks of elapsed time", "blocks"), ("processor time", "processor-time")] {
        let of = |caption: &str| {
            let tables = report.sections.iter().filter_map(|it| match it {
                report::Section::Table(table) => Some(table),
                _ => None,
            });
            let mut found = tables
                .filter(|it| it.caption.starts_with(caption) && it.caption.contains(&format!(", {busy}")));
            found.next().unwrap_or_else(|| panic!("{caption}, {busy}"))
        };
        let responses = of("Response time, us");
        let mut stood_still = false;
        for (task, jobs, execution) in [("tau1", 600, 500.0), ("tau2", 120, 1_500.0)] {
            let at = |column: &str| number(responses, task, column);
            assert!(at("minimum") <= at("average") && at("average") <= at("maximum"));
            // A job could not answer sooner (clocks differ by parts in ten thousand), and used its
            // time where that counts.
            assert!(at("minimum") >= execution * 0.999, "{task}");
            let used = number(of("Processor time of a job"), task, "minimum");
            assert!(slug == "blocks" || used >= execution, "{task}: {used}");

            let recording = folder.recording(&format!("{task}-{slug}"));
            assert!(recording.complete);
            assert_eq!(recording.header.columns, ["release_ns", "start_ns", "end_ns", "execution_ns"]);
            // A host stall longer than ten periods skips some, and the report says so.
            let passed_over = jobs - recording.rows().len();
            // The last of them may lie behind the end.
            let is_told =
                |count| report.text().contains(&format!("{task}: {count} releases were passed over"));
            let told = is_told(passed_over) || is_told(passed_over + 1);
            assert!(passed_over == 0 || told, "{}", report.text());
            stood_still |= passed_over > 0;
            let (releases, period): (Vec<i64>, _) =
                (recording.column("release_ns").unwrap().collect(), 600_000_000 / jobs as i64);
            let apart = |pair: &[i64]| pair[1] - pair[0];
            assert!(releases.windows(2).all(|pair| apart(pair) > 0 && apart(pair) % period == 0));
            assert!(recording.rows().all(|row| row[0] <= row[1] && row[1] < row[2]));
        }
        // Both were released together: that is the critical instant the analysis speaks of.
        let first = |task: &str| {
            folder.recording(&format!("{task}-{slug}")).column("release_ns").unwrap().next().unwrap()
        };
        assert_eq!(first("tau1"), first("tau2"));
        let timeline = of("Timeline from a common release");
        assert_eq!(timeline.rows[0].cells[0], "#####.....#####.....#####.....#####.....#####.....");
        // The shown piece may include the host stall.
        let runs = |row: &report::Row| stood_still || row.cells[0].contains('#');
        assert!(timeline.rows.iter().all(|row| row.cells[0].len() == 50 && runs(row)));
    }
    goes_on(&folder, &report, |context| experiment.run(context));
}

// feature(measure): `measure tasks`: any task set, with its measured timeline under the computed one
#[test]
fn a_task_set_of_a_file_runs_too() {
    let folder = Folder::new();
    let path = folder.0.join("set.toml");
    let text = "[[task]]\nname = \"a b\"\npriority = 5\nperiod = \"10ms\"\nwcet = \"1ms\"\n";
    std::fs::write(&path, text).unwrap();
    let named = Tasks::named(path.to_str().unwrap()).unwrap();
    let experiment = Tasks { duration: Duration::from_millis(100), ..named };
    let report = conduct(&folder, |context| experiment.run(context));
    assert!(folder.recording("a-b-blocks").rows().len() > 1);
    assert!(report.values["tasks"].as_array().unwrap().len() == 2 && report.found.is_none());
    assert_eq!(table(&report, "Timeline from a common release").rows.len(), 2);
}

// feature(measure): `measure tasks --toggle`: outputs that the tasks toggle, measured from outside and by their own time stamps
#[test]
fn tasks_toggle_an_output_that_is_seen_from_outside_as_they_say() {
    let folder = Folder::new();
    // A twentieth of the processor: the controllers' four fifths leave tau2 none on a machine that
    // is robbed of a fifth.
    let path = folder.0.join("set.toml");
    let text = [("tau1", 80, "1ms", "20us"), ("tau2", 70, "5ms", "150us")].map(|(name, priority, period, wcet)| {
        format!("[[task]]\nname = \"{name}\"\npriority = {priority}\nperiod = \"{period}\"\nwcet = \"{wcet}\"\n")
    });
    std::fs::write(&path, text.concat()).unwrap();
    let experiment = Tasks {
        duration: Duration::from_millis(600),
        busy: vec![Busy::ProcessorTime],
        toggle: Toggle::Frames,
        ..Tasks::named(path.to_str().unwrap()).unwrap()
    };
    if let Err(error) = onbeat_experiments::cable::Cable::lay() {
        return testkit::skip!("{error}");
    }
    let report = conduct(&folder, |context| experiment.run(context));
    let periods = table(&report, "Period seen from outside, us");
    let names: Vec<&str> = periods.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["tau1: own stamps", "tau1: from outside", "tau2: own stamps", "tau2: from outside"]);
    for (task, period_ns) in [("tau1", 1_000_000), ("tau2", 5_000_000)] {
        let recording = folder.recording(&format!("{task}-processor-time"));
        let columns =
            ["release_ns", "start_ns", "end_ns", "execution_ns", "outside_up_ns", "outside_down_ns"];
        assert_eq!(recording.header.columns, columns);
        let rows: Vec<Vec<i64>> = recording.rows().map(<[i64]>::to_vec).collect();
        let seen: Vec<&Vec<i64>> = rows.iter().filter(|row| row[4] != 0 && row[5] != 0).collect();
        // An ordinary thread reads the frames, which a busy machine may delay; that is reported.
        assert!(seen.len() * 2 > rows.len(), "{} of {}", seen.len(), rows.len());
        assert!(seen.len() == rows.len() || report.text().contains("were not seen outside"));
        // The output is up within the job: by what its own stamps say, never for longer.
        for row in &seen {
            let (up, own) = (row[5] - row[4], row[2] - row[1]);
            assert!(up > 0 && up <= own + own / 1_000, "{task}: {up} ns seen, {own} ns by its own stamps");
        }
        // The outside observer counts the same periods as the tasks.
        let first = |column: usize| seen[0][column];
        let last = |column: usize| seen[seen.len() - 1][column];
        let [own, outside] =
            [1, 4].map(|column| (last(column) - first(column) + period_ns / 2) / period_ns);
        assert!(own == outside && own > 10, "{task}: {own} periods, {outside} seen");
    }
    let of = |name: &str| {
        report.values["tasks"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert!(of("tau1")["outside"]["period_ns"]["count"].as_u64().unwrap() > 100, "{}", of("tau1"));
    goes_on(&folder, &report, |context| experiment.run(context));
}
