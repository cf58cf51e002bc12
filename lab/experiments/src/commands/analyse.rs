//! `onbeat analyse`: the proof.

mod bus;
mod gantt;
mod json;
mod source;
mod text;

use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use schedulability::{Effort, Policy, TaskSet, analyse, assignment, timeline::Timeline};

use cli::arguments::named;
use cli::failure::Failure;
use cli::output;

/// Exit code 0: every task is proven to meet its deadline; 3: not every one; 1: the file cannot be
/// analysed.
#[derive(Args, Debug)]
pub(crate) struct Analyse {
    /// A task set (TOML), a recorded run (`onbeat run --record`), or a robot file, of which the bus
    /// is analysed
    file: PathBuf,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,

    /// Take measured execution times this much longer; a measurement is no proof that nothing takes
    /// longer
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "20%")]
    margin: f64,

    /// Draw the schedule of all tasks from the critical instant on
    #[arg(long, value_name = "OUT.svg")]
    gantt: Option<PathBuf>,

    /// Show the steps of each task's iteration, too
    #[arg(long)]
    steps: bool,

    /// Reassign the priorities
    #[arg(long, value_name = "HOW")]
    assign: Option<Assign>,

    /// Order of priorities, instead of the file's
    #[arg(long, value_name = "POLICY", value_parser = policy())]
    policy: Option<Policy>,

    /// Reassign the tasks to this many processors
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,

    /// Way to spread them
    #[arg(long, value_name = "HOW", requires = "cpus", default_value = "worst-fit")]
    partition: Partition,

    #[command(flatten)]
    bus: bus::Options,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Assign {
    /// The shorter the period, the higher
    Rate,
    /// The shorter the deadline, the higher
    Deadline,
    /// Audsley's search: finds priorities that work if there are any
    Audsley,
}

/// Policies, with their help.
fn policy() -> impl TypedValueParser<Value = Policy> {
    named(Policy::ALL.map(|it| {
        let help = match it {
            Policy::FixedPriority => "Fixed priorities, as SCHED_FIFO",
            Policy::EarliestDeadline => "Earliest deadline first",
            Policy::Reservation => "Reservations of SCHED_DEADLINE",
        };
        (it, it.name(), help)
    }))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Partition {
    /// Each to the first processor where all deadlines are met
    FirstFit,
    /// Each to the least loaded one
    WorstFit,
}

impl Analyse {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if self.bus.bus || robot::task_set::is_a_robots(&self.file) {
            return bus::analyse(&self.file, self.bus, self.json);
        }
        let decided = robot::task_set::Decided { policy: self.policy, priorities: self.assign.is_some() };
        let source::Source { mut set, notes } = source::read(&self.file, decided, self.margin)?;
        let mut notes = notes;
        if let Some(assign) = self.assign {
            notes.push(given_priorities(&mut set, assign)?);
        }
        if let Some(cpus) = self.cpus {
            notes.push(self.spread(&mut set, usize::from(cpus))?);
        }
        if self.steps && set.policy != Policy::FixedPriority {
            return Err(Failure::new(format!(
                "--steps: found policy \"{}\", expected policy \"fp\": only its responses are \
                 found by iteration",
                set.policy.name()
            )));
        }
        let found =
            analyse(&set).map_err(|error| Failure::new(format!("{}: {error}", self.file.display())))?;
        if let Some(path) = &self.gantt {
            draw(&set, &found, path)?;
        }
        if self.json {
            let mut object = json::object(&set, &found, &notes);
            if self.steps {
                json::add_steps(&set, &mut object);
            }
            output::print(format_args!("{object}\n"))?;
        } else {
            output::print(text::of(&self.file.display().to_string(), &set, &found, &notes, self.steps))?;
        }
        if found.schedulable { Ok(()) } else { Err(Failure::silent(NOT_SCHEDULABLE)) }
    }

    fn spread(&self, set: &mut TaskSet, cpus: usize) -> Result<String, Failure> {
        let (fit, name) = match self.partition {
            Partition::FirstFit => (assignment::Fit::First, "first fit"),
            Partition::WorstFit => (assignment::Fit::Worst, "worst fit"),
        };
        assignment::partition(set, cpus, fit, &Effort::default()).map_err(|task| {
            let sentence = format!(
                "{}: task \"{task}\" fits on none of {cpus} processors after the heavier tasks \
                 ({name}), expected one with all deadlines met: try more --cpus or shorter \
                 execution times",
                self.file.display()
            );
            Failure::new(sentence).or_code(NOT_SCHEDULABLE)
        })?;
        Ok(format!("spread over {cpus} processors by {name}, the heaviest task first"))
    }
}

