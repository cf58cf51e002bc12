//! Pictures as golden text.

use std::collections::HashSet;
use std::time::Duration;

use ipc::bus::PortErrorCounters;
use ipc::bus::SyncStatus;
use ipc::description::{AxisDescription, BaseDescription, ControllerDescription, Description};
use ipc::diagnostics::{BusDiagnosis, PortDiagnosis, SubDeviceDiagnosis};
use ipc::state::{
    Axis, Base, Bus, Clock, CommandState, Control, Freshness, Limit, Refusal, SignalCounters, Spread,
    State, StopReason, Timing, TrajectoryStatus,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::super::picture::{Page, Picture, Standing, View};
use super::{Screen, lines, number};
use types::{BaseKind, ControllerKind, CyclicMode};

/// A driving service robot: its second command was refused, and the axis of its caster stopped.
fn base() -> Picture {
    let axis = |name: &str, mode: CyclicMode| AxisDescription::new(name, mode, 20.0, 5.0);
    let description = Description {
        version: "0.1.0".into(),
        robot: "m4k".into(),
        period_ns: 1_000_000,
        axes: vec![
            axis("left", CyclicMode::Velocity),
            axis("right", CyclicMode::Velocity),
            axis("head-of-the-robot", CyclicMode::Position),
        ],
        controllers: vec![ControllerDescription {
            name: "drive".into(),
            kind: Some(ControllerKind::DiffDrive),
            axes: vec![0, 1],
        }],
        base: Some(BaseDescription {
            kind: BaseKind::Differential,
            velocity_limit: 1.0,
            yaw_limit: 2.0,
            odometry_frame: "odom".into(),
            base_frame: "base_link".into(),
            wheels: Vec::new(),
        }),
        ..Description::default()
    };
    let moving = Axis {
        drive_state: 5,
        phase: 2,
        fresh: true,
        homed: true,
        position: 12.345_6,
        velocity: 3.951,
        effort: 0.42,
        target_velocity: 3.937,
        ..Axis::default()
    };
    let stopped = Axis {
        drive_state: 6,
        stop: StopReason::FollowingError as u8,
        fresh: true,
        position: -0.5,
        target_position: 0.25,
        ..Axis::default()
    };
    let times = |last_ns| Spread { last_ns, minimum_ns: 900, maximum_ns: 301_000, mean_ns: 11_200 };
    let state = State {
        clock: Clock::default(),
        signals: Vec::new(),
        interlocks: Vec::new(),
        signal_counters: SignalCounters::default(),
        cycle: 123_456,
        release_ns: 10_000_000_000,
        bus: Bus {
            phase: 7,
            all_fresh: true,
            frames_sent: 123_460,
            frames_accepted: 123_458,
            frames_lost: 2,
            broken_cycles: 2,
            clock_difference_ns: 120,
            ..Bus::default()
        },
        timing: Timing {
            cycles: 123_000,
            wakeup_latency: times(12_300),
            period_jitter: times(1_200),
            execution: times(8_200),
            overruns: 1,
            skipped: 1,
            last_overrun: 4_711,
        },
        command: CommandState {
            sequence: 7,
            stamp_ns: 9_988_000_000,
            freshness: Freshness::Fresh,
            accepted: 7,
            refused: 1,
            last_refusal: Refusal::Mode as u8,
            last_refused_axis: 1,
            last_refused_signal: u16::MAX,
            clamped: 2,
            last_clamp: Limit::Velocity as u8,
            last_clamped_axis: 0,
        },
        control: Control { enabled: true, ..Control::default() },
        base: Base { pose: [1.234, -0.5, 0.213], twist: [0.4, -0.001, 0.1] },
        axes: vec![moving, Axis { velocity: -3.951, ..moving }, stopped],
    };
    let mut picture = Picture { description, read_ns: 10_000_000_000, ..Picture::default() };
    for last_ns in [9_000, 14_000, 30_000, 12_300] {
        let mut earlier = state.clone();
        earlier.cycle += last_ns;
        earlier.timing.wakeup_latency.last_ns = last_ns;
        picture.take(earlier, 10_000_000_000);
    }
    picture.take(state, 10_000_000_000);
    let task = |name: &str, period_ns: u64, mean: u64, maximum: u64, minor_faults: u64| {
        json!({
            "name": name, "thread": 17, "period_ns": period_ns, "jobs": 123_000, "overruns": 0,
            "actual_period_ns": { "minimum": 900_000, "mean": 1_000_000, "maximum": 1_100_000 },
            "response_ns": { "minimum": 1_000, "mean": mean, "maximum": maximum },
            "disturbances": {
                "involuntary_switches": 2, "voluntary_switches": 123_000, "minor_faults": minor_faults, "major_faults": 0,
            },
        })
    };
    picture.diagnostics = Some(json!({
        "number": 7,
        "process": 4711,
        "tasks": [task("cycle", 1_000_000, 19_400, 312_000, 0), task("sonar", 30_000_000, 4_200, 19_900, 1)],
        "ports": [{
            "name": "scan", "bound": true, "open": true, "opened": 1, "sent": 17, "refused": 0, "delivered": 17,
            "written": 0, "received": 0, "dropped": 0,
        }],
        "watch": { "cycles": 123_000, "dropped_records": 0, "dropped_events": 0 },
        "conditions": { "kernel": "6.12.1", "link": "simulated", "cpu": null },
        "warnings": ["the kernel is not a PREEMPT_RT one"],
    }));
    picture
}

/// The humanoid: more axes than any terminal has lines.
fn humanoid() -> Picture {
    let mut picture = base();
    let axis = picture.description.axes[0].clone();
    let state = picture.state.axes[0];
    picture.description.axes = (1..=59)
        .map(|number| AxisDescription { name: format!("joint {number}"), ..axis.clone() })
        .collect();
    picture.state.axes = vec![state; 59];
    picture.description.base = None;
    picture
}

/// Text that a terminal of this size shows.
fn shown(picture: &Picture, view: View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| frame.render_widget(Screen { picture, view, keys: true }, frame.area())).unwrap();
    lines(terminal.backend().buffer())
}

