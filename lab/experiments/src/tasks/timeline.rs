//! Timeline of the tasks: measured under computed.

use report::{Plot, Row, Section, Series, Table};
use schedulability::TaskSet;
use schedulability::timeline::Timeline;

use super::job::Job;
use crate::distribution::heads;

/// Start and end of each time a task ran, ns from the common release.
type Slices = Vec<(u64, u64)>;

/// Timelines of the tasks from an instant at which all are released together.
pub(super) struct Both {
    names: Vec<String>,
    computed: Vec<Slices>,
    measured: Vec<Slices>,
    length_ns: u64,
}

impl Both {
    /// Timelines of these jobs, about the middle of the run; `None` without a common release there.
    pub(super) fn of(set: &TaskSet, ran: &[Vec<Job>]) -> Option<Self> {
        let timeline = Timeline::of(set, set.tasks.first()?.cpu, None, LONGEST)?;
        let hyperperiod = set.tasks.iter().try_fold(1_u64, |lcm, task| {
            let divisor = greatest_common_divisor(lcm, task.period_ns);
            (lcm / divisor).checked_mul(task.period_ns)
        })?;
        let length_ns = timeline.end_ns.min(hyperperiod);
        let first = ran.first()?.first()?.release;
        let last = ran.iter().filter_map(|jobs| jobs.last()).map(|job| job.end).min()?;
        let middle = (last.saturating_sub(first) / 2) / hyperperiod;
        let from = first + middle * hyperperiod;
        let mut computed = vec![Slices::new(); set.tasks.len()];
        for row in timeline.rows {
            computed[row.place] = row.slices;
        }
        let cut = |slices: Slices| {
            let inside = slices.into_iter().filter(|&(begin, _)| begin < length_ns);
            inside.map(|(begin, end)| (begin, end.min(length_ns))).collect()
        };
        Some(Self {
            names: set.tasks.iter().map(|task| task.name.clone()).collect(),
            computed: computed.into_iter().map(cut).collect(),
            measured: measured(set, ran, from).into_iter().map(cut).collect(),
            length_ns,
        })
    }

    /// The timelines as letters and as a plot.
    pub(super) fn sections(&self, busy: &str) -> [Section; 2] {
        let letter_ms = self.length_ns as f64 / LETTERS as f64 / 1e6;
        let rows = self.names.iter().enumerate().flat_map(|(place, name)| {
            [("computed", &self.computed), ("measured", &self.measured)].map(|(what, slices)| Row {
                name: format!("{name}, {what}"),
                cells: vec![letters(&slices[place], self.length_ns)],
                from_paper: false,
            })
        });
        let length_ms = self.length_ns as f64 / 1e6;
        let table = Table {
            caption: format!(
                "Timeline from a common release in the middle of the run, {busy}: {length_ms} ms, a letter each {letter_ms:.3} ms; # runs for at \
                 least half of it, - for less"
            ),
            columns: heads("task", &["timeline"]),
            rows: rows.collect(),
        };
        let count = self.names.len();
        let series = self.names.iter().enumerate().flat_map(|(place, name)| {
            [("computed", &self.computed, 0.5), ("measured", &self.measured, 0.0)].map(
                |(what, slices, above)| {
                    let level = (count - place) as f64 + above;
                    Series {
                        name: format!("{name}, {what}"),
                        points: pulses(&slices[place], level, self.length_ns),
                    }
                },
            )
        });
        let plot = Plot {
            caption: format!("Timeline, measured under computed, {busy}: raised while it runs"),
            x: "ms from the common release".to_owned(),
            y: "task".to_owned(),
            series: series.collect(),
        };
        [Section::Table(table), Section::Curve(plot)]
    }
}

