//! Task sets: the tasks of a machine and their times, read from TOML and checked.
//!
//! ```
//! let text = r#"
//!     [[task]]
//!     name = "control"
//!     priority = 80
//!     period = "1ms"
//!     wcet = "400us"
//! "#;
//! let set = onbeat_robot::task_set::parse(text, "tasks.toml", Default::default()).unwrap();
//! assert_eq!(set.tasks[0].wcet_ns, 400_000);
//! ```

use std::path::Path;
use std::time::Duration;

use crate::value::{self, Spanned};
use schedulability::{Policy, Protocol, Section, Task, TaskSet};
use serde::Deserialize;
use serde::de::Deserializer;
use toml::de::DeValue;

use crate::error::{FileError, Problem};
use crate::error::{KEY, refused};
use crate::field::{readable, time, whole};
use crate::model::HIGHEST_CPU;

/// Values that the caller gives instead of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Replaces the file's `policy`.
    pub policy: Option<Policy>,
    /// True if priorities will be assigned, so that the file need not have any.
    pub priorities: bool,
}

/// Reads the task set at `path`.
///
/// # Errors
/// An unreadable file, or the first problem in it.
pub fn read(path: &Path, decided: Decided) -> Result<TaskSet, FileError> {
    let text = crate::read_text(path, "a task set or a robot file in TOML, or a recording")?;
    parse(&text, &path.display().to_string(), decided)
}

/// Parses the task set in `text`, which errors name `file_name`.
///
/// # Errors
/// The first problem in it.
pub fn parse(text: &str, file_name: &str, decided: Decided) -> Result<TaskSet, FileError> {
    crate::tables(text)
        .map(|tables| toml::Spanned::new(tables.span(), DeValue::Table(tables.into_inner())))
        .and_then(|root| value::read(text, &root))
        .and_then(|document| checked(document, decided))
        .map_err(|problem| FileError::at(text, file_name, problem))
}

/// True if the file at `path` is a robot file instead: it has a bus or a cycle.
#[must_use]
pub fn is_a_robots(path: &Path) -> bool {
    let table = crate::text(path).ok().and_then(|text| toml::from_str::<toml::Table>(&text).ok());
    table.is_some_and(|table| table.contains_key("bus") || table.contains_key("cycle"))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    protocol: Protocol,
    #[serde(default)]
    task: Vec<Spanned<TaskTable>>,
}

/// `[[task]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    #[serde(deserialize_with = "readable")]
    name: String,
    #[serde(default, deserialize_with = "whole::<_, _, 0, HIGHEST_PRIORITY>")]
    priority: Option<u32>,
    #[serde(deserialize_with = "positive")]
    period: u64,
    #[serde(deserialize_with = "nanoseconds")]
    wcet: u64,
    #[serde(default, deserialize_with = "deadline")]
    deadline: Option<u64>,
    #[serde(default, deserialize_with = "nanoseconds")]
    jitter: u64,
    #[serde(default, deserialize_with = "nanoseconds")]
    blocking: u64,
    #[serde(default, deserialize_with = "whole::<_, _, 0, HIGHEST_CPU>")]
    cpu: usize,
    #[serde(default = "usually_preemptive")]
    preemptive: bool,
    #[serde(default, rename = "section")]
    sections: Vec<SectionTable>,
}

/// `[[task.section]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionTable {
    #[serde(default, deserialize_with = "readable")]
    resource: Option<String>,
    #[serde(deserialize_with = "positive")]
    length: u64,
}

const fn usually_preemptive() -> bool {
    true
}

fn checked(document: Document, decided: Decided) -> Result<TaskSet, Problem> {
    let Document { policy, protocol, .. } = document;
    let policy = decided.policy.unwrap_or(policy);
    if document.task.is_empty() || document.task.len() > MOST_TASKS {
        let found = match document.task.len() {
            0 => "no task".to_owned(),
            many => format!("{many} tasks"),
        };
        return Err(Problem::new(
            0..0,
            found,
            format!("1 to {MOST_TASKS} [[task]] tables"),
            "list the tasks",
        ));
    }
    let priorities = policy == Policy::FixedPriority && !decided.priorities;
    let places: Vec<_> = document.task.iter().map(Spanned::span).collect();
    let tasks =
        document.task.into_iter().map(|table| task(table, priorities)).collect::<Result<Vec<_>, _>>()?;
    let set = TaskSet { tasks, policy, protocol };
    set.check().map_err(|error| {
        let place = set.tasks.iter().rposition(|task| task.name == error.task).unwrap_or(0);
        let (found, expected) = error.why.split_once(", expected ").unwrap_or((&error.why, "another name"));
        let found = format!("task \"{}\": {}", error.task, found.strip_prefix("found ").unwrap_or(found));
        Problem::new(places[place].clone(), found, expected, "correct this task")
    })?;
    Ok(set)
}