// feature(ipc): `onbeat top`
#[test]
fn a_driving_robot_at_80_by_24_is_the_golden_picture() {
    let found = shown(&base(), View::default(), 80, 24);
    assert_eq!(found, include_str!("80x24.golden.txt"), "\n{found}");
}

#[test]
fn a_large_terminal_shows_axes_details_and_full_reasons() {
    let found = shown(&base(), View::default(), 120, 32);
    assert_eq!(found, include_str!("120x32.golden.txt"), "\n{found}");
}

// feature(ipc): `onbeat top` shows no old state as the present one
#[test]
fn an_axis_without_process_data_is_not_shown_as_enabled() {
    let mut picture = base();
    for axis in &mut picture.state.axes {
        (axis.drive_state, axis.stop, axis.fresh) = (5, StopReason::Outage as u8, false);
        axis.details.missed = 3_200;
    }
    for (width, state, why) in
        [(60, "no data", "no data 3.2 s"), (120, "no data for 3.2 s", "no data 3.2 s")]
    {
        let shown = shown(&picture, View::default(), width, 32);
        assert!(shown.contains(state) && shown.contains(why), "{shown}");
        assert!(!shown.to_lowercase().contains("enabled"), "{shown}");
    }
}

#[test]
fn the_other_page_shows_tasks_and_channels() {
    let found = shown(&base(), View { page: Page::Details, ..View::default() }, 80, 24);
    for part in ["sonar", "response us", "at most", "19.9", "preempted", "faults", "scan", "PREEMPT_RT"] {
        assert!(found.contains(part), "{part} in\n{found}");
    }
    assert!(!found.contains("csv"), "{found}");
}

// feature(ipc): `onbeat top`
#[test]
fn fifty_nine_axes_scroll_to_the_last() {
    let picture = humanoid();
    let mut view = View::default();
    let top = shown(&picture, view, 80, 24);
    assert!(top.contains("joint 1 ") && top.contains(" of 59") && !top.contains("joint 59"), "{top}");
    let rows = Screen { picture: &picture, view, keys: true }.rows();
    view.scroll(1_000, rows);
    let bottom = shown(&picture, view, 80, 24);
    assert!(bottom.contains("joint 59") && !bottom.contains("joint 1 "), "{bottom}");
    assert_eq!(bottom.matches("Operation enabled").count(), top.matches("Operation enabled").count());
}

// feature(ipc): `onbeat top` on small terminals: names told apart, axes first, what is beside the screen, help, curves of axes
#[test]
fn names_are_distinct_and_reasons_fit_80_columns() {
    let mut picture = humanoid();
    for (number, axis) in picture.description.axes.iter_mut().enumerate() {
        axis.name = format!("left-arm-shoulder-{number}");
    }
    let found = shown(&picture, View::default(), 80, 24);
    assert!(found.contains("left-arm-shoulder-1 enabled"), "{found}");
    picture.state.axes[1].stop = StopReason::FollowingError as u8;
    let found = shown(&picture, View::default(), 80, 24);
    assert!(found.contains("left-\u{2026}der-1") && found.contains("left-\u{2026}der-2"), "{found}");
    assert!(found.contains("following error"), "{found}");
}