/// Slices from `from` on: from its start to its end a job runs, but for the times of jobs of higher
/// priorities.
fn measured(set: &TaskSet, ran: &[Vec<Job>], from: u64) -> Vec<Slices> {
    let mut all = vec![Slices::new(); ran.len()];
    let mut order: Vec<usize> = (0..ran.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(set.tasks[place].priority));
    // Times taken by the tasks so far, in order.
    let mut taken = Slices::new();
    for place in order {
        let mut own = Slices::new();
        for job in ran[place].iter().filter(|job| job.release >= from) {
            let (start, end) = (job.start - from, job.end.saturating_sub(from));
            let mut begin = start;
            for &(taken_from, taken_to) in taken.iter().filter(|slice| slice.1 > start && slice.0 < end) {
                if taken_from > begin {
                    own.push((begin, taken_from));
                }
                begin = begin.max(taken_to);
            }
            if begin < end {
                own.push((begin, end));
            }
            if own.len() > LONGEST {
                break;
            }
        }
        taken.extend(&own);
        taken.sort_unstable();
        all[place] = own;
    }
    all
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

/// Slices as letters.
fn letters(slices: &Slices, length_ns: u64) -> String {
    let ran = |number: u64| {
        let (from, to) = (number * length_ns / LETTERS, (number + 1) * length_ns / LETTERS);
        let within = slices.iter().map(|&(begin, end)| end.min(to).saturating_sub(begin.max(from)));
        within.sum::<u64>() as f64 / (to - from).max(1) as f64
    };
    let letter = |share: f64| match share {
        0.5.. => '#',
        0.000_001.. => '-',
        _ => '.',
    };
    (0..LETTERS).map(|number| letter(ran(number))).collect()
}

/// A line that is raised above its level within slices, in ms.
fn pulses(slices: &Slices, level: f64, length_ns: u64) -> Vec<(f64, f64)> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let pulse = |&(begin, end): &(u64, u64)| {
        [(ms(begin), level), (ms(begin), level + RAISED), (ms(end), level + RAISED), (ms(end), level)]
    };
    let ends = [(0.0, level), (ms(length_ns), level)];
    [ends[0]].into_iter().chain(slices.iter().flat_map(pulse)).chain([ends[1]]).collect()
}

/// Letters of a timeline.
const LETTERS: u64 = 50;

/// Height of a pulse; tasks are one apart.
const RAISED: f64 = 0.4;

/// Slices of one timeline.
const LONGEST: usize = 20_000;

#[cfg(test)]
mod tests {
    use schedulability::Task;

    use super::*;

    fn job(release: u64, start: u64, end: u64) -> Job {
        Job { release, start, end, execution: end - start, outside: [0; 2] }
    }

    #[test]
    fn a_job_runs_but_for_the_times_of_higher_priorities() {
        let tasks =
            vec![Task::new("high", 2, 1_000_000, 500_000), Task::new("low", 1, 5_000_000, 1_500_000)];
        let set = TaskSet::new(tasks);
        let high =
            (0..20).map(|n| job(n * 1_000_000, n * 1_000_000 + 10, n * 1_000_000 + 500_010)).collect();
        let low = (0..4)
            .map(|n| job(n * 5_000_000, n * 5_000_000 + 500_020, n * 5_000_000 + 3_000_000))
            .collect();
        let both = Both::of(&set, &[high, low]).unwrap();
        assert_eq!(both.length_ns, 5_000_000);
        assert_eq!(
            both.computed[1],
            [(500_000, 1_000_000), (1_500_000, 2_000_000), (2_500_000, 3_000_000)]
        );
        assert_eq!(
            both.measured[1],
            [(500_020, 1_000_010), (1_500_010, 2_000_010), (2_500_010, 3_000_000)]
        );
        assert_eq!(both.measured[0].len(), 5);
        assert_eq!(
            letters(&both.computed[1], 5_000_000),
            ".....#####.....#####.....#####...................."
        );
        let [Section::Table(table), Section::Curve(plot)] = &both.sections("test") else {
            panic!("a table and a plot")
        };
        assert_eq!((table.rows.len(), plot.series.len()), (4, 4));
        assert!(plot.series.iter().all(|it| it.points.windows(2).all(|pair| pair[0].0 <= pair[1].0)));
    }
}
