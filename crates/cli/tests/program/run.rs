//! `onbeat run`: six axes in Operation enabled, and the numbers at the end.
//!
//! A run as a service of systemd, which gets datagrams of it.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::common::{
    Running, alone, await_cycles, file, finished, folder, onbeat, run, shared, undisturbed,
    undisturbed_with_losses,
};

/// Datagrams of a run to its service manager, in order, and its log.
// feature(program): a run under systemd reports Op, its progress, that it is alive, and its stop (`Type=notify`)
#[test]
fn a_service_manager_is_notified_of_a_run() {
    let _shared = shared();
    let socket = folder("service").join("notify");
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("its timeout");
    let mut command = onbeat();
    command.args(["run", "--cycles", "1500", "--no-ipc", "--json"]);
    command.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "200000").env_remove("WATCHDOG_PID");
    let running = Running::start(command);
    let mut heard = Vec::new();
    let mut room = [0; 1024];
    while heard.last().is_none_or(|it| it != "STOPPING=1") {
        let length = manager.recv(&mut room).expect("a word within a minute");
        heard.push(String::from_utf8_lossy(&room[..length]).into_owned());
    }
    let ran = running.finish();
    ran.json();
    assert!(!ran.stderr.contains(" lost, "), "progress is the status, and not in the log: {}", ran.stderr);
    let place = |start: &str| heard.iter().position(|it| it.starts_with(start));
    let ready = place("READY=1\nSTATUS=").unwrap_or_else(|| panic!("{heard:?}"));
    assert!(heard[ready].contains("cycles, "), "{heard:?}");
    assert_eq!(heard.iter().filter(|it| it.starts_with("READY=1")).count(), 1, "{heard:?}");
    // 1.5 s and more in Op, one message each 100 ms without host stalls.
    assert!(heard[ready..].iter().filter(|it| *it == "WATCHDOG=1").count() > 2, "{heard:?}");
}

/// A missing manager, or an invalid name, costs nothing.
#[test]
fn a_run_needs_no_service_manager() {
    let _shared = shared();
    for name in ["/no/such/socket", "@no-such-name", "relative", ""] {
        let mut command = onbeat();
        command.args(["run", "--cycles", "10", "--no-ipc", "--json"]).env("NOTIFY_SOCKET", name);
        Running::start(command).finish().json();
    }
}

// feature(program): `run`: six axes, JSON, table
#[test]
fn six_axes_are_enabled_without_a_working_counter_error() {
    let end = undisturbed(|| run(&["run", "--cycles", "500", "--json"]));
    assert_eq!(end["cycles"], 500);
    assert_eq!(end["period_ns"], 1_000_000);
    assert_eq!(end["working_counter_errors"], 0);
    let axes = end["axes"].as_array().expect("axes");
    assert_eq!(axes.len(), 6);
    for (number, axis) in axes.iter().enumerate() {
        assert_eq!(axis["name"], format!("axis-{}", number + 1));
        assert_eq!(axis["state"], "Operation enabled");
        assert!(axis["position"].is_number());
    }
    for time in ["t_period_ns", "t_jitter_ns", "t_exec_ns"] {
        for statistic in ["average", "maximum", "minimum", "standard_deviation"] {
            assert!(end[time][statistic].is_number(), "{time} {statistic}");
        }
    }
    assert!(end["lost_frames"].is_number() && end["overruns"].is_number());
    assert!(end["conditions"]["kernel"].is_string(), "{}", end["conditions"]);
}

#[test]
fn the_axes_follow_their_swings() {
    let end = run(&["run", "--cycles", "1500", "--json"]).json();
    let positions: Vec<f64> =
        end["axes"].as_array().unwrap().iter().map(|axis| axis["position"].as_f64().unwrap()).collect();
    assert!(positions.iter().any(|position| position.abs() > 0.05), "{positions:?}");
    assert!(positions.iter().all(|position| position.abs() < 4.0), "{positions:?}");
}