fn given_priorities(set: &mut TaskSet, assign: Assign) -> Result<String, Failure> {
    if set.policy != Policy::FixedPriority {
        return Err(Failure::new(
            "--assign gives priorities, found a policy without, expected policy \"fp\": leave one of the two out",
        ));
    }
    Ok(match assign {
        Assign::Rate => {
            assignment::rate_monotonic(set);
            "priorities given rate monotonic"
        }
        Assign::Deadline => {
            assignment::deadline_monotonic(set);
            "priorities given deadline monotonic"
        }
        Assign::Audsley => {
            if assignment::audsley(set, &Effort::default()) {
                "priorities given by Audsley's search"
            } else {
                assignment::deadline_monotonic(set);
                "Audsley's search found that no priorities meet all deadlines; these are deadline monotonic"
            }
        }
    }
    .to_owned())
}

/// Draws the processor with the most to show: the first with a task that is late, else the busiest.
fn draw(set: &TaskSet, found: &schedulability::Analysis, path: &Path) -> Result<(), Failure> {
    let late = set.tasks.iter().zip(&found.tasks).position(|(_, verdict)| !verdict.schedulable);
    let busiest = found.processors.iter().max_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
    let cpu =
        late.map_or_else(|| busiest.map_or(0, |processor| processor.cpu), |place| set.tasks[place].cpu);
    let Some(timeline) = Timeline::of(set, cpu, late, LONGEST_PICTURE) else {
        return Err(Failure::new("no task to draw"));
    };
    let picture = gantt::picture(set, &timeline, cpu);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !extension.eq_ignore_ascii_case("svg") {
        let file = path.display();
        let remedy = "for another format, convert it: rsvg-convert OUT.svg -o OUT.png";
        return Err(Failure::new(format!("--gantt {file}: expected a name that ends in .svg; {remedy}")));
    }
    std::fs::write(path, gantt::of(&picture))
        .map_err(|error| Failure::new(format!("{}: cannot be written ({error})", path.display())))
}

/// `20%` or `0.2`, as a share.
fn percent(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number.trim().parse::<f64>().ok().map(|number| number * scale);
    share
        .filter(|share| (0.0..=10.0).contains(share))
        .ok_or_else(|| format!("found \"{text}\", expected a margin as 20% or 0.2, at most 1000%"))
}

/// A time in the largest unit of which there is a whole one, exact.
fn time(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let Some((unit, length)) = units.into_iter().find(|&(_, length)| ns >= length) else {
        return if ns == 0 { "0".into() } else { format!("{ns}ns") };
    };
    let digits = length.ilog10() as usize;
    let exact = format!("{}.{:0digits$}", ns / length, ns % length);
    format!("{}{unit}", exact.trim_end_matches('0').trim_end_matches('.'))
}

/// Exit code when a task is not proven to meet its deadline.
const NOT_SCHEDULABLE: u8 = 3;

/// Pieces of execution in one picture.
const LONGEST_PICTURE: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_exact() {
        for (ns, text) in
            [(0, "0"), (7, "7ns"), (27_040, "27.04us"), (1_500_000, "1.5ms"), (10_000_000_000, "10s")]
        {
            assert_eq!(time(ns), text);
            assert!(ns == 0 || types::duration::parse(text).unwrap().as_nanos() == u128::from(ns));
        }
        assert_eq!(time(1_000_000_001), "1.000000001s");
    }

    #[test]
    fn margins_are_shares_or_per_cent() {
        assert_eq!(percent("20%"), Ok(0.2));
        assert_eq!(percent("0"), Ok(0.0));
        assert!(percent("-1%").is_err() && percent("nan").is_err() && percent("").is_err());
    }
}
