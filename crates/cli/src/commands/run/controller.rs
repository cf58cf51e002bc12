//! A controller in a process of its own, asked for on the command line, and what its answers came to.

use std::fmt::Write as _;

use clap::ValueEnum;
use ipc::controller::{ControllerCounters, Wrong};
use robot::{Controller, ControllerKind, External, Robot};

/// Place of the controller.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Where {
    /// A program that attaches to the IPC
    External,
}

/// Begins with the controller process: that of the file, or one of all axes instead of the file's controllers.
pub(super) fn put_first(robot: &mut Robot) {
    let external = |it: &Controller| matches!(it.kind, ControllerKind::External(_));
    match robot.controllers.iter().position(external) {
        Some(place) => robot.controllers[..=place].rotate_right(1),
        None => {
            let kind = ControllerKind::External(External::usual(robot.cycle.period));
            let axes = (0..robot.axes.len()).collect();
            robot.controllers = vec![Controller { name: kind.name().to_owned(), kind, axes }];
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
    use crate::compose::robot_file;

    #[test]
    fn the_files_controller_process_comes_first_or_one_of_all_axes_takes_the_place_of_all() {
        let mut robot = robot_file::robot(None, None).unwrap();
        put_first(&mut robot);
        assert_eq!(robot.controllers.len(), 1);
        let External { deadline, max_late } = External::usual(robot.cycle.period);
        assert_eq!((robot.controllers[0].name.as_str(), robot.controllers[0].axes.len()), ("external", 6));
        let own = External { deadline: deadline / 2, max_late: max_late + 1 };
        let kinds = [ControllerKind::Hold, ControllerKind::External(own), ControllerKind::JointVelocity];
        robot.controllers = kinds
            .into_iter()
            .map(|kind| Controller { name: kind.name().to_owned(), kind, axes: vec![0] })
            .collect();
        put_first(&mut robot);
        let names: Vec<&str> = robot.controllers.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["external", "hold", "joint_velocity"]);
        assert_eq!(robot.controllers[0].kind, ControllerKind::External(own));
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
