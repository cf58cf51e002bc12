//! The analysis for people.

use std::fmt::Write as _;

use report::{Row, Table};
use schedulability::advice::{self, Change, Miss, Part};
use schedulability::earliest_deadline::Feasibility;
use schedulability::utilisation::{hyperbolic_product, liu_layland_bound};
use schedulability::verdict::Processor;
use schedulability::{Analysis, Policy, Protocol, ResponseTime, TaskSet, fixed_priority};

use super::time;

/// Table, bounds and verdict.
pub(super) fn of(
    file: &str,
    set: &TaskSet,
    found: &Analysis,
    notes: &[String],
    with_steps: bool,
) -> String {
    let policy = match set.policy {
        Policy::FixedPriority => "fixed priorities",
        Policy::EarliestDeadline => "earliest deadline first",
        Policy::Reservation => "SCHED_DEADLINE reservations",
    };
    let locks = set.tasks.iter().flat_map(|task| &task.sections).any(|section| section.resource.is_some());
    let protocol = match (locks, set.protocol) {
        (false, _) => "",
        (true, Protocol::Inheritance) => ", locks with priority inheritance",
        (true, Protocol::Ceiling) => ", locks with priority ceilings",
        (true, Protocol::None) => ", locks without a protocol",
    };
    let count =
        |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let mut text = format!(
        "{file}: {} on {}, {policy}{protocol}\n\n",
        count(set.tasks.len(), "task"),
        count(found.processors.len(), "processor"),
    );
    let _ = writeln!(
        text,
        "computed  the longest time from a release to the end of its job, if no job exceeds its WCET"
    );
    let _ =
        writeln!(text, "good      every response within its deadline, and slack for what was not foreseen");
    for note in notes {
        let _ = writeln!(text, "note      {note}");
    }
    let _ = write!(text, "\n{}\n", table(set, found).text());
    if with_steps {
        text.push_str(&steps(set));
    }
    for processor in &found.processors {
        let _ = writeln!(text, "{}", bounds(set, found, processor));
    }
    let _ = writeln!(text, "slack of all together: {} (MAST's way: {})\n", found.slack, found.mast_slack);
    text.push_str(&verdict(set, found));
    text
}

/// Steps of each task's iteration.
fn steps(set: &TaskSet) -> String {
    let mut text = "Steps of W for the first job, from W = blocking + wcet on\n".to_owned();
    for (place, task) in set.tasks.iter().enumerate() {
        let steps = fixed_priority::steps(set, place);
        let found: Vec<String> = steps.into_iter().map(time).collect();
        let found = if found.is_empty() { "none: it cannot be preempted".into() } else { found.join(", ") };
        let _ = writeln!(text, "{}: {found}", task.name);
    }
    text.push('\n');
    text
}

fn table(set: &TaskSet, found: &Analysis) -> Table {
    let fixed = set.policy == Policy::FixedPriority;
    let mut columns = vec!["task", "cpu"];
    columns.extend(fixed.then_some("priority"));
    columns.extend([
        "period",
        "wcet",
        "deadline",
        "jitter",
        "blocking",
        "response",
        "slack",
        "slack (MAST)",
        "",
    ]);
    let rows = set.tasks.iter().zip(&found.tasks).map(|(task, verdict)| {
        let mut cells = vec![task.cpu.to_string()];
        cells.extend(fixed.then(|| task.priority.to_string()));
        cells.extend([task.period_ns, task.wcet_ns, task.deadline_ns, task.jitter_ns].map(time));
        cells.extend([
            time(verdict.blocking_ns),
            match verdict.response {
                ResponseTime::Bounded(ns) => time(ns),
                ResponseTime::Unbounded => "no bound".into(),
                ResponseTime::AtLeast(ns) => format!("> {}", time(ns)),
            },
            verdict.slack.to_string(),
            verdict.mast_slack.to_string(),
            if verdict.schedulable { "ok" } else { "LATE" }.into(),
        ]);
        Row { name: task.name.clone(), cells, from_paper: false }
    });
    Table {
        caption: "Worst responses".into(),
        columns: columns.into_iter().map(String::from).collect(),
        rows: rows.collect(),
    }
}

fn bounds(set: &TaskSet, found: &Analysis, processor: &Processor) -> String {
    let here = || set.tasks.iter().filter(|task| task.cpu == processor.cpu);
    let meets = set.tasks.iter().zip(&found.tasks).filter(|(task, _)| task.cpu == processor.cpu);
    let exact = if meets.into_iter().all(|(_, verdict)| verdict.schedulable) {
        "schedulable"
    } else {
        "not schedulable"
    };
    let mut text = format!("cpu {}: utilisation {:.2} %", processor.cpu, processor.utilisation * 100.0);
    if set.policy == Policy::FixedPriority {
        let simple =
            here().all(|task| task.deadline_ns == task.period_ns && task.preemptive && task.jitter_ns == 0);
        let rate = here().all(|task| {
            here().all(|other| task.period_ns <= other.period_ns || task.priority <= other.priority)
        });
        let (bound, product) = (liu_layland_bound(processor.tasks), hyperbolic_product(here()));
        let _ = write!(
            text,
            "; Liu and Layland's bound {:.2} %: {}; hyperbolic product {product:.3}: {}",
            bound * 100.0,
            if processor.utilisation <= bound { "within" } else { "beyond" },
            if product <= 2.0 { "within 2" } else { "beyond 2" },
        );
        if !simple || !rate {
            text.push_str(
                " (these two count only rate monotonic, with deadlines at the periods and nothing else)",
            );
        }
    }
    if let Some(admitted) = processor.admitted {
        let _ = write!(
            text,
            "; the kernel admits up to 95 %: {}",
            if admitted { "admitted" } else { "refused" }
        );
    }
    let _ = write!(text, "; exact: {exact}");
    text
}

