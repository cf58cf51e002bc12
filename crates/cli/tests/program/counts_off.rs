//! Faults of a day that a robot must not survive with a guess: drives that count from elsewhere,
//! shafts that turn unseen, drives without quick stop, a bus that loses all power. In bus time, by
//! scripts of faults; what the drives were sent and showed is in the recording.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::common::{Ran, file, finished, folder, onbeat, shared};

const COUNTS: f64 = 1_048_576.0;
const TURN: f64 = std::f64::consts::TAU;
/// Limits of position, in rad.
const LIMIT: f64 = 1.2;
/// rad; a stop from the highest speed of the sinusoid, and the time until the drive begins it.
const BRAKING: f64 = 0.45;
/// rad; a drive with a count that changes in Op moves towards its last target by itself, until its
/// own following error ends that.
const LURCH: f64 = 2.0;

/// Two axes that swing by 0.9 rad, the second with this encoder; `rest` is added to the cycle,
/// `drive` to the simulated drives.
fn robot(name: &str, encoder: &str, rest: &str, drive: &str) -> PathBuf {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml"))
            .expect("the example");
    let (devices, _) = text.split_once("[bus]\n").expect("a bus");
    let devices =
        devices.replace("kind = \"servo_drive\"\n", &format!("kind = \"servo_drive\"\n{drive}\n"));
    let (before, cycle) = devices.split_once("[cycle]\n").expect("a cycle");
    let own = |line: &&str| !["outage_time", "after_outage"].iter().any(|key| line.starts_with(key));
    let cycle = cycle.lines().filter(own).collect::<Vec<_>>().join("\n");
    let text = format!(
        r#"{before}[cycle]
{rest}
{cycle}
[bus]
distributed_clocks = true
BUS

[[bus.sub_device]]
name = "drive-{{}}"
count = 2
device = "servo"

[[axis]]
name = "axis-{{}}"
count = 2
sub_device = "drive-{{}}"
mode = "csp"
counts_per_revolution = 1_048_576
rated_torque = 2.4
limits = {{ position = [-1.2, 1.2], velocity = 4.0, acceleration = 20.0, jerk = 400.0, torque = 4.8 }}
{encoder}
on_stale = "hold"

[controller]
kind = "sinusoid"
amplitude = 0.9
frequency = 0.5
"#
    );
    let unmarked = if name.contains("unmarked") { "replies = \"unchanged_source\"" } else { "" };
    file(&format!("{name}.toml"), &text.replace("BUS", unmarked))
}

/// A run in bus time with a script of faults, and its recording as columns by their names.
fn play(name: &str, robot: &Path, script: &str) -> (Ran, HashMap<String, Vec<f64>>) {
    let folder = folder(name);
    let script = file(&format!("{name}.txt"), script);
    let (recording, csv) = (folder.join("run.mcap"), folder.join("run.csv"));
    let mut command = onbeat();
    command.arg("run").arg(robot).args([
        "--time",
        "fast",
        "--for",
        "6s",
        "--json",
        "--signals",
        "all",
        "--faults",
    ]);
    command.arg(script).arg("--record").arg(&recording);
    let ran = finished(command);
    let mut export = onbeat();
    export.arg("export").arg(&recording).arg(&csv);
    let exported = finished(export);
    assert_eq!(exported.code, Some(0), "{}{}", ran.stderr, exported.stderr);
    let text = std::fs::read_to_string(&csv).expect("the rows");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let mut columns: HashMap<String, Vec<f64>> = HashMap::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split(',')) {
            columns.entry((*name).to_owned()).or_default().push(value.parse().unwrap_or(f64::NAN));
        }
    }
    (ran, columns)
}

/// Events of the second drive after which the position of its axis is unknown: script, encoder,
/// turns that the count is off from then on, and the reason.
const MULTI: &str = "encoder = \"multi_turn\"\nencoder_range = 4096";
const SINGLE: &str = "encoder = \"single_turn\"";
const INCREMENTAL: &str = "encoder = \"incremental\"";

fn restarted(what: &str) -> String {
    format!("2s power off drive-2\n2.1s encoder drive-2 {what}\n2.2s power on drive-2\n")
}