/// Also where they differ in their middle only.
#[test]
fn shortened_names_are_distinct() {
    let told = |names: &[&str], room| {
        let mut picture = base();
        let axis = picture.description.axes[0].clone();
        picture.state.axes = vec![picture.state.axes[0]; names.len()];
        picture.description.axes =
            names.iter().map(|name| AxisDescription { name: (*name).into(), ..axis.clone() }).collect();
        picture.short_axis_names(room)
    };
    let same_ends =
        ["the-left-arm-shoulder-joint", "the-left-arm-elbow-xxx-joint", "the-left-leg-elbow-xxx-joint"];
    let of_twenty = told(&same_ends, 20);
    assert!(of_twenty.iter().all(|name| name.chars().count() == 20), "{of_twenty:?}");
    assert_eq!(of_twenty.iter().collect::<HashSet<_>>().len(), 3, "{of_twenty:?}");
    assert_eq!(
        told(&["left-leg-hip-yaw", "left-leg-hip-roll"], 9),
        ["left\u{2026}-yaw", "left\u{2026}roll"]
    );
    assert_eq!(told(&["x", "x"], 9), ["x", "x"]);
    let joints = ["shoulder-pitch", "elbow-pitch", "wrist-roll"];
    let arms: Vec<String> = ["left", "right"]
        .iter()
        .flat_map(|it| joints.map(|joint| format!("the-{it}-arm-{joint}-joint")))
        .collect();
    let of_eleven = told(&arms.iter().map(String::as_str).collect::<Vec<_>>(), 11);
    assert_eq!(of_eleven.iter().collect::<HashSet<_>>().len(), 6, "{of_eleven:?}");
}

// feature(ipc): `onbeat top` at 200x50: axes with their whole names and their curves beside them, then bus, tasks, channels, warnings
#[test]
fn a_large_terminal_has_curves_next_to_the_axes() {
    let mut picture = base();
    picture.history.axes = vec![(0..200).map(f64::from).collect(); 3];
    let found = shown(&picture, View::default(), 200, 50);
    assert_eq!(found, include_str!("200x50.golden.txt"), "\n{found}");
    // A single picture has no curve.
    picture.history.axes = vec![[1.0].into(); 3];
    let found = shown(&picture, View::default(), 200, 50);
    assert!(!found.contains("over the last pictures") && found.contains("head-of-the-robot"), "{found}");
}

#[test]
fn a_low_terminal_shows_axes_and_one_that_is_too_small_says_so() {
    let found = shown(&base(), View::default(), 50, 12);
    for part in [
        "m4k",
        "Op, all inputs",
        "left",
        "enabled",
        "head-of\u{2026}e-robot quickstop   -0.500 following error",
        "h help",
    ] {
        assert!(found.contains(part), "{part} in\n{found}");
    }
    let found = shown(&base(), View::default(), 20, 5);
    assert_eq!(found.trim_end(), "20 x 5: too small,\nexpected 40 x 6");
}

#[test]
fn help_is_shown_and_hidden_parts_are_reachable() {
    let found = shown(&base(), View { help: true, ..View::default() }, 80, 24);
    assert!(found.contains("scroll sideways") && !found.contains("head-of"), "{found}");
    let mut view = View { page: Page::Details, ..View::default() };
    assert!(!shown(&base(), view, 80, 24).contains("opened"));
    view.move_across(32);
    assert!(shown(&base(), view, 80, 24).contains("opened"));
}

#[test]
fn an_axis_without_data_shows_no_velocity_and_no_torque() {
    let mut picture = base();
    picture.state.axes.truncate(1);
    assert!(shown(&picture, View::default(), 200, 50).contains("12.346    3.951   0.420"));
    picture.state.axes[0].fresh = false;
    let found = shown(&picture, View::default(), 200, 50);
    assert!(found.contains("12.346        -       -"), "{found}");
}

#[test]
fn curves_of_axes_go_from_their_lowest_to_their_highest() {
    let mut picture = base();
    picture.history.axes = vec![[0.0, 1.0, f64::NAN, 2.0].into(), [3.0; 2].into(), [].into()];
    let found = shown(&picture, View { page: Page::Curves, ..View::default() }, 80, 24);
    assert!(
        found.contains("left              velocity    0.000    2.000 \u{2581}\u{2585} \u{2588}"),
        "{found}"
    );
    assert!(found.contains("head-of-the-robot position        -        -"), "{found}");
}

