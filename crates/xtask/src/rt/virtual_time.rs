//! One emulated CPU with a clock that counts its instructions (`-icount`): independent of the
//! host's load, a latency is the number of instructions executed. Effects of tuning can be asserted
//! there, in microseconds.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::guest::{Boot, Image};

/// Period of the paper.
const PERIOD: &str = "1ms";

/// Spin time of a cycle with S, shorter than the default: on an emulated CPU a turn of the loop
/// costs a thousand times its virtual time. Longer than the worst wake-up with P and M.
const SPIN_MARGIN: &str = "20us";

/// Bounds of the worst wake-up of each column, and its fewest cycles of 300: without tuning the
/// load keeps the processor for tens of milliseconds at a time, where without a load the worst of
/// them is 3 ms.
const BOUNDS: [(&str, Bound, u64); 3] = [
    ("none", Bound::Above(Duration::from_millis(10)), 2),
    ("PM", Bound::Below(Duration::from_micros(50)), 250),
    ("PMS", Bound::Below(Duration::from_micros(5)), 250),
];

#[derive(Clone, Copy, Debug)]
enum Bound {
    /// Must be above this.
    Above(Duration),
    /// Must be below this.
    Below(Duration),
}

/// Boots, runs, and evaluates the results.
///
/// # Errors
/// The expected and the found result.
pub(super) fn judge(root: &Path, image: &Image) -> Result<(), String> {
    let robot = super::robot(root, PERIOD)?;
    let robot = robot.replacen("[cycle]\n", &format!("[cycle]\nspin_margin = \"{SPIN_MARGIN}\"\n"), 1);
    let results = image.boot(&Boot {
        name: "virtual-time",
        // Two nanoseconds an instruction; a sleeping CPU jumps to its next timer.
        machine: &["-icount", "shift=1,sleep=off"],
        parameters: super::QUICK,
        script: include_str!("virtual_time.sh"),
        files: &[("robot.toml", robot.as_bytes())],
        longest: Duration::from_secs(900),
    })?;
    println!("{}", results.section("kernel")?);
    let said = results.section("said")?;
    println!("{said}");
    if results.section("exit")? != "0" {
        return Err(format!("`onbeat measure tuning` failed: {said}"));
    }
    hold(&results.json("report")?["values"]["cells"])
}

/// Checks every bound on the cells of `onbeat measure tuning`.
fn hold(cells: &Value) -> Result<(), String> {
    let cells = cells.as_array().ok_or("the report has no cells")?;
    for (column, bound, cycles) in BOUNDS {
        let cell = cells.iter().find(|cell| cell["column"] == column);
        let cell = cell.ok_or_else(|| format!("the report has no column {column}"))?;
        if cell["granted"] != column {
            return Err(format!("{column}: granted {}, refused {}", cell["granted"], cell["refused"]));
        }
        if cell["ended_loads"].as_array().is_none_or(|ended| !ended.is_empty()) {
            return Err(format!("{column}: loads that ended by themselves: {}", cell["ended_loads"]));
        }
        let samples = cell["samples"].as_u64().unwrap_or(0);
        if samples < cycles {
            return Err(format!("{column}: {samples} cycles, expected {cycles} at least"));
        }
        let worst = cell["wakeup_latency_ns"]["low_100"]["maximum"].as_f64();
        let worst = worst.ok_or_else(|| format!("{column} has no worst wake-up latency: {cell}"))?;
        let (holds, expected) = match bound {
            Bound::Above(bound) => (worst > bound.as_nanos() as f64, format!("above {bound:?}")),
            Bound::Below(bound) => (worst < bound.as_nanos() as f64, format!("below {bound:?}")),
        };
        println!("{column}: worst wake-up {:.1} us in {samples} cycles, expected {expected}", worst / 1e3);
        if !holds {
            return Err(format!("{column}: worst wake-up {:.1} us, expected {expected}", worst / 1e3));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cells(none: f64, pm: f64, pms: f64) -> Value {
        let cell = |column: &str, worst: f64| {
            json!({
                "column": column, "granted": column, "refused": [], "ended_loads": [], "samples": 1000,
                "wakeup_latency_ns": { "low_100": { "maximum": worst } },
            })
        };
        json!([cell("none", none), cell("PM", pm), cell("PMS", pms)])
    }

    #[test]
    fn each_bound_is_held_to() {
        assert_eq!(hold(&cells(20e6, 40e3, 4e3)), Ok(()));
        for bad in [cells(4e6, 40e3, 4e3), cells(20e6, 60e3, 4e3), cells(20e6, 40e3, 6e3)] {
            assert!(hold(&bad).is_err_and(|why| why.contains("expected")), "{bad}");
        }
    }

    #[test]
    fn a_letter_refused_is_no_measurement_of_it() {
        let mut refused = cells(20e6, 40e3, 4e3);
        refused[1]["granted"] = "M".into();
        assert!(hold(&refused).is_err_and(|why| why.starts_with("PM: granted")));
        assert!(hold(&json!([])).is_err());
    }
}
