//! Comparison of the four drives.

use std::time::Duration;

use motion::base::Twist;
use record::{Statistics, Summary};
use report::boxes::Boxes;
use report::plots::Samples;
use report::{Plot, Report, Row, Section, Series, Table};
use serde_json::json;

use super::cell::Cell;
use super::course::Course;
use super::{Navigation, Planner, log};
use crate::Error;
use crate::distribution::{self, Durations};
use crate::paper::Paper;

pub(super) fn sections(settings: &Navigation, cells: &[Cell], report: &mut Report) -> Result<(), Error> {
    let nominal = types::time::nanoseconds(settings.period);
    let (mut periods, mut deviations) = (Vec::new(), Vec::new());
    for cell in cells {
        let between = |pair: &[record::CycleRecord]| pair[1].start_ns - pair[0].start_ns;
        // A skipped release makes one long period, which is what the actuator sees.
        let ns: Vec<u64> = cell.cycles.windows(2).map(between).collect();
        deviations.push(Durations::new(&cell.name, ns.iter().map(|ns| ns.abs_diff(nominal)).collect()));
        periods.push(Durations::new(&cell.name, ns));
        let summary = |it: &Durations| four_ns(&it.statistics());
        let drive = json!({
            "arrived_after_s": cell.arrival(&settings.course).map(|time| time.as_secs_f64()),
            "least_room_m": cell.least_room(),
            "cycles": cell.cycles.len(),
            "period_ns": periods.last().map(summary),
            "deviation_ns": deviations.last().map(summary),
            "planner": cell.commands.as_ref().map(super::ros2::Commands::json),
        });
        report.values.insert(cell.key.clone(), drive);
    }
    report.sections.push(four("Deviation of the actuator's period, us: |period - nominal|", &deviations));
    Paper::ServiceRobot.append(&["Figure 10"], report);
    report.sections.push(four("The actuator's period, us: start to start", &periods));
    report.sections.push(boxes(&periods));
    report.sections.push(drives(cells, &settings.course));
    report.sections.extend(planner(cells));
    report.sections.push(trajectories(cells, &settings.course));
    let own = settings.planner == Planner::Ipc;
    for cell in cells {
        report.sections.push(velocities("Velocity ahead", "m/s", own, cell, |twist| twist.x.0));
        report.sections.push(velocities("Yaw rate", "rad/s", own, cell, |twist| twist.yaw.0));
    }
    report.sections.extend(distribution::plots("Deviation of the actuator's period", &deviations));
    Ok(())
}

fn four(caption: &str, cells: &[Durations]) -> Section {
    let row = |it: &Durations| {
        let Summary { average, maximum, minimum, standard_deviation, .. } = it.statistics().summary();
        let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let cells = [average, whole(maximum), whole(minimum), standard_deviation];
        Row {
            name: it.name.clone(),
            cells: cells.map(report::numbers::microseconds).to_vec(),
            from_paper: false,
        }
    };
    Section::Table(Table {
        caption: caption.into(),
        columns: distribution::heads("", &["average", "maximum", "minimum", "standard deviation"]),
        rows: cells.iter().map(row).collect(),
    })
}

/// The paper's Figure 10.
fn boxes(periods: &[Durations]) -> Section {
    let values: Vec<Vec<f64>> =
        periods.iter().map(|it| it.ns.iter().map(|&ns| ns as f64 / 1e3).collect()).collect();
    let samples: Vec<Samples> =
        periods.iter().zip(&values).map(|(it, values)| Samples { name: &it.name, values }).collect();
    Section::Boxes(Boxes::of("The actuator's period (the paper's Figure 10)", "us", &samples))
}

fn four_ns(statistics: &Statistics) -> serde_json::Value {
    let Summary { average, maximum, minimum, standard_deviation, .. } = statistics.summary();
    json!({
        "average": average, "maximum": maximum, "minimum": minimum, "standard_deviation": standard_deviation
    })
}

fn drives(cells: &[Cell], course: &Course) -> Section {
    let row = |cell: &Cell| {
        let arrival = cell.arrival(course);
        let arrival = arrival.map_or_else(|| "never".into(), |time| format!("{:.2} s", time.as_secs_f64()));
        let room = cell.least_room().map_or_else(|| "-".into(), |room| format!("{room:.3} m"));
        let cells = vec![arrival, room, cell.cycles.len().to_string()];
        Row { name: cell.name.clone(), cells, from_paper: false }
    };
    Section::Table(Table {
        caption: "The drives, by the wheels' odometry: the simulated floor does not let wheels slip".into(),
        columns: distribution::heads("", &["at the goal after", "least room", "cycles"]),
        rows: cells.iter().map(row).collect(),
    })
}

/// Commands of a planner in a separate program, if it is one.
fn planner(cells: &[Cell]) -> Option<Section> {
    let row = |cell: &Cell| {
        let it = cell.commands.as_ref()?;
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        let cells = vec![seconds(it.first_after), it.count.to_string(), seconds(it.longest_pause)];
        Some(Row { name: cell.name.clone(), cells, from_paper: false })
    };
    let rows: Vec<Row> = cells.iter().filter_map(row).collect();
    let table = Table {
        caption: "The planner's commands: the drive begins with the first".into(),
        columns: distribution::heads("", &["first after", "commands", "longest time without"]),
        rows,
    };
    (!table.rows.is_empty()).then_some(Section::Table(table))
}

fn trajectories(cells: &[Cell], course: &Course) -> Section {
    let drive = |cell: &Cell| Series {
        name: cell.name.clone(),
        points: cell.drive.iter().step_by(5).map(|row| (row.pose.x.0, row.pose.y.0)).collect(),
    };
    let outline = |name: &str, corners: &[[f64; 2]]| Series {
        name: name.into(),
        points: corners.iter().chain(corners.first()).map(|[x, y]| (*x, *y)).collect(),
    };
    let [[left, low], [right, high]] = course.boards;
    let [x, y] = course.goal;
    let around = |step: u8| {
        let (sin, cos) = (f64::from(step) / 36.0 * std::f64::consts::TAU).sin_cos();
        [x + course.tolerance * cos, y + course.tolerance * sin]
    };
    let mut series: Vec<Series> = cells.iter().map(drive).collect();
    series.push(outline("triangle", &course.obstacle));
    series.push(outline("boards", &[[left, low], [right, low], [right, high], [left, high]]));
    series.push(outline("goal", &(0..36).map(around).collect::<Vec<_>>()));
    let caption = "Trajectory of the middle of the robot (the paper's Figure 9a)".into();
    Section::Map(Plot { caption, x: "x, m".into(), y: "y, m".into(), series })
}

/// The paper's Figure 9(b): command and feedback.
fn velocities(what: &str, unit: &str, own: bool, cell: &Cell, of: fn(&Twist) -> f64) -> Section {
    let begin = cell.drive.first().map_or(0, |row| row.time_ns);
    let series = |name: &str, twist: fn(&log::Row) -> &Twist| Series {
        name: name.into(),
        points: (cell.drive.iter().step_by(2))
            .map(|row| ((row.time_ns - begin) as f64 / 1e9, of(twist(row))))
            .collect(),
    };
    let reference = if own { "reference: the planner's" } else { "reference: as the wheels are sent" };
    Section::Curve(Plot {
        caption: format!("{what} over time, {} (the paper's Figure 9b)", cell.name),
        x: "s".into(),
        y: unit.into(),
        series: vec![series(reference, |row| &row.asked), series("feedback", |row| &row.twist)],
    })
}
