//! Runs on a program's own threads: sequential, concurrent, stopped, refused.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::thread;
use std::time::Duration;

use onbeat::ipc::client::ControllerError;
use onbeat::{
    BringUpError, Control, Controller, CycleEvent, Error, FaultRates, Faults, Finding, Happening, KeptOff,
    Notice, OpenError, Phase, Progress, Reporter, Robot, StopHandle, Value,
};

/// Leaves all axes as they are.
struct Still;

impl Controller for Still {}

const SIX_AXIS: &str = include_str!("../../../examples/six-axis.toml");

fn six_axis() -> Robot {
    Robot::parse(SIX_AXIS, "six-axis.toml").unwrap().without_ipc()
}

// feature(library): runs after each other, stopped by a handle, which serves the next one too
#[test]
fn a_run_after_one_that_was_stopped_runs_to_its_end() {
    let stop = StopHandle::new();
    let stopped = stopping_after(50, &stop, six_axis().stop(&stop));
    assert!(stopped.cycles() >= 50, "{stopped}");
    assert!(stopped.failure.is_none() && stopped.stopped_by_overrun.is_none(), "{stopped:?}");
    assert_eq!(six_axis().cycles(200).run(Still).unwrap().cycles(), 200);
    // A handle that has asked before ends a run before its first cycle in Op, in order.
    let ended = six_axis().stop(&stop).cycles(200).run(Still);
    match ended {
        Err(Error::BringUp(BringUpError::Stopped)) => {}
        Ok(summary) => assert_eq!(summary.cycles(), 0),
        Err(other) => panic!("{other:?}"),
    }
}

/// Runs until so many cycles were seen, and then stops by the handle.
fn stopping_after(cycles: u64, stop: &StopHandle, robot: Robot) -> onbeat::Summary {
    let mut reporter = Stops { cycles, stop: stop.clone(), phases: Vec::new(), events: 0 };
    let summary = robot.run_by(Control::own(Still), &mut reporter).unwrap();
    // A look at the bring-up may come late.
    assert!(reporter.phases.ends_with(&[Phase::Measuring, Phase::Stopping]), "{:?}", reporter.phases);
    assert!(reporter.events > 0, "the bus came to Op");
    summary
}

struct Stops {
    cycles: u64,
    stop: StopHandle,
    phases: Vec<Phase>,
    events: usize,
}

impl Reporter for Stops {
    fn events(&mut self, events: Vec<CycleEvent>) {
        self.events += events.iter().filter(|it| matches!(it.what, Happening::Bus(_))).count();
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        if self.phases.last() != Some(&progress.phase) {
            self.phases.push(progress.phase);
        }
        if progress.timing.cycles() >= self.cycles {
            self.stop.stop();
        }
    }
}

// feature(library): runs after each other, stopped by a handle, which serves the next one too
#[test]
fn a_handle_that_has_not_asked_serves_the_next_run_too() {
    let stop = StopHandle::new();
    let robot = six_axis().stop(&stop).cycles(100);
    assert_eq!(robot.clone().run(Still).unwrap().cycles(), 100);
    assert!(!stop.is_requested());
    assert_eq!(robot.run(Still).unwrap().cycles(), 100);
}

// feature(library): runs beside each other, simulated and on interfaces of their own
#[test]
fn concurrent_runs_end_by_their_own_handles() {
    let (long, short) = (StopHandle::new(), StopHandle::new());
    let other = long.clone();
    let beside = thread::spawn(move || stopping_after(1_500, &other, six_axis().stop(&other)));
    let summary = stopping_after(100, &short, six_axis().stop(&short));
    assert!(summary.cycles() >= 100 && !beside.is_finished());
    assert!(short.is_requested());
    assert!(beside.join().unwrap().cycles() >= 1_500);
}

#[test]
fn two_robots_of_one_name_have_shared_memory_of_their_own() {
    let folder = std::env::temp_dir().join(format!("onbeat-runs-{}", std::process::id()));
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let run = |name: &str| Robot::parse(SIX_AXIS, "six-axis.toml").unwrap().ipc(at(name)).cycles(300);
    let (one, other) = (run("one"), run("other"));
    let beside = thread::spawn(move || one.run(Still));
    assert_eq!(other.run(Still).unwrap().cycles(), 300);
    assert_eq!(beside.join().unwrap().unwrap().cycles(), 300);
}

