//! T_exec = C + P + T against the number of SubDevices and of bytes, which the servo paper claims
//! and does not measure.

use report::{Plot, Report, Row, Section, Series, Table};
use serde_json::json;

use super::CostFound;
use super::cases::Case;
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

/// Point: SubDevices, bytes of process data, time in ns.
pub(super) type Point = [f64; 3];

/// Fitted plane, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plane {
    pub(super) constant: f64,
    pub(super) per_sub_device: f64,
    pub(super) per_byte: f64,
    /// Share of the variance that it explains.
    pub(super) r_squared: f64,
}

impl Plane {
    /// Time of a bus, ns.
    pub(super) fn at(&self, sub_devices: f64, bytes: f64) -> f64 {
        self.constant + self.per_sub_device * sub_devices + self.per_byte * bytes
    }

    /// Plane through the points with the least sum of squares; `None` for fewer than three that lie
    /// apart.
    pub(super) fn through(points: &[Point]) -> Option<Self> {
        // Sums of products of (1, SubDevices, bytes), and with the time.
        let (mut a, mut b) = ([[0.0; 3]; 3], [0.0; 3]);
        for &[sub_devices, bytes, time] in points {
            let x = [1.0, sub_devices, bytes];
            for row in 0..3 {
                (0..3).for_each(|column| a[row][column] += x[row] * x[column]);
                b[row] += x[row] * time;
            }
        }
        let whole = determinant(&a);
        let size = a[0][0] * a[1][1] * a[2][2];
        if points.len() < 3 || whole.abs() <= 1e-12 * size {
            return None;
        }
        // Cramer's rule.
        let part = |place: usize| {
            let mut with = a;
            (0..3).for_each(|row| with[row][place] = b[row]);
            determinant(&with) / whole
        };
        let plane = Self { constant: part(0), per_sub_device: part(1), per_byte: part(2), r_squared: 0.0 };
        let mean = b[0] / points.len() as f64;
        let square = |of: f64| of * of;
        let all: f64 = points.iter().map(|point| square(point[2] - mean)).sum();
        let left: f64 = points.iter().map(|&[n, bytes, time]| square(time - plane.at(n, bytes))).sum();
        Some(Self { r_squared: if all > 0.0 { 1.0 - left / all } else { 1.0 }, ..plane })
    }
}

fn determinant(of: &[[f64; 3]; 3]) -> f64 {
    let [[a, b, c], [d, e, f], [g, h, i]] = *of;
    a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_found_again_and_fewer_than_three_points_have_none() {
        let points: Vec<Point> = [1.0, 10.0, 100.0]
            .into_iter()
            .flat_map(|n| [8.0, 24.0, 96.0].map(|each| [n, n * each, 400.0 + 5.0 * n + 0.25 * n * each]))
            .collect();
        let plane = Plane::through(&points).unwrap();
        assert!((plane.constant - 400.0).abs() < 1e-6 && (plane.per_sub_device - 5.0).abs() < 1e-9);
        assert!((plane.per_byte - 0.25).abs() < 1e-9 && (plane.r_squared - 1.0).abs() < 1e-12);
        assert_eq!(Plane::through(&points[..2]), None);
        let in_a_line: Vec<Point> = (1..9).map(|n| [f64::from(n), 8.0 * f64::from(n), 1.0]).collect();
        assert_eq!(Plane::through(&in_a_line), None, "bytes follow from the number");
    }
}