fn task(table: Spanned<TaskTable>, priorities: bool) -> Result<Task, Problem> {
    let span = table.span();
    let TaskTable { name, priority, period, wcet, .. } = table.get_ref();
    if priority.is_none() && priorities {
        let found = format!("task \"{name}\" has no priority");
        return Err(Problem::new(span, found, "priority = ... (higher wins)", "add it, or use --assign"));
    }
    let task = Task::new(name.clone(), priority.unwrap_or(0), *period, *wcet);
    let TaskTable { deadline, jitter, blocking, cpu, preemptive, sections, .. } = table.into_inner();
    let section = |it: SectionTable| Section { resource: it.resource, length_ns: it.length };
    Ok(Task {
        deadline_ns: deadline.unwrap_or(task.period_ns),
        jitter_ns: jitter,
        blocking_ns: blocking,
        cpu,
        preemptive,
        sections: sections.into_iter().map(section).collect(),
        ..task
    })
}

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match nanoseconds(deserializer)? {
        0 => Err(refused(format_args!("a {KEY} of 0"), "at least \"1ns\"", "correct it")),
        ns => Ok(ns),
    }
}

fn deadline<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    positive(deserializer).map(Some)
}

fn nanoseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let length: Duration = time(deserializer)?;
    let ns = u64::try_from(length.as_nanos()).ok();
    ns.filter(|&ns| ns <= schedulability::task::LONGEST_NS)
        .ok_or_else(|| refused("a time too long to analyse", "at most 31 years", "correct it"))
}

/// Largest number of tasks of an analysis.
const MOST_TASKS: usize = 10_000;

/// Highest priority in a file; `SCHED_FIFO` knows 1 to 99.
const HIGHEST_PRIORITY: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(text: &str) -> String {
        parse(text, "t.toml", Decided::default()).unwrap_err().to_string()
    }

    const GOOD: &str = r#"protocol = "ceiling"
[[task]]
name = "a"
priority = 2
period = "1ms"
wcet = "100us"
deadline = "800us"
jitter = "50us"
blocking = "10us"
cpu = 3
[[task.section]]
resource = "bus"
length = "20us"
[[task]]
name = "b"
priority = 1
period = "2ms"
wcet = "0.5ms"
cpu = 3
preemptive = false
[[task.section]]
length = "1us"
"#;

    #[test]
    fn all_that_a_task_may_say_is_read() {
        let set = parse(GOOD, "t.toml", Decided::default()).unwrap();
        assert_eq!((set.policy, set.protocol), (Policy::FixedPriority, Protocol::Ceiling));
        let [a, b] = &set.tasks[..] else { panic!("two tasks") };
        assert_eq!((a.period_ns, a.wcet_ns, a.deadline_ns), (1_000_000, 100_000, 800_000));
        assert_eq!((a.jitter_ns, a.blocking_ns, a.cpu, a.preemptive), (50_000, 10_000, 3, true));
        assert_eq!(a.sections, [Section { resource: Some("bus".into()), length_ns: 20_000 }]);
        assert_eq!((b.deadline_ns, b.preemptive), (2_000_000, false));
        assert_eq!(b.sections, [Section { resource: None, length_ns: 1_000 }]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        assert_eq!(
            sentence(&GOOD.replace("jitter", "jiter")),
            "t.toml:8:1: unknown key \"jiter\", expected one of name, priority, period, wcet, deadline, jitter, \
             blocking, cpu, preemptive, section: did you mean \"jitter\"?"
        );
        assert_eq!(
            sentence(&GOOD.replace("\"1ms\"", "\"1d\"")),
            "t.toml:5:10: string \"1d\", expected a number and a unit (ns, us, ms, s, min, h) in quotes, as in \"500us\": \
             correct the file here"
        );
        assert_eq!(
            sentence(&GOOD.replace("\"1ms\"", "\"0s\"")),
            "t.toml:5:10: a period of 0, expected at least \"1ns\": correct it"
        );
        assert_eq!(
            sentence(&GOOD.replace("\"b\"", "\"a\"")),
            "t.toml:14:1: task \"a\": another task has the same name, expected another name: correct this task"
        );
        assert_eq!(
            sentence(&GOOD.replace("\"20us\"", "\"200us\"")),
            "t.toml:2:1: task \"a\": critical sections of 200000 ns, expected at most its wcet, 100000 ns: correct this \
             task"
        );
        assert_eq!(
            sentence(""),
            "t.toml:1:1: no task, expected 1 to 10000 [[task]] tables: list the tasks"
        );
        let nameless = sentence(&GOOD.replace("priority = 1\n", ""));
        assert_eq!(
            nameless,
            "t.toml:14:1: task \"b\" has no priority, expected priority = ... (higher wins): add it, or use --assign"
        );
        assert!(
            sentence("policy = \"rm\"").contains("unknown value \"rm\", expected one of fp, edf, deadline")
        );
    }

    #[test]
    fn earliest_deadline_first_needs_no_priorities() {
        let text = GOOD.replace("priority = 1\n", "");
        let decided = Decided { policy: Some(Policy::EarliestDeadline), priorities: false };
        assert_eq!(parse(&text, "t.toml", decided).unwrap().policy, Policy::EarliestDeadline);
        assert!(parse(&text, "t.toml", Decided { policy: None, priorities: true }).is_ok());
    }
}
