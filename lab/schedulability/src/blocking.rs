//! Longest delay of a task by work of lower priority.

use crate::Protocol;
use crate::task::{Section, Task};

/// Blocking of `task` by tasks of lower priority on its processor, ns; under [`Protocol::None`]
/// tasks of middle priority add to it, see below.
///
/// * Inheritance: each lower task blocks once at most, and each resource once at most; the smaller
///   of the two sums (Sha, Rajkumar and Lehoczky 1990).
/// * Ceiling: one section of one lower task (the same paper; Baker 1991).
/// * None: one section of a lower task each time the task itself requests the resource. Tasks of
///   middle priority run before it too, and the work it does after waiting reaches others like a
///   job released up to a period later; that holds while such tasks end within their periods, and
///   otherwise there is no bound.
///
/// A section that cannot be preempted counts as a resource that every task uses.
#[must_use]
pub fn blocking(task: &Task, all: &[Task], protocol: Protocol) -> u64 {
    let computed = match protocol {
        Protocol::Inheritance => inheritance(task, all),
        Protocol::Ceiling => {
            lower(task, all).flat_map(|lower| harmful(task, lower, all)).max().unwrap_or(0)
        }
        Protocol::None => unprotected(task, all),
    };
    task.blocking_ns.saturating_add(computed)
}

/// Tasks of middle priority that run while `task` waits for a lock that a task of a still lower
/// priority holds. Only without a protocol: the unbounded priority inversion, limited only by the
/// execution of these tasks.
pub(crate) fn inverting<'a>(task: &Task, all: &'a [Task], protocol: Protocol) -> Vec<&'a Task> {
    if protocol != Protocol::None {
        return Vec::new();
    }
    let shared = |holder: &Task| holder.sections.iter().any(|section| wants(task, section));
    let lowest = lower(task, all).filter(|holder| shared(holder)).map(|holder| holder.priority).min();
    let Some(lowest) = lowest else { return Vec::new() };
    lower(task, all).filter(|middle| middle.priority > lowest).collect()
}

/// True if a task may sleep until a lower one releases a lock, and then runs later than its release
/// says. Only without a protocol: with one, the holder inherits its priority.
pub(crate) fn is_deferred(task: &Task, all: &[Task], protocol: Protocol) -> bool {
    let waits_for = |holder: &Task| holder.sections.iter().any(|section| wants(task, section));
    protocol == Protocol::None && lower(task, all).any(waits_for)
}

fn inheritance(task: &Task, all: &[Task]) -> u64 {
    let by_task = lower(task, all).map(|lower| harmful(task, lower, all).max().unwrap_or(0));
    let by_task = by_task.fold(0, u64::saturating_add);
    let mut resources: Vec<Option<&str>> = Vec::new();
    let mut longest: Vec<u64> = Vec::new();
    for lower in lower(task, all) {
        for section in harmful_sections(task, lower, all) {
            let name = section.0;
            match resources.iter().position(|known| *known == name) {
                Some(place) => longest[place] = longest[place].max(section.1),
                None => {
                    resources.push(name);
                    longest.push(section.1);
                }
            }
        }
    }
    by_task.min(longest.into_iter().fold(0, u64::saturating_add))
}

fn unprotected(task: &Task, all: &[Task]) -> u64 {
    let longest = |resource: Option<&str>| {
        let sections = lower(task, all).flat_map(sections);
        sections.filter(|(name, _)| *name == resource).map(|(_, length)| length).max().unwrap_or(0)
    };
    let waits = task.sections.iter().filter_map(|section| section.resource.as_deref());
    waits.map(|resource| longest(Some(resource))).fold(longest(None), u64::saturating_add)
}

fn harmful(task: &Task, lower: &Task, all: &[Task]) -> impl Iterator<Item = u64> {
    harmful_sections(task, lower, all).into_iter().map(|(_, length)| length)
}