// feature(program): `run`: six axes, JSON, table
#[test]
fn the_table_has_the_papers_rows_and_the_conditions() {
    let ran = run(&["run", "--cycles", "200"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expected in ["T_period", "T_jitter", "T_exec", "average", "maximum", "Operation enabled"] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    assert!(
        ran.stdout.contains("\nprofile ") && ran.stdout.contains("\ncomputer     kernel "),
        "{}",
        ran.stdout
    );
}

// feature(program): the end of `run` begins with a verdict on the timing
#[test]
fn the_end_begins_with_a_verdict_on_the_timing() {
    let ran = run(&["run", "--cycles", "200", "--no-ipc"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "six-axis: 6 axes, 200 cycles of 1ms, simulated. No failures.");
    let verdicts =
        ["good", "tight", "not good"].map(|word| format!("Timing: {word} for 1ms on this computer: "));
    assert!(verdicts.iter().any(|verdict| lines[1].starts_with(verdict)), "{}", ran.stdout);
    // A verdict with several counts takes two lines.
    let next = lines.iter().position(|line| line.starts_with("Next: "));
    assert!(next.is_some_and(|at| at <= 3 && lines[at + 1].is_empty()), "{}", ran.stdout);

    let fault = file("verdict.faults", "100ms drive fault drive-3 0x7500\n");
    let fault = fault.to_str().expect("UTF-8");
    let ran = run(&["run", "--cycles", "500", "--no-ipc", "--time", "fast", "--faults", fault]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let begin = "six-axis: 6 axes, 500 cycles of 1ms, simulated, with faults. 1 failure.\n\
                 Timing: not measured, `--time fast` does not wait between cycles.\n\
                 Next: the last lines name each failure and its remedy.\n\nus  ";
    assert!(ran.stdout.starts_with(begin), "{}", ran.stdout);
}

/// A torque that the drive does not map is `-` in the table and null in JSON, in `top`, too.
// feature(program): `run` and `top` tell no torque of a drive that does not map it
#[test]
fn an_unmapped_torque_is_not_reported_as_zero() {
    let mapped = "        { index = 0x6077, bits = 16, name = \"torque actual value\" },\n";
    let text = include_str!("../../../../examples/six-axis.toml");
    assert!(text.contains(mapped), "the drives of the example");
    let robot = file("no-torque.toml", &text.replace(mapped, ""));
    let robot = robot.to_str().expect("UTF-8");
    let name = format!("no-torque-{}", std::process::id());
    let only = alone();
    let asked = |arguments: &[&str]| {
        let mut command = onbeat();
        command.args(arguments);
        finished(command)
    };
    let mut command = onbeat();
    command.args(["run", robot, "--cycles", "3000", "--ipc", &name, "--json"]);
    let running = Running::start(command);
    await_cycles(running.id(), 1000);
    let seen = asked(&["top", &name, "--json"]).json();
    let pictured = asked(&["top", "--cycle", &name, "--once"]).stdout;
    let end = running.finish().json();
    drop(only);
    for axes in [&seen["axes"], &end["axes"]] {
        assert_eq!(axes.as_array().map(Vec::len), Some(6), "{axes}");
    }
    assert!((0..6).all(|axis| seen["axes"][axis]["effort"].is_null()), "{}", seen["axes"]);
    assert!((0..6).all(|axis| end["axes"][axis]["torque"].is_null()), "{}", end["axes"]);
    assert!(end["axes"][0]["velocity"].is_number(), "{}", end["axes"]);
    let row = pictured.lines().find(|line| line.starts_with("axis-1 ")).expect("a row");
    assert!(row.split_whitespace().any(|word| word == "-"), "{pictured}");
    let table = run(&["run", robot, "--cycles", "50", "--no-ipc"]).stdout;
    let row = table.lines().find(|line| line.starts_with("axis-1 ")).expect("a row");
    assert!(row.ends_with(" -"), "{table}");
}

#[test]
fn an_io_station_runs_next_to_its_drive() {
    let end = undisturbed(|| run(&["run", "examples/io-station.toml", "--cycles", "300", "--json"]));
    assert_eq!(end["working_counter_errors"], 0);
    assert_eq!(end["axes"][0]["state"], "Operation enabled");
}

#[test]
fn an_axis_on_a_terminal_is_refused_with_the_terminals_name() {
    let station = include_str!("../../../../examples/io-station.toml");
    let path = file("axis.toml", &station.replace("sub_device = \"spindle\"", "sub_device = \"lamps\""));
    let ran = run(&["run", path.to_str().unwrap(), "--cycles", "10"]);
    let sentence = ran.sentence();
    assert!(sentence.contains("SubDevice 1 \"lamps\"") && sentence.contains("CoE"), "{sentence}");
}

#[test]
fn a_cable_that_loses_everything_is_an_empty_bus() {
    let ran = run(&["run", "--cycles", "400", "--loss", "100%"]);
    assert!(ran.sentence().contains("no SubDevice answers"), "{}", ran.stderr);
}

#[test]
fn a_run_of_no_time_is_refused() {
    let ran = run(&["run", "--for", "0s"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("expected at least a period of the cycle, as 1ms"), "{}", ran.stderr);
}

#[test]
fn a_run_stops_after_its_time() {
    let end = run(&["run", "--for", "300ms", "--json"]).json();
    assert_eq!(end["cycles"], 300);
}

#[test]
fn a_capture_holds_the_frames() {
    let path = file("run.pcapng", "");
    let ran = run(&["run", "--cycles", "50", "--capture", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let capture = std::fs::read(&path).unwrap();
    assert_eq!(capture[..4], [0x0A, 0x0D, 0x0D, 0x0A], "a pcapng section header");
    assert!(capture.len() > 50 * 2 * 60);
}

#[test]
fn lost_frames_are_counted_and_end_nothing() {
    let arguments = ["run", "--cycles", "1000", "--loss", "2%", "--seed", "7", "--json"];
    let end = undisturbed_with_losses(|| run(&arguments));
    assert!(end["lost_frames"].as_u64().unwrap() > 0);
    assert_eq!(end["cycles"], 1000);
    assert!(
        end["axes"].as_array().unwrap().iter().all(|axis| axis["state"] == "Operation enabled"),
        "{end}"
    );
}

/// The JSON of a run that was sent SIGINT `times` times, one right behind the other.
fn interrupted(times: usize) -> serde_json::Value {
    let _alone = alone();
    let mut command = onbeat();
    command.args(["run", "--json"]);
    let running = Running::start(command);
    // More than it takes to Op.
    await_cycles(running.id(), 1000);
    let number = running.id().to_string();
    let kill = || std::process::Command::new("kill").args(["-INT", &number]).status().expect("kill");
    assert!((0..times).all(|_| kill().success()));
    running.finish().json()
}

// feature(program): Ctrl-C
#[test]
fn ctrl_c_stops_in_order_and_prints_the_table() {
    assert!(interrupted(1)["cycles"].as_u64().unwrap() > 0);
}

// feature(program): SIGQUIT, SIGXCPU, SIGUSR1 and others that would end it stop in order, as SIGTERM does; a second one hurries, a third ends, signals close together are one; Ctrl-Z suspends nothing
#[test]
fn a_signal_sent_twice_at_once_is_one_wish() {
    assert!(interrupted(2)["cycles"].as_u64().unwrap() > 0);
}
