//! A controller in a separate process, requested on the command line, and the statistics of its
//! answers.

use std::fmt::Write as _;

use clap::ValueEnum;
use ipc::controller::{ControllerCounters, Wrong};
use robot::{Controller, ControllerKind, RobotConfig};

/// Place of the controller.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Where {
    /// A program that attaches to the IPC
    External,
}

/// Begins with the controller process: that of the file, or one of all axes instead of the file's
/// controllers.
pub(super) fn put_first(robot: &mut RobotConfig) {
    let external = |it: &Controller| it.kind == ControllerKind::External;
    match robot.controllers.iter().position(external) {
        Some(place) => robot.controllers[..=place].rotate_right(1),
        None => {
            let axes = (0..robot.axes.len()).collect();
            let period = robot.cycle.period;
            robot.controllers = vec![Controller::of_kind(ControllerKind::External, axes, period)];
        }
    }
}

/// Lines for the table of a run.
pub(super) fn table(counters: &ControllerCounters) -> String {
    let it = counters;
    let micros = |ns: u64| ns as f64 / 1e3;
    let mut text = format!(
        "controller process      {} answers in time, mean {:.1} us, maximum {:.1} us\n",
        it.answered,
        micros(it.response_ns.mean),
        micros(it.response_ns.maximum),
    );
    if it.late > 0 {
        let _ = writeln!(
            text,
            "  late answers          {}, the last in cycle {}, at most {} in a row; {} taken a cycle later",
            it.late, it.last_late, it.most_late_in_a_row, it.taken_late
        );
    }
    if it.wrong > 0 {
        let why = u8::try_from(it.why_wrong)
            .ok()
            .and_then(Wrong::from_code)
            .map_or("another reason", Wrong::words);
        let _ = writeln!(
            text,
            "  answers refused       {}, the last in cycle {}: {why}",
            it.wrong, it.last_wrong
        );
    }
    if it.stops > 0 {
        let _ = writeln!(text, "  axes stopped          {} times, for want of answers", it.stops);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot::Overrides;

    #[test]
    fn controller_process_is_first_or_replaces_all_controllers() {
        let mut robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        put_first(&mut robot);
        assert_eq!(robot.controllers.len(), 1);
        let first = &robot.controllers[0];
        assert_eq!((first.name.as_str(), first.axes.len()), ("external", 6));
        assert_eq!((first.deadline, first.max_late), (robot.cycle.period / 2, 3));
        let kinds = [ControllerKind::Hold, ControllerKind::External, ControllerKind::JointVelocity];
        let mut controllers =
            kinds.map(|kind| Controller::of_kind(kind, vec![0], robot.cycle.period)).to_vec();
        controllers[1].max_late = 4;
        robot.controllers = controllers;
        put_first(&mut robot);
        let names: Vec<&str> = robot.controllers.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["external", "hold", "joint_velocity"]);
        assert_eq!(robot.controllers[0].max_late, 4);
    }

    #[test]
    fn what_did_not_happen_has_no_line() {
        let calm = ControllerCounters { answered: 7, ..ControllerCounters::default() };
        assert_eq!(table(&calm).trim_end().lines().count(), 1);
        let wild = ControllerCounters { late: 3, last_late: 71, wrong: 2, why_wrong: 5, stops: 1, ..calm };
        let text = table(&wild);
        assert!(text.contains("3, the last in cycle 71") && text.contains("NaN"), "{text}");
    }
}