// feature(library): errors to match on: interface, robot file, signal, bring-up, recording, panic
#[test]
fn an_interface_that_is_not_there_is_an_error_to_match_on() {
    let error = six_axis().interface("no-such-nic").run(Still).unwrap_err();
    match &error {
        Error::Interface(OpenError::NoSuchInterface { interface, .. }) => {
            assert_eq!(interface, "no-such-nic")
        }
        // Without CAP_NET_RAW there is no socket to look with.
        Error::Interface(OpenError::NotPermitted { .. }) => testkit::skip!("{error}"),
        other => panic!("{other:?}"),
    }
}

// feature(library): errors to match on: interface, robot file, signal, bring-up, recording, panic
#[test]
fn a_wrong_key_of_a_robot_file_is_an_error_with_its_place() {
    let error = Robot::parse(&SIX_AXIS.replace("period =", "perriod ="), "mine.toml").unwrap_err();
    let Error::RobotFile(found) = &error else { panic!("{error:?}") };
    assert!(found.place.is_some() && found.file == "mine.toml", "{found:?}");
    assert!(found.found.contains("perriod"), "{found:?}");
    assert!(matches!(Robot::load("no-such-robot.toml"), Err(Error::RobotFile(_))));
}

// feature(library): errors to match on: interface, robot file, signal, bring-up, recording, panic
#[test]
fn a_bus_that_loses_everything_does_not_come_up_and_says_so() {
    let all = FaultRates { loss: 1.0, ..FaultRates::default() };
    let robot = six_axis().faults(Faults { requests: all, replies: all, seed: 1 });
    let error = robot.run(Still).unwrap_err();
    assert!(matches!(error, Error::BringUp(_)), "{error:?}");
}

/// `Debug` of an error, which a `main` prints that returns it, is its sentence.
// feature(library): a `main` that returns an error prints its sentence; a bus that does not come to Op has its reason in it
#[test]
fn a_main_that_returns_an_error_prints_its_sentence() {
    let error = Robot::load("no-such-robot.toml").unwrap_err();
    let sentence = "no-such-robot.toml: cannot be read";
    assert!(error.to_string().starts_with(sentence), "{error}");
    assert_eq!(format!("{error:?}"), error.to_string());
    let error = onbeat::external::Error::from(ControllerError::Taken { process: 17 });
    assert_eq!(format!("{error:?}"), "process 17 is the controller: end it first");
}

/// A bus that fails on the way to Op names the SubDevice and its reason, not only that there is no
/// Op.
// feature(library): a `main` that returns an error prints its sentence; a bus that does not come to Op has its reason in it
#[test]
fn a_bus_that_does_not_come_to_op_says_why() {
    let script = std::env::temp_dir().join(format!("onbeat-runs-{}-refuses", std::process::id()));
    std::fs::write(&script, "0s state refuse drive-3 Op 0x8001\n").unwrap();
    let wire = onbeat::compose::link::Wire { script: Some(script.clone()), ..Default::default() };
    let error = six_axis().wire(wire).cycles(10).run(Still).unwrap_err();
    drop(std::fs::remove_file(script));
    let Error::NotInOp(failed) = &error else { panic!("{error:?}") };
    assert!(!failed.findings.is_empty() && failed.failure.is_some(), "{failed:?}");
    assert_eq!(failed.findings.len(), failed.sentences.len());
    let sentence = "the bus did not reach Op: SubDevice 2 \"drive-3\" refuses Op and stays in SafeOp";
    assert!(format!("{error:?}").starts_with(sentence), "{error}");
}

// feature(library): a bus that does not reach Op: the error names files that are incomplete, too
#[cfg(feature = "recording")]
#[test]
fn a_bus_without_op_reports_its_recording_too() {
    let script = std::env::temp_dir().join(format!("onbeat-runs-{}-no-op", std::process::id()));
    std::fs::write(&script, "0s state refuse drive-3 Op 0x8001\n").unwrap();
    let wire = onbeat::compose::link::Wire { script: Some(script.clone()), ..Default::default() };
    let error = six_axis().wire(wire).cycles(10).record("/dev/full").run(Still).unwrap_err();
    drop(std::fs::remove_file(script));
    let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
    let [bus, file] = &lines[..] else { panic!("{lines:?}") };
    assert!(bus.starts_with("the bus did not reach Op: "), "{bus}");
    assert!(file.starts_with("/dev/full: No space left on device"), "{file}");
}

