//! Execution time as a constant, a time for each SubDevice, and a time for each byte: least
//! squares.

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