// feature(axes): an axis whose drive has another zero position does not move, with any `after_outage`, and the run reports the reason
#[test]
fn an_axis_with_a_wrong_count_is_not_moved() {
    let _shared = shared();
    let changed = "its position changed by more than the axis can have moved";
    let lost = "its encoder may have lost the position";
    let mut cases = Vec::new();
    for turns in [0.5, 1.0, 3.0] {
        cases.push((restarted(&format!("off by {turns} turns")), MULTI, turns, 0.0, changed));
    }
    cases.push((restarted("off by 0.5 turns"), SINGLE, 0.5, 0.0, changed));
    cases.push((restarted("turned by 1 turn"), MULTI, 0.0, 1.0, changed));
    cases.push((restarted("turned by 1 turn"), INCREMENTAL, 0.0, 1.0, lost));
    cases.push((restarted("turned by 1 turn"), "", 0.0, 1.0, lost));
    cases.push(("2s encoder drive-2 off by 1 turn\n".to_owned(), MULTI, 1.0, 0.0, "0x8611"));
    for (number, (script, encoder, off, turned, why)) in cases.into_iter().enumerate() {
        let name = format!("count-off-{number}");
        let robot = robot(&name, encoder, "after_outage = \"resume\"", "");
        let (ran, columns) = play(&name, &robot, &script);
        let what = format!("{script}{encoder}: {}", ran.stderr);
        assert_eq!(ran.code, Some(3), "{what}");
        let last = ran.stderr.lines().last().expect("a last line");
        assert!(last.contains("\"axis-2\"") && last.contains(why), "{what}");
        let column = |name: &str| &columns[&format!("signal:drive-2.{name}")];
        let (positions, targets) = (column("position actual value"), column("target position"));
        let words = column("controlword");
        let radians = |counts: f64| counts / COUNTS * TURN;
        // The sinusoid moves the axis before; half a second after the event it does not any more.
        let (event, settled) = (1_900, 2_900);
        let swing = |from: usize, to: usize| {
            let all = positions[from..to].iter().copied().filter(|it| it.is_finite()).map(radians);
            let (low, high) = all.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(it), high.max(it)));
            high - low
        };
        assert!(swing(0, event) > 0.5, "{what}");
        assert!(
            swing(settled, positions.len() - 5) < 2e-3,
            "moved by {}: {what}",
            swing(settled, positions.len() - 5)
        );
        let reach = if script.contains("power off") { BRAKING } else { LURCH };
        // The true position, but for the turn by hand, stays within the limits.
        for (index, &position) in positions.iter().enumerate().filter(|(_, it)| it.is_finite()) {
            let count_off = if index < event { 0.0 } else { off };
            let place = radians(position);
            let true_places = [place, place - count_off * TURN];
            let nearest = true_places.into_iter().map(f64::abs).fold(f64::MAX, f64::min);
            let by_hand = turned != 0.0 && index >= event;
            assert!(nearest < LIMIT + reach || by_hand, "{nearest} rad in row {index}: {what}");
            // Targets of an enabled drive that lead somewhere are within the limits as well.
            let enabled = words[index] as u64 & 0x0F == 0x0F;
            let leads = index > settled && enabled && targets[index] != position;
            assert!(!leads || (radians(targets[index]) - place).abs() < 1e-3, "row {index}: {what}");
        }
    }
}

// feature(axes): drives without quick stop, and a bus that loses all power behind unmarked replies, end with exit code and cause
#[test]
fn outages_end_with_an_exit_code_and_a_cause() {
    let _shared = shared();
    let robot_without = robot("no-quick-stop", MULTI, "", "quick_stop = false");
    let (ran, _) = play("no-quick-stop", &robot_without, "2s frames lose 100% for 60ms\n");
    let last = ran.stderr.lines().last().expect("a last line");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(last.contains("its drive does not carry out the quick stop"), "{}", ran.stderr);
    assert!(last.contains("no process data of the axis (outage)"), "{}", ran.stderr);

    let all = "2s power off drive-1 for 1s\n2s power off drive-2 for 1s\n";
    let unmarked = robot("unmarked", MULTI, "", "");
    let (ran, _) = play("unmarked", &unmarked, all);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    for drive in ["drive-1", "drive-2"] {
        let again = format!("\"{drive}\" is in Op again");
        assert!(ran.stderr.contains(&again), "{}", ran.stderr);
    }
    let last = ran.stderr.lines().last().expect("a last line");
    assert!(last.contains("\"axis-2\"") && last.contains("(outage)"), "{}", ran.stderr);
    // Where the encoder is incremental, the axes are unreferenced after that.
    let incremental = robot("unmarked-incremental", INCREMENTAL, "after_outage = \"resume\"", "");
    let (ran, _) = play("unmarked-incremental", &incremental, all);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let last = ran.stderr.lines().last().expect("a last line");
    assert!(last.contains("unreferenced: its drive restarted"), "{}", ran.stderr);
}
