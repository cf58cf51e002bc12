//! Check of explanations against the culprit's own record of its CPU time.

use std::fmt;

use serde_json::Value;

use super::guest::Results;

/// Value of `--late-above`, ns.
const LATE_ABOVE: u64 = 200_000;

/// Numbers of cycles delayed by the culprit, and attributed to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// Cycles released while it had the CPU and would keep it for longer than the limit.
    pub(super) delayed: usize,
    /// Cycles among these with the culprit among their causes.
    pub(super) named: usize,
    /// Explanation of the first of the others.
    pub(super) first_unnamed: String,
}

impl fmt::Display for Judged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the culprit delayed {} cycles and is named for {} of them",
            self.delayed, self.named
        )
    }
}

/// Evaluates the sections `run`, `hits` and `record`.
///
/// # Errors
/// The missing or invalid part.
pub(super) fn judge(results: &Results) -> Result<Judged, String> {
    let run = results.json("run")?;
    let late = run["late"].as_array().ok_or("the run's JSON has no `late`")?;
    let hits = rows(results.section("hits")?, ' ');
    let cycles = rows(results.section("record")?, ',');
    if hits.is_empty() || cycles.is_empty() {
        return Err(format!("{} hits and {} cycles were written down", hits.len(), cycles.len()));
    }
    Ok(compare(late, &hits, &cycles))
}

/// Compares: `hits` are begin and end; `cycles` are cycle, release and start.
fn compare(late: &[Value], hits: &[Vec<u64>], cycles: &[Vec<u64>]) -> Judged {
    let mut judged = Judged::default();
    for info in cycles {
        let [cycle, release, ..] = info[..] else { continue };
        let is_delayed_by = |hit: &Vec<u64>| hit[0] <= release && release + LATE_ABOVE < hit[1];
        if !hits.iter().any(is_delayed_by) {
            continue;
        }
        judged.delayed += 1;
        let explained = late.iter().find(|it| it["cycle"] == cycle);
        // An emulated timer interrupt can be so late that the running thread may have delayed it:
        // the culprit is named then, too, as a possible cause.
        let names = |cause: &Value| cause["name"].as_str().is_some_and(|name| name.starts_with("culprit"));
        if explained.and_then(|it| it["causes"].as_array()).is_some_and(|causes| causes.iter().any(names)) {
            judged.named += 1;
        } else if judged.first_unnamed.is_empty() {
            judged.first_unnamed = explained.map_or(format!("cycle {cycle} is not late"), Value::to_string);
        }
    }
    judged
}

/// Lines of numbers; all others are headers.
fn rows(text: &str, separator: char) -> Vec<Vec<u64>> {
    let row = |line: &str| {
        line.split(separator).map(|word| word.trim().parse().ok()).collect::<Option<Vec<u64>>>()
    };
    text.lines().filter_map(row).filter(|row| row.len() >= 2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hit_delays_the_cycles_released_inside_it() {
        let hits = rows("begin end\n1000000 1400000\n9000000 9400000", ' ');
        // Before, inside, too near its end, inside the second, inside the second again.
        let cycles = rows("# x\n1,999999,0\n2,1000000,0\n3,1300000,0\n4,9100000,0\n5,9199999,0", ',');
        let late = [
            json!({ "cycle": 2, "causes": [{ "name": "culprit" }, { "name": "steal" }] }),
            json!({ "cycle": 4, "causes": [{ "name": "steal" }] }),
            json!({ "cycle": 5, "causes": [{ "name": "culprit with interrupts off" }] }),
        ];
        let judged = compare(&late, &hits, &cycles);
        assert_eq!((judged.delayed, judged.named), (3, 2));
        assert!(judged.first_unnamed.contains("steal"), "{judged:?}");
    }
}
