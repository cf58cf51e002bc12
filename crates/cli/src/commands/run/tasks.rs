//! The run's real-time threads in words: what disturbed them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use diagnose::disturbance::Disturbances;
use ipc::diagnostics::{TaskDiagnostics, Watched};

use crate::words::live_line::LiveLine;

/// Counts of the watch for each task, a line each; nothing where they were not watched.
pub(super) fn table(tasks: &[TaskDiagnostics]) -> String {
    let watched: Vec<(&str, &Watched)> =
        tasks.iter().filter_map(|task| Some((task.name.as_str(), task.watched.as_ref()?))).collect();
    if watched.is_empty() {
        return String::new();
    }
    let width = watched.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!("\n{:<width$}", "task");
    for title in ["preempted", "slept", "minor", "major", "system", "blocking"] {
        let _ = write!(text, "{title:>10}");
    }
    let _ =
        writeln!(text, "\n{:<width$}{:>30}{:>10}{:>10}{:>10}", "", "faults", "faults", "calls", "calls");
    for (name, it) in watched {
        // What the means cannot see is not zero.
        let calls = |count: u64| if it.means == "tracepoints" { count.to_string() } else { "-".to_owned() };
        let _ = writeln!(
            text,
            "{name:<width$}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
            it.preemptions,
            it.sleeps,
            it.minor_faults,
            it.major_faults,
            calls(it.system_calls),
            calls(it.blocking_calls),
        );
    }
    text
}

/// Disturbances of one of them, in words.
fn in_words(found: &Disturbances) -> String {
    let (thread, period) = match found.name.as_str() {
        "cycle" => ("the cycle's thread".to_owned(), "cycle"),
        name => (format!("task {name}"), "period"),
    };
    let mut words = match found.is_calm() {
        true => format!("nothing disturbed {thread}"),
        false => format!("disturbances of {thread}:"),
    };
    for it in &found.causes {
        let periods = match it.first_period == it.last_period {
            true => format!("in {period} {}", it.first_period),
            false => format!("in {period}s {} to {}", it.first_period, it.last_period),
        };
        words += &format!("\n  {} x {} ({}) {periods}", it.count, it.kind, it.name);
    }
    for first in found.firsts.iter().filter(|first| !first.backtrace.is_empty()) {
        words += &format!("\n  the first {first}");
    }
    if found.lost > 0 {
        words += &format!("\n  {} more events were lost", found.lost);
    }
    words
}

/// Says what disturbed the real-time threads, and what the means do not show, each once.
pub(super) fn tell_disturbances(found: &[Disturbances], live: &LiveLine) {
    found.iter().for_each(|found| live.say(&in_words(found)));
    let missing: BTreeSet<&str> = found.iter().flat_map(|it| &it.missing).map(String::as_str).collect();
    missing.iter().for_each(|missing| live.say(missing));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_line_per_watched_task_and_dashes_without_counts() {
        let task = |name: &str, means: &str| TaskDiagnostics {
            name: name.to_owned(),
            watched: Some(Watched {
                means: means.to_owned(),
                preemptions: 7,
                blocking_calls: 5,
                ..Watched::default()
            }),
            ..TaskDiagnostics::default()
        };
        let unwatched = TaskDiagnostics { name: "led_strip".to_owned(), ..TaskDiagnostics::default() };
        assert_eq!(table(std::slice::from_ref(&unwatched)), "");
        let text = table(&[task("cycle", "tracepoints"), unwatched, task("imu", "counters")]);
        let lines: Vec<Vec<&str>> =
            text.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
        assert!(text.lines().all(|line| line.chars().count() <= 76), "80 with names of 16 letters: {text}");
        assert_eq!(lines, [["cycle", "7", "0", "0", "0", "0", "5"], ["imu", "7", "0", "0", "0", "-", "-"]]);
    }
}