/// Sections of a lower task that can block `task`: sections with a resource that it or a task above
/// it uses too.
fn harmful_sections<'a>(task: &Task, lower: &'a Task, all: &[Task]) -> Vec<(Option<&'a str>, u64)> {
    let used_above = |resource: &str| {
        let above = all.iter().filter(|other| other.cpu == task.cpu && other.priority >= task.priority);
        above.flat_map(|other| &other.sections).any(|section| section.resource.as_deref() == Some(resource))
    };
    sections(lower).filter(|(resource, _)| resource.is_none_or(used_above)).collect()
}

/// Resource and length of each section; the whole task, if it cannot be preempted.
fn sections(task: &Task) -> impl Iterator<Item = (Option<&str>, u64)> {
    let whole = (!task.preemptive).then_some((None, task.wcet_ns));
    task.sections.iter().map(|section| (section.resource.as_deref(), section.length_ns)).chain(whole)
}

fn wants(task: &Task, section: &Section) -> bool {
    section.resource.is_some() && task.sections.iter().any(|own| own.resource == section.resource)
}

fn lower<'a>(task: &Task, all: &'a [Task]) -> impl Iterator<Item = &'a Task> {
    let (cpu, priority) = (task.cpu, task.priority);
    all.iter().filter(move |other| other.cpu == cpu && other.priority < priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three tasks; high and low share `bus`, middle and low share `log`.
    fn tasks() -> Vec<Task> {
        let section = |name: &str, length_ns| Section { resource: Some(name.into()), length_ns };
        let mut tasks: Vec<Task> = [("high", 3), ("middle", 2), ("low", 1)]
            .map(|(name, priority)| Task::new(name, priority, 100, 20))
            .into();
        tasks[0].sections = vec![section("bus", 1)];
        tasks[1].sections = vec![section("log", 4)];
        tasks[2].sections = vec![section("bus", 5), section("log", 7), section("bus", 3)];
        tasks
    }

    #[test]
    fn lock_blocks_tasks_above_its_lower_users() {
        let tasks = tasks();
        let of = |protocol| [0, 1, 2].map(|n| blocking(&tasks[n], &tasks, protocol));
        assert_eq!(of(Protocol::Ceiling), [5, 7, 0]);
        assert_eq!(of(Protocol::Inheritance), [5, 7, 0], "one lower task blocks once");
        assert_eq!(of(Protocol::None), [5, 7, 0]);
        let names = |task: &Task, protocol| {
            inverting(task, &tasks, protocol).iter().map(|task| task.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&tasks[0], Protocol::None), ["middle"]);
        assert!(names(&tasks[0], Protocol::Ceiling).is_empty());
    }

    // feature(analyse): locks: inheritance and ceiling
    #[test]
    fn inheritance_blocks_once_per_task_and_ceiling_once() {
        let mut tasks = tasks();
        let mut another = tasks[2].clone();
        another.name = "lowest".into();
        another.priority = 0;
        another.sections.truncate(2);
        tasks.push(another);
        assert_eq!(blocking(&tasks[1], &tasks, Protocol::Inheritance), 12, "two resources, two tasks");
        assert_eq!(blocking(&tasks[1], &tasks, Protocol::Ceiling), 7);
        assert_eq!(blocking(&tasks[0], &tasks, Protocol::Inheritance), 5, "only the bus");
    }

    #[test]
    fn what_cannot_be_preempted_blocks_everyone_above() {
        let mut tasks = tasks();
        tasks[2].preemptive = false;
        tasks[0].blocking_ns = 100;
        assert_eq!(blocking(&tasks[1], &tasks, Protocol::Ceiling), 20);
        assert_eq!(blocking(&tasks[0], &tasks, Protocol::Ceiling), 120);
        tasks[2].cpu = 1;
        assert_eq!(blocking(&tasks[0], &tasks, Protocol::Ceiling), 100);
    }
}