/// A paused picture shows the end.
#[test]
fn a_paused_picture_says_so_and_that_its_cycle_has_ended() {
    let mut picture = base();
    let paused = View { paused: true, ..View::default() };
    assert!(shown(&picture, paused, 80, 24).contains("  paused  "));
    picture.standing = Standing::Ended("ended".into(), Duration::from_secs(3));
    assert!(shown(&picture, paused, 80, 24).contains("ended (3.0 s ago)"));
}

#[test]
fn a_cycle_that_ended_says_so_and_keeps_its_last_picture() {
    let mut picture = base();
    picture.standing = Standing::Ended("the process 17 that ran it is gone".into(), Duration::from_secs(3));
    let found = shown(&picture, View::default(), 80, 24);
    assert!(found.contains("is gone (3.0 s ago)") && found.contains("Op, all inputs fresh"), "{found}");
}

/// Nothing is missed of one that need not be there, but its inputs are not fresh either.
#[test]
fn absent_inputs_are_counted() {
    let mut picture = base();
    picture.state.bus.absent = 2;
    let found = shown(&picture, View::default(), 80, 24);
    assert!(found.contains("Op, inputs fresh, 2 absent") && !found.contains("all inputs"), "{found}");
    picture.state.bus.all_fresh = false;
    let found = shown(&picture, View::default(), 80, 24);
    assert!(found.contains("Op, inputs not all fresh, 2 absent"), "{found}");
}

/// A torque that the drive does not map is no zero.
// feature(program): `run` and `top` tell no torque of a drive that does not map it
#[test]
fn unreported_torque_is_a_dash() {
    let mut picture = base();
    let of_left = |picture: &Picture| {
        let found = shown(picture, View::default(), 80, 24);
        found.lines().find(|line| line.starts_with("left ")).expect("its row").to_owned()
    };
    assert!(of_left(&picture).contains("3.951   0.420    3.937  -0.014"), "{}", of_left(&picture));
    picture.description.axes[0].measures_effort = false;
    picture.state.axes[0].effort = 0.0;
    assert!(of_left(&picture).contains("3.951       -    3.937  -0.014"), "{}", of_left(&picture));
    // The distance to an unreported torque is not known either.
    picture.description.axes[0].mode = CyclicMode::Torque.into();
    assert!(of_left(&picture).contains("3.951       -    0.000       -"), "{}", of_left(&picture));
}

// feature(main-device): lock, difference to the reference clock and phase of the frame against SYNC0 live: `top`, `run --json`, `diag`, Python, ROS 2
#[test]
fn the_reference_clock_has_a_line_where_the_bus_has_one() {
    let mut picture = base();
    assert!(!shown(&picture, View::default(), 80, 24).contains("SYNC0"));
    // Without distributed clocks there is no difference between them.
    picture.state.bus.clock_difference_ns = 0;
    let found = shown(&picture, View::default(), 80, 24);
    assert!(found.contains("2 ever") && !found.contains("clocks"), "{found}");
    picture.state.clock =
        Clock { fresh: true, frame_phase_ns: 512_340, difference_ns: -1_234_560, ..Clock::default() };
    let found = shown(&picture, View::default(), 80, 24);
    assert!(found.contains(" clock   frame 512.3 us behind SYNC0   differs -1234.6 us"), "{found}");
    for (lock, word) in [(1, "searching"), (2, "locked"), (3, "lost"), (9, "code 9")] {
        picture.state.clock = Clock { lock, phase_error_ns: 340, ..picture.state.clock };
        let found = shown(&picture, View::default(), 80, 24);
        assert!(found.contains("clocks within 0.0 us"), "{found}");
        assert!(
            found.contains(&format!(" clock   {word}, error +0.3 us   frame 512.3 us behind SYNC0")),
            "{found}"
        );
    }
}

#[test]
fn trajectories_and_codes_of_a_newer_run_are_shown() {
    let mut picture = base();
    picture.state.control.trajectory = 3;
    picture.state.control.trajectory_status = TrajectoryStatus::Executing;
    picture.state.control.trajectory_elapsed_ns = 1_200_000_000;
    picture.state.control.active = 99;
    picture.state.axes[0].stop = 250;
    picture.state.axes[1].drive_state = 250;
    let found = shown(&picture, View::default(), 120, 32);
    for part in ["trajectory 3 executing, 1.2 s", "none, drives", "code 250"] {
        assert!(found.contains(part), "{part} in\n{found}");
    }
}

