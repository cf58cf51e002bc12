//! T_exec = C + P + T against the number of SubDevices and of bytes, which the servo paper claims
//! and does not measure.

use report::{Plot, Report, Row, Section, Series, Table};
use serde_json::json;

use super::CostFound;
use super::cases::Case;
use super::fit::{Plane, Point};
use crate::distribution::heads;
use crate::paper::Paper;

/// SubDevices of the sweep.
pub(super) const NUMBERS: [usize; 4] = [1, 10, 50, 100];

/// Bytes of each, in each direction; the servo paper's drives have 12.
pub(super) const BYTES: [usize; 3] = [4, 12, 48];

/// Median of C + P + T of a bus.
struct SweptBus<'a> {
    sub_devices: usize,
    bytes_each: usize,
    found: &'a CostFound,
}

impl SweptBus<'_> {
    fn point(&self) -> Option<Point> {
        let time = self.found.execution.summary().p50?;
        let bytes = 2 * self.sub_devices * self.bytes_each;
        Some([self.sub_devices as f64, bytes as f64, time as f64])
    }
}

/// Adds table, fitted plane and plot of the sweep.
pub(super) fn append(cases: &[Case], found: &[CostFound], report: &mut Report) {
    let buses: Vec<SweptBus> = cases
        .iter()
        .zip(found)
        .filter_map(|(case, found)| match *case {
            Case::Exchange(sub_devices, bytes_each) => Some(SweptBus { sub_devices, bytes_each, found }),
            _ => None,
        })
        .collect();
    let points: Vec<Point> = buses.iter().filter_map(SweptBus::point).collect();
    let plane = Plane::through(&points);
    report.sections.push(table(&buses, plane));
    let text = match plane {
        Some(it) => format!(
            "Fitted: T_exec = {:.0} ns + {:.2} ns for each SubDevice + {:.3} ns for each byte, which explains {:.2} % of the variance of these medians. \
             The servo paper says that T_exec depends on both, and does not measure it; its times have a network card's driver in them.",
            it.constant,
            it.per_sub_device,
            it.per_byte,
            100.0 * it.r_squared
        ),
        None => "No plane is fitted: fewer than three buses that lie apart.".to_owned(),
    };
    report.sections.push(Section::Text(text));
    report.sections.push(Section::Curve(plot(&buses, plane)));
    Paper::Servo.append(&["Table 3"], report);
    report.values.insert(
        "fit".into(),
        plane.map_or(serde_json::Value::Null, |it| {
            json!({
                "constant_ns": it.constant,
                "sub_device_ns": it.per_sub_device,
                "byte_ns": it.per_byte,
                "r_squared": it.r_squared,
            })
        }),
    );
}

fn table(buses: &[SweptBus], plane: Option<Plane>) -> Section {
    let row = |bus: &SweptBus| {
        let point = bus.point();
        let fitted = plane.zip(point).map(|(plane, [n, bytes, _])| plane.at(n, bytes));
        let median = |of: &record::Statistics| of.summary().p50.map(|ns| ns as f64);
        let bytes = 2 * bus.sub_devices * bus.bytes_each;
        let times = [
            median(&bus.found.collect),
            median(&bus.found.process),
            median(&bus.found.transmit),
            point.map(|point| point[2]),
            fitted,
        ];
        let counts = [bytes.to_string(), format!("{:.0}", bus.found.frames)];
        let cells = counts.into_iter().chain(times.map(report::numbers::microseconds)).collect();
        let name = format!("{} of {} + {} bytes", bus.sub_devices, bus.bytes_each, bus.bytes_each);
        Row { name, cells, from_paper: false }
    };
    Section::Table(Table {
        caption: "T_exec = C + P + T against the number of SubDevices and the bytes of their PDOs, outputs + inputs each; medians, us".into(),
        columns: heads("SubDevices", &["bytes", "frames", "C", "P", "T", "T_exec", "fitted"]),
        rows: buses.iter().map(row).collect(),
    })
}

fn plot(buses: &[SweptBus], plane: Option<Plane>) -> Plot {
    let lines = BYTES.into_iter().flat_map(|each| {
        let points: Vec<Point> =
            buses.iter().filter(|bus| bus.bytes_each == each).filter_map(SweptBus::point).collect();
        let measured = points.iter().map(|point| (point[0], point[2] / 1e3)).collect();
        let fitted = plane.map(|plane| {
            let points = points.iter().map(|&[n, bytes, _]| (n, plane.at(n, bytes) / 1e3)).collect();
            Series { name: format!("{each} + {each} bytes, fitted"), points }
        });
        [Some(Series { name: format!("{each} + {each} bytes"), points: measured }), fitted]
    });
    Plot {
        caption: "T_exec against the number of SubDevices".into(),
        x: "SubDevices".into(),
        y: "us".into(),
        series: lines.flatten().filter(|it| !it.points.is_empty()).collect(),
    }
}