// feature(library): results and notices as values
#[cfg(all(feature = "diagnosis", feature = "recording"))]
#[test]
fn requested_files_are_in_the_summary() {
    let file = |name: &str| std::env::temp_dir().join(format!("onbeat-runs-{}-{name}", std::process::id()));
    let (record, capture) = (file("record"), file("capture.pcapng"));
    let robot = six_axis().cycles(200).record(&record).capture(&capture).watch(onbeat::Detail::Counts);
    let summary = robot.profile(onbeat::Profile::NONE).run(Still).unwrap();
    assert_eq!(summary.files.len(), 2);
    assert!(summary.files.iter().all(Result::is_ok), "{:?}", summary.files);
    assert!(std::fs::metadata(&capture).unwrap().len() > 1_000);
    let recorded = std::io::BufReader::new(std::fs::File::open(&record).unwrap());
    assert_eq!(record::Recording::read(recorded).unwrap().len(), 200);
    assert_eq!(
        (summary.granted.letters(), summary.diagnosis.disturbances.len()),
        (onbeat::Profile::NONE, 1)
    );
    let nowhere = six_axis().record("/no such folder/record").run(Still).unwrap_err();
    assert!(matches!(nowhere, Error::Recording { .. }), "{nowhere:?}");
    drop((std::fs::remove_file(record), std::fs::remove_file(capture)));
}

// feature(library): results and notices as values
// feature(library): the summary of a run has the worst lateness, and a sentence on each finding
#[test]
fn a_run_that_did_not_go_as_it_should_has_findings() {
    struct Enables;
    impl Controller for Enables {
        fn update(&mut self, _: onbeat::CycleInfo, io: &mut onbeat::Io<'_>) {
            let commands = io.commands();
            commands.iter_mut().for_each(|command| command.request = onbeat::Request::Enable);
        }
    }
    // The input of the permission is low.
    let door = r#"
        [[bus.sub_device]]
        name = "switches"
        simulate = { kind = "digital_inputs", channels = 4 }
        [[interlock]]
        name = "door"
        kind = "enable"
        sub_device = "switches"
        channel = 2
        axes = ["axis-2"]
    "#;
    let robot = Robot::parse(&format!("{SIX_AXIS}{door}"), "door.toml").unwrap().without_ipc();
    let summary = robot.cycles(300).run(Enables).unwrap();
    let of_axis_2 =
        |it: &Finding| matches!(it, Finding::NotEnabled { axis: 1, why: KeptOff::NotPermitted });
    assert!(!summary.went_well() && summary.findings.iter().any(of_axis_2), "{:?}", summary.findings);
    assert_eq!(summary.sentences.len(), summary.findings.len(), "{summary}");
    let sentence = "axis \"axis-2\" was not enabled: ";
    assert!(summary.sentences.iter().any(|it| it.starts_with(sentence)), "{summary}");
    let text = summary.to_string();
    assert!(text.starts_with("300 cycles, worst lateness ") && text.contains(" ms in cycle "), "{text}");
    assert_eq!(text.lines().count(), 1 + summary.findings.len(), "{text}");
    assert!(text.contains(&format!("\n{sentence}")), "{text}");
    assert!(!summary.axis("axis-2").unwrap().was_enabled && summary.axis("axis-1").unwrap().was_enabled);
}

// feature(library): results and notices as values
#[test]
fn notices_of_a_run_are_values() {
    let text = r#"
        name = "unwatched"

        [cycle]
        period = "1ms"

        [bus]
        process_data_watchdog = "off"

        [[bus.sub_device]]
        name = "valves-{}"
        count = 6
        simulate = { kind = "digital_outputs", channels = 8 }
    "#;
    let mut notices = Notices(Vec::new());
    let robot = Robot::parse(text, "unwatched.toml").unwrap().without_ipc().cycles(20);
    robot.run_by(Control::own(Still), &mut notices).unwrap();
    let unwatched = notices.0.iter().filter(|it| matches!(it, Notice::NoWatchdog { .. })).count();
    assert_eq!(unwatched, 6, "{:?}", notices.0);
}

struct Notices(Vec<Notice>);

impl Reporter for Notices {
    fn notice(&mut self, notice: &Notice) {
        self.0.push(notice.clone());
    }
}

// feature(library): errors to match on: interface, robot file, signal, bring-up, recording, panic
#[test]
fn a_controller_that_panics_ends_the_run_with_an_error() {
    struct Panics;
    impl Controller for Panics {
        fn update(&mut self, _: onbeat::CycleInfo, _: &mut onbeat::Io<'_>) {
            std::panic::resume_unwind(Box::new("out of its depth"));
        }
    }
    let Err(error) = six_axis().cycles(10).run(Panics) else { panic!("it ran") };
    assert_eq!(error.to_string(), "the controller panicked, and its axes were stopped: out of its depth");
    assert!(matches!(error, Error::ControllerPanicked { .. }));
    assert_eq!(six_axis().duration(Duration::from_millis(50)).run(Still).unwrap().cycles(), 50);
}