/// However small a terminal is, and however little is known, nothing panics.
#[test]
fn any_size_and_an_empty_picture_are_drawn() {
    for picture in [base(), humanoid(), Picture::default()] {
        for (width, height) in [(1, 1), (10, 3), (79, 12), (300, 100), (5, 60)] {
            for page in [Page::Axes, Page::Curves, Page::Signals, Page::Bus, Page::Details] {
                for (across, help) in [(0, false), (400, false), (0, true)] {
                    let view = View { page, scroll: 70, across, paused: true, help };
                    shown(&picture, view, width, height);
                }
            }
        }
    }
}

// feature(diagnosis): `onbeat top` shows the SubDevices of a running bus with states, links, clocks and error counters
#[test]
fn the_page_of_the_bus_has_each_sub_device_with_its_counters() {
    let mut picture = base();
    let port = PortErrorCounters { invalid_frames: 7, lost_links: 2, ..PortErrorCounters::default() };
    let told = |position, state: &str, ports| SubDeviceDiagnosis {
        position,
        name: format!("drive-{position}"),
        state: state.into(),
        clock_difference_ns: Some(-12),
        sync0: (position == 1).then_some(SyncStatus { frame_phase_ns: 262_340, ..SyncStatus::default() }),
        links: Some(vec![0, 1]),
        ports,
        ..SubDeviceDiagnosis::default()
    };
    let ports = vec![PortDiagnosis { port: 0, errors: port }, PortDiagnosis { port: 1, errors: port }];
    let bus = BusDiagnosis {
        clock_spread_ns: Some(42),
        sub_devices: vec![told(0, "Op", Vec::new()), told(1, "SafeOp", ports)],
        left_out: 3,
        ..BusDiagnosis::default()
    };
    picture.diagnostics.as_mut().unwrap()["bus_diagnosis"] = json!(bus);
    let found = shown(&picture, View { page: Page::Bus, ..View::default() }, 90, 24);
    let row = |name: &str| -> Vec<String> {
        let line = found.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{found}"));
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("drive-0")[2..], ["Op", "0", "-12", "0,1", "0", "0", "0", "0", "0", "0"], "{found}");
    assert_eq!(
        row("drive-1")[2..],
        ["SafeOp", "0", "-12", "0,1", "14", "0", "0", "4", "0", "0"],
        "{found}"
    );
    assert!(found.contains("3 more") && found.contains("spread over 42 ns"), "{found}");
    let all = Screen { picture: &picture, view: View::default(), keys: false }.text(100);
    let wide = shown(&picture, View { page: Page::Bus, ..View::default() }, 120, 24);
    assert!(wide.contains("SYNC0 us") && wide.contains("262.3"), "{wide}");
    assert!(all.contains("drive-1") && all.contains("PREEMPT_RT"), "{all}");
}

#[test]
fn once_shows_every_axis_and_all_reports() {
    let picture = humanoid();
    let text = Screen { picture: &picture, view: View::default(), keys: false }.text(100);
    assert!(
        text.contains("joint 1 ") && text.contains("joint 59") && text.contains("PREEMPT_RT"),
        "{text}"
    );
    assert!(!text.contains("q quit") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

// feature(signals): `onbeat io`, `top`, `run --json`; an error with the line of the file leaves the bus in Init
#[test]
fn signals_are_shown_with_their_values_and_old_ones_say_so() {
    use ipc::description::SignalDescription;
    use ipc::state::{Signal, ValueKind};

    let mut picture = base();
    let signal = |name: &str, kind, unit: &str| SignalDescription {
        name: name.to_owned(),
        kind,
        unit: unit.to_owned(),
        direction: types::signal::Direction::Input,
        ..SignalDescription::default()
    };
    picture.description.signals =
        vec![signal("door closed", ValueKind::Bool, ""), signal("pressure", ValueKind::Real, "bar")];
    picture.state.signals = vec![
        Signal { word: 1, fresh: true, forced: true },
        Signal { word: 2.5_f64.to_bits(), fresh: false, forced: false },
    ];
    let screen = Screen { picture: &picture, view: View::default(), keys: false };
    let text = screen.text(100);
    assert!(text.contains("door closed input") && text.contains("true (forced)"), "{text}");
    assert!(text.contains("2.5 bar (old)"), "{text}");
    // Where not all find room, they are a page of their own.
    let view = View { page: Page::Signals, ..View::default() };
    assert!(shown(&picture, view, 80, 24).contains("2.5 bar (old)"));
}

#[test]
fn numbers_find_room_and_zero_has_no_sign() {
    for (value, text) in [
        (0.0, "0.000"),
        (-0.000_1, "0.000"),
        (-99.999, "-99.999"),
        (123.456, "123.46"),
        (-12_345.6, "-12346"),
        (1.0e9, "1.0e9"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(number(value), text);
        assert!(number(value).len() <= 7);
    }
}
