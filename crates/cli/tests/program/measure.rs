//! `onbeat measure`: short experiments, whole.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{
    Running, alone, finished, folder, measure, measured, measured_beside, of_the_paper, run, six_axis_with,
};

fn cell<'a>(report: &'a Value, column: &str, load: &str) -> &'a Value {
    let cells = report["values"]["cells"].as_array().expect("cells");
    let cell = cells.iter().find(|cell| cell["column"] == column && cell["load"] == load);
    cell.unwrap_or_else(|| panic!("no cell {column} {load}: {report}"))
}

// feature(measure): `measure tuning`: the humanoid paper's columns, rows and loads
#[test]
fn tuning_measures_every_column_under_every_load_and_saves_it() {
    let settings = ["tuning", "--duration", "1s", "--columns", "none,PM", "--load", "none,light", "--json"];
    let (ran, folder) = measured("tuning", &settings);
    let report = ran.json();
    assert_eq!(of_the_paper(&report), ["Figure 7", "Figure 8"]);
    assert_eq!(report["values"]["cells"].as_array().expect("cells").len(), 4, "{}", ran.stderr);
    for (column, load) in [("none", "none"), ("PM", "none"), ("none", "light"), ("PM", "light")] {
        let cell = cell(&report, column, load);
        let recording = folder.join(cell["recording"].as_str().expect("a file name"));
        assert!(recording.exists(), "{}", recording.display());
        let samples = cell["samples"].as_u64().expect("samples");
        assert!((1..=1001).contains(&samples), "cycles of one second at 1 ms: {samples}");
        let latency = &cell["wakeup_latency_ns"];
        let (all, least) = (&latency["low_100"], latency["minimum"].as_u64().expect("a minimum"));
        let most = all["maximum"].as_u64().expect("a maximum");
        let average = all["average"].as_f64().expect("an average");
        assert!(least as f64 <= average && average <= most as f64, "{latency}");
        assert_eq!(all["samples"].as_u64(), Some(samples));
        assert!(latency["low_99_999"].is_null(), "a thousand cycles have no such share");
        assert_eq!(cell["conditions"]["sub_devices"], 59);
        assert_eq!(cell["conditions"]["profile"]["requested"], column);
        assert_eq!(cell["ended_loads"], ended_loads(cell), "{cell}");
    }
    let switches = cell(&report, "PM", "light")["machine"]["context_switches"].as_u64();
    assert!(switches > Some(5_000), "messages between 400 threads switch contexts: {switches:?}");
    let saved = std::fs::read_to_string(folder.join("report.html")).expect("the page");
    assert_eq!(saved.matches("<svg").count(), 8, "four plots for each load");
    let shown = run(&["report", folder.to_str().unwrap()]).stdout;
    assert!(shown.contains("low 99.9 %: maximum") && shown.contains("No tuning"), "{shown}");
    assert_eq!(loads_left(), Vec::<String>::new());
}

/// A load may end early only without the right to raw sockets.
fn ended_loads(cell: &Value) -> Value {
    let allowed =
        |it: &&Value| it.as_str().is_some_and(|it| it.contains("CAP_NET_RAW") || it.contains("loopback"));
    cell["ended_loads"].as_array().expect("a list").iter().filter(allowed).cloned().collect()
}

/// Load processes of this program that have no parent any more.
fn loads_left() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let orphan = |entry: std::fs::DirEntry| {
        let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        (line.contains("onbeat-measure load ") && status.contains("\nPPid:\t1\n")).then_some(line)
    };
    processes.filter_map(orphan).collect()
}

