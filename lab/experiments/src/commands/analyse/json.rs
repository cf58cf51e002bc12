//! The analysis for programs.

use schedulability::utilisation::{hyperbolic_product, liu_layland_bound};
use schedulability::{Analysis, Policy, TaskSet, fixed_priority};
use serde_json::{Value, json};

/// One object: `tasks`, `processors`, `system`, `notes`. What has no bound is null.
pub(super) fn object(set: &TaskSet, found: &Analysis, notes: &[String]) -> Value {
    let tasks: Vec<Value> = set
        .tasks
        .iter()
        .zip(&found.tasks)
        .map(|(task, verdict)| {
            json!({
                "name": task.name,
                "cpu": task.cpu,
                "priority": (set.policy == Policy::FixedPriority).then_some(task.priority),
                "period_ns": task.period_ns,
                "wcet_ns": task.wcet_ns,
                "deadline_ns": task.deadline_ns,
                "jitter_ns": task.jitter_ns,
                "blocking_ns": verdict.blocking_ns,
                "response_ns": verdict.response.ns(),
                "schedulable": verdict.schedulable,
                "slack_percent": verdict.slack.percent(),
                "slack_mast_percent": verdict.mast_slack.percent(),
            })
        })
        .collect();
    let processors: Vec<Value> = found
        .processors
        .iter()
        .map(|processor| {
            let here = || set.tasks.iter().filter(|task| task.cpu == processor.cpu);
            json!({
                "cpu": processor.cpu,
                "utilisation": processor.utilisation,
                "liu_layland_bound": liu_layland_bound(processor.tasks),
                "hyperbolic_product": hyperbolic_product(here()),
                "admitted": processor.admitted,
            })
        })
        .collect();
    let utilisation: f64 = found.processors.iter().map(|processor| processor.utilisation).sum();
    json!({
        "policy": set.policy.name(),
        "tasks": tasks,
        "processors": processors,
        "system": {
            "utilisation": utilisation,
            "schedulable": found.schedulable,
            "slack_percent": found.slack.percent(),
            "slack_mast_percent": found.mast_slack.percent(),
        },
        "notes": notes,
    })
}

/// Adds `steps_ns` to each task: the steps of its iteration.
pub(super) fn add_steps(set: &TaskSet, object: &mut Value) {
    for place in 0..set.tasks.len() {
        object["tasks"][place]["steps_ns"] = fixed_priority::steps(set, place).into();
    }
}