// feature(signals): types from the object dictionary where the file and the SII give none
#[test]
fn described_entry_has_the_object_dictionary_type() {
    let text = include_str!("../../../examples/io-station.toml");
    let statusword = "{ index = 0x6041, bits = 16, name = \"statusword\" },";
    let demand = "{ index = 0x6074, bits = 16, name = \"torque demand\" },";
    let text = text.replace(statusword, &format!("{statusword} {demand}"));
    let summary = Robot::parse(&text, "demand.toml").unwrap().without_ipc().cycles(20).run(Still).unwrap();
    let value = |name: &str| summary.signal(name).unwrap().value;
    assert_eq!(value("spindle.torque demand"), Value::Signed(0), "INTEGER16 by its object alone");
    assert!(matches!(value("spindle.statusword"), Value::Unsigned(_)));
    // A terminal without CoE.
    assert!(matches!(value("switches.0x6000:01"), Value::Bool(_)));
}

// feature(library): the limits of an axis are in its drive too, and a drive that weakens them is reported
#[test]
fn what_bounds_each_axis_in_its_drive_is_a_notice() {
    let text = r#"
        name = "bounded"

        [cycle]
        period = "1ms"

        [[bus.sub_device]]
        name = "drive"
        simulate = { kind = "servo_drive", encoder_counts = 1000 }
        startup = [
            { index = 0x605A, type = "int16", value = 0 },
            { index = 0x6072, type = "uint16", value = 3000 },
        ]

        [[axis]]
        name = "x"
        sub_device = "drive"
        mode = "csp"
        counts_per_revolution = 1000
        rated_torque = 2.4
        encoder = "multi_turn"
        encoder_range = 4_294_968
        limits = { position = [-3.14159, 3.14159], velocity = 6.2832, acceleration = 62.832, torque = 2.4 }
    "#;
    let run = |text: &str| {
        let mut notices = Notices(Vec::new());
        let robot = Robot::parse(text, "bounded.toml").unwrap().without_ipc().cycles(20);
        robot.run_by(Control::own(Still), &mut notices).unwrap();
        notices.0
    };
    let notices = run(text);
    let details: Vec<_> = notices.iter().filter(|it| matches!(it, Notice::Detail(_))).collect();
    let detail = details[0].to_string();
    // Half a turn, 50 counts to stop and a step of 2.
    let expected = "axis \"x\": bounded in the drive by 0x607D:01 = -552, 0x607D:02 = 552, 0x607F = 1201, \
                    0x6072 = 3000 of startup, 0x6085 = 10001; not by 0x6065, 0x6066 (the axis has no \
                    following_error)";
    assert_eq!(detail, expected);
    let weak: Vec<_> = notices.iter().filter(|it| matches!(it, Notice::WeakDrive(_))).collect();
    let weak: Vec<String> = weak.into_iter().map(ToString::to_string).collect();
    let expected = [
        "axis \"x\": startup writes 3000 to 0x6072, expected 1000 as its limits say: the drive limits it less; correct or remove \
         this startup object",
        "axis \"x\": quick stop option code 0x605A is 0, expected 1 to 8: a quick stop takes the torque off, and the axis coasts; \
         write 2 to it in startup",
    ];
    assert_eq!(weak, expected);
    let loaded = run(&text
        .replace("mode = \"csp\"", "mode = \"csp\"\nholds_load = true")
        .replace("value = 0 }", "value = 2 }"));
    let weak: Vec<_> = loaded.iter().filter(|it| matches!(it, Notice::WeakDrive(_))).collect();
    let expected = "axis \"x\": quick stop option code 0x605A is 2, expected 5 to 8: after a quick stop the drive takes its torque \
                    off, and its load falls; write 6 to it in startup";
    assert_eq!(weak[1].to_string(), expected);
    let off = run(&text.replace("mode = \"csp\"", "mode = \"csp\"\ndrive_limits = false"));
    let off = off.iter().find(|it| matches!(it, Notice::Detail(_))).unwrap().to_string();
    assert!(off.contains("by 0x6072 = 3000 of startup; not by 0x607D:01, 0x607D:02"), "{off}");
    assert!(off.contains("(drive_limits = false)"), "{off}");
}