// feature(measure): `measure servo`
#[test]
fn servo_has_the_papers_rows_and_keeps_the_raw_data() {
    let (ran, folder) = measured("servo", &["servo", "--duration", "500ms", "--profile", "none"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expected in [
        "T_period (ms)",
        "T_jitter (us)",
        "T_exec (us)",
        "C: collect inputs",
        "standard deviation",
        "samples            500",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    for file in ["servo.mcap", "report.md", "report.json", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let printed = ran.stdout.lines().find(|line| line.starts_with("T_jitter maximum, us (paper)"));
    let cells: Vec<_> = printed.expect("the paper's row").split_whitespace().rev().take(2).collect();
    assert_eq!(cells, ["24.125", "103.708"]);
    let report = std::fs::read(folder.join("report.json")).expect("the report");
    assert_eq!(of_the_paper(&serde_json::from_slice(&report).expect("JSON")), ["Table 3"]);
    stands_beside_another(folder.to_str().expect("UTF-8"));
}

/// The run next to itself.
fn stands_beside_another(folder: &str) {
    let both = run(&["report", folder, folder, "--labels", "one,other"]);
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    let line = |name: &str| {
        let line = both.stdout.lines().find(|line| line.starts_with(name) && !line.contains("(paper)"));
        line.unwrap_or_else(|| panic!("{name}: {}", both.stdout)).split_whitespace().collect::<Vec<_>>()
    };
    let average = line("T_jitter (us): average");
    assert!(average[3] == average[4] && average[5] == "1.000", "{average:?}");
    assert_eq!(line("T_jitter maximum, us")[3..][2..], ["103.708", "24.125"], "the paper's two kernels");
    for name in ["one", "other"] {
        let is_box = |line: &str| line.starts_with(name) && line.contains('#') && line.contains("median");
        assert!(both.stdout.lines().any(is_box), "{name}: {}", both.stdout);
    }
    for (arguments, expected) in [
        (vec!["report", folder, "/nonexistent"], "/nonexistent: No such file"),
        (vec!["report", folder, folder, "--labels", "one"], "--labels: found 1 names, expected 2"),
    ] {
        let ran = run(&arguments);
        assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

// feature(measure): `--continue DIR`: complete cells are kept, interrupted ones are set aside and measured again
#[test]
fn an_experiment_resumes_with_the_missing_cells() {
    let settings = ["tuning", "--duration", "500ms", "--columns", "none,M", "--load", "none"];
    let (ran, folder) = measured("continued", &settings);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("tuning: 1 of 2, No tuning under load none; "), "{}", ran.stderr);
    let read = |name: &str| std::fs::read(folder.join(name)).expect(name);
    let first = read("none-none.mcap");
    std::fs::remove_file(folder.join("M-none.cell.json")).expect("a cell");
    let again = |more: &[&str]| {
        let mut command = measure();
        command.args(["tuning", "--continue"]).arg(&folder).args(more);
        let _alone = alone();
        Running::start(command).finish_within(Duration::from_secs(300))
    };
    let ran = again(&["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 2, No tuning under load none: measured before"), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 of 2, M under load none; "), "{}", ran.stderr);
    assert!(read("none-none.mcap") == first, "what was measured stays");
    assert!(folder.join("M-none-interrupted-1.mcap").exists(), "what was recorded of the other, too");
    assert_eq!(ran.json()["values"]["cells"].as_array().map(Vec::len), Some(2));
    let ran = again(&["--duration", "1s"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--duration: --continue uses"), "{}", ran.stderr);
}

// feature(measure): `servo` of a robot whose cycle follows the reference clock reports its lock, end to end
#[test]
fn servo_reports_the_lock_to_the_reference_clock() {
    let period = "period = \"1ms\"";
    let robot = six_axis_with("servo-lock.toml", period, &format!("{period}\nclock = \"reference\""));
    let robot = robot.to_str().expect("UTF-8");
    let (ran, folder) = measured("servo-lock", &["servo", robot, "--duration", "1s", "--profile", "none"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // Lines are broken where the terminal ends.
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "lock to the reference clock of the bus: ",
        "found within ",
        "reference clock differs from this host's by ",
        "behind SYNC0 without a shift",
        "us behind its SYNC0, which comes every 1000 us; latest \"drive-",
        "drive-6 SYNC0 1000.0 100.0 ",
    ] {
        assert!(words.contains(told), "{told}: {}", ran.stdout);
    }
    let report = std::fs::read_to_string(folder.join("report.json")).expect("the report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let lock = &report["values"]["clock_lock"];
    assert!(lock["cycles_to_lock"].as_u64() > Some(0), "{lock}");
    assert!(lock["frame_phase_ns"].as_u64().is_some_and(|phase| phase < 1_000_000), "{lock}");
    let signals = report["values"]["sync_signals"].as_array().expect("SYNC0 of each drive");
    let drives: Vec<_> =
        signals.iter().map(|it| (it["sub_device"].as_str(), it["shift_ns"].as_u64())).collect();
    let expected: Vec<_> = (1..=6).map(|number| format!("drive-{number}")).collect();
    let expected: Vec<_> = expected.iter().map(|name| (Some(name.as_str()), Some(100_000))).collect();
    assert_eq!(drives, expected);
    assert!(signals.iter().all(|it| it["frame_phase_ns"].as_u64() < Some(1_000_000)), "{signals:?}");
}

#[test]
fn ctrl_c_ends_an_experiment_with_what_it_has() {
    let folder = folder("stopped");
    let mut command = measure();
    command.args(["servo", "--duration", "10min", "--out"]).arg(&folder);
    let _alone = alone();
    let running = Running::start(command);
    let begin = Instant::now();
    let recording = folder.join("servo.mcap");
    let rows = || {
        let recording = record::Recording::read(&std::fs::read(&recording).unwrap_or_default()[..]);
        recording.map_or(0, |it| it.len())
    };
    while rows() < 100 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no cycles are recorded");
        std::thread::sleep(Duration::from_millis(50));
    }
    let number = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &number]).status().expect("kill").success());
    let ran = running.finish();
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let hint = format!("`onbeat measure servo --continue {}` continues", folder.display());
    assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("stopped before its end") && ran.stdout.contains("T_jitter"),
        "{}",
        ran.stdout
    );
    assert!(folder.join("report.html").exists());
}

#[test]
fn unknown_columns_and_robots_are_reported_as_sentences() {
    let ran = finished({
        let mut command = measure();
        command.args(["tuning", "--columns", "none,PX"]);
        command
    });
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("found \"PX\", expected \"none\" or some of the letters"),
        "{}",
        ran.stderr
    );
    let (ran, _) = measured_beside("no-robot", &["servo", "nowhere.toml", "--duration", "1s"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("nowhere.toml"), "{}", ran.stderr);
}

#[test]
fn a_missing_experiments_program_gets_a_build_hint() {
    let folder = folder("alone");
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("onbeat");
    std::fs::copy(env!("CARGO_BIN_EXE_onbeat"), &program).expect("a copy");
    let mut command = Command::new(&program);
    command.args(["measure", "tuning", "--help"]);
    let ran = finished(command);
    assert!(
        ran.sentence().contains("onbeat-measure is not there")
            && ran.stderr.contains("cargo build --release --package onbeat-experiments"),
        "{}",
        ran.stderr
    );
}

/// Without the limits Ctrl-C had no effect before the next turn, and a task's jobs took all memory.
#[test]
fn a_turn_or_a_duration_without_end_is_refused() {
    let turns: [(&[&str], _); 7] = [
        (&["wakeup", "--period", "8760h"], "found \"8760h\", expected 1s at most"),
        (&["ipc", "--interval", "8760h"], "found \"8760h\", expected 1s at most"),
        (&["xddp", "--interval", "1001ms"], "found \"1001ms\", expected 1s at most"),
        (&["ecci", "--interval", "8760h"], "found \"8760h\", expected 1s at most"),
        (&["interrupt", "--interval", "8760h"], "found \"8760h\", expected 1s at most"),
        (&["culprit", "--every", "8760h"], "found \"8760h\", expected 1s at most"),
        (&["culprit", "--busy", "8760h"], "found \"8760h\", expected 1s at most"),
    ];
    for (arguments, expected) in turns {
        let mut command = measure();
        command.args(arguments);
        let ran = finished(command);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let folder = folder("measure-without-end");
    let durations = [
        ["devices", "--waiting=8760h", "shorter --waiting"],
        ["devices", "--direct=8760h", "shorter --direct"],
        ["omni", "--acceleration=1e-308", "expected 24 h at most"],
    ];
    for [experiment, option, expected] in durations {
        let mut command = measure();
        command.args([experiment, option, "--out"]).arg(&folder);
        let ran = finished(command);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.sentence().contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn an_experiment_of_no_time_is_refused() {
    let mut command = measure();
    command.args(["servo", "--duration", "0s"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("expected at least a period of the cycle, as 1ms"), "{}", ran.stderr);
}