fn verdict(set: &TaskSet, found: &Analysis) -> String {
    if found.schedulable {
        return "schedulable: every task meets its deadline\n".into();
    }
    let mut text = String::new();
    for processor in &found.processors {
        let misses = advice::misses(set, found, processor.cpu);
        for miss in &misses {
            let _ = writeln!(text, "not schedulable: {}", why(set, found, miss));
        }
        if misses.is_empty() {
            continue;
        }
        let mut changes =
            advice::changes(set, found, processor.cpu).into_iter().map(|change| words(set, &change));
        match changes.next() {
            Some(smallest) => {
                let _ = writeln!(text, "the smallest change that helps is {smallest}");
            }
            None => {
                let factor = found
                    .slack
                    .percent()
                    .map(|percent| format!("; all tasks {:.1} % shorter do", -percent));
                let _ = writeln!(
                    text,
                    "no other priorities and no shorter execution time of one task help{}",
                    factor.unwrap_or_default()
                );
            }
        }
        for other in changes.take(3) {
            let _ = writeln!(text, "  or {other}");
        }
    }
    text
}

fn why(set: &TaskSet, found: &Analysis, miss: &Miss) -> String {
    let task = &set.tasks[miss.place];
    let name = &task.name;
    let processor = found.processors.iter().find(|processor| processor.cpu == task.cpu);
    let late =
        miss.late_ns.map_or_else(|| "has no bound".into(), |late| format!("misses by {}", time(late)));
    if processor.and_then(|processor| processor.admitted) == Some(false) {
        return format!(
            "{name} is refused by the kernel, because the reservations on cpu {} exceed 95 %",
            task.cpu
        );
    }
    if let Some((interval, demand)) = advice::overfull_interval(found, task.cpu) {
        return format!(
            "{name} {late} because in an interval of {} there is work for {}",
            time(interval),
            time(demand)
        );
    }
    let full = processor.map_or(0.0, |processor| processor.utilisation * 100.0);
    let overloaded = found.tasks[miss.place].response == ResponseTime::Unbounded
        || processor.is_some_and(|processor| processor.feasibility == Some(Feasibility::Overloaded));
    if overloaded && miss.parts.is_empty() {
        return format!("{name} {late} because cpu {} has a utilisation of {full:.2} %", task.cpu);
    }
    if let (ResponseTime::AtLeast(_), true) = (found.tasks[miss.place].response, miss.parts.is_empty()) {
        return format!("{name} is not proven to meet its deadline: no bound was found in reasonable time");
    }
    let parts = miss.parts.iter().take(4).map(|&(part, ns)| match part {
        Part::Own => format!("{} of execution", time(ns)),
        Part::Jitter => format!("{} of release jitter", time(ns)),
        Part::Blocking => format!("{} of blocking by lower priorities", time(ns)),
        Part::Task { place, jobs: 1 } => format!("{} of {}", time(ns), set.tasks[place].name),
        Part::Task { place, jobs } => {
            let other = &set.tasks[place];
            format!("{} of {} ({jobs} x {})", time(ns), other.name, time(other.wcet_ns))
        }
    });
    let parts: Vec<String> = parts.collect();
    let more = miss.parts.len().saturating_sub(4);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{name} {late} because its response is made of {}{more}", parts.join(", "))
}

fn words(set: &TaskSet, change: &Change) -> String {
    match change {
        Change::Priorities(priorities) => {
            let mut order: Vec<_> =
                set.tasks.iter().zip(priorities).filter(|(task, new)| task.priority != **new).collect();
            order.sort_by_key(|(_, priority)| std::cmp::Reverse(**priority));
            let order: Vec<_> = order.iter().map(|(task, new)| format!("{} {new}", task.name)).collect();
            let more = if order.len() > 8 { ", ..." } else { "" };
            let order = order[..order.len().min(8)].join(", ");
            format!("other priorities: {order}{more} (--assign audsley)")
        }
        Change::Wcet { place, wcet_ns } => {
            let task = &set.tasks[*place];
            let less = time(task.wcet_ns - wcet_ns);
            format!("{} shorter by {less} (a wcet of {})", task.name, time(*wcet_ns))
        }
        Change::Jitter { place, jitter_ns } => {
            let task = &set.tasks[*place];
            format!(
                "{} released at most {} late instead of {}",
                task.name,
                time(*jitter_ns),
                time(task.jitter_ns)
            )
        }
        Change::Deadline { place, deadline_ns } => {
            format!("a deadline of {} for {}", time(*deadline_ns), set.tasks[*place].name)
        }
    }
}
