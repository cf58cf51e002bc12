//! A cubic spline through values at equal distances: twice continuously differentiable, with exact
//! bounds.

/// Spline over 0 to 1.
#[derive(Clone, Debug)]
pub(super) struct Spline {
    /// Values at the knots.
    pub(super) values: Vec<f64>,
    /// Second derivatives at the knots.
    curvatures: Vec<f64>,
    /// Work space of [`Spline::fit`].
    factors: Vec<f64>,
}

/// Value and first two derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) value: f64,
    pub(super) first: f64,
    pub(super) second: f64,
}

/// Largest absolute derivatives, and bounds of the value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Extent {
    pub(super) first: f64,
    pub(super) second: f64,
    pub(super) third: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Spline {
    /// Allocates a spline of this many segments, four at least.
    pub(super) fn with_room(segments: usize) -> Self {
        let room = vec![0.0; segments + 1];
        Self { values: room.clone(), curvatures: room.clone(), factors: room }
    }

    fn segments(&self) -> usize {
        self.values.len() - 1
    }

    /// Fits the spline to its values. The slopes at the ends are the slopes of the cubics through
    /// the outermost four values.
    pub(super) fn fit(&mut self) {
        let (last, step) = (self.segments(), 1.0 / self.segments() as f64);
        let Self { values, curvatures, factors } = self;
        let slope =
            |a: f64, b: f64, c: f64, d: f64| (-11.0 * a + 18.0 * b - 9.0 * c + 2.0 * d) / (6.0 * step);
        let first = slope(values[0], values[1], values[2], values[3]);
        let end = -slope(values[last], values[last - 1], values[last - 2], values[last - 3]);
        // Thomas's algorithm; the matrix is diagonally dominant.
        factors[0] = 0.5;
        curvatures[0] = 3.0 / step * ((values[1] - values[0]) / step - first);
        for knot in 1..last {
            let bent = 6.0 * (values[knot - 1] - 2.0 * values[knot] + values[knot + 1]) / (step * step);
            factors[knot] = 1.0 / (4.0 - factors[knot - 1]);
            curvatures[knot] = (bent - curvatures[knot - 1]) * factors[knot];
        }
        let bent = 6.0 / step * (end - (values[last] - values[last - 1]) / step);
        curvatures[last] = (bent - curvatures[last - 1]) / (2.0 - factors[last - 1]);
        for knot in (0..last).rev() {
            curvatures[knot] -= factors[knot] * curvatures[knot + 1];
        }
    }

    /// Point at `place`, 0 to 1.
    pub(super) fn at(&self, place: f64) -> Point {
        let along = place.clamp(0.0, 1.0) * self.segments() as f64;
        let segment = (along as usize).min(self.segments() - 1);
        self.within(segment, along - segment as f64)
    }

    fn within(&self, segment: usize, after: f64) -> Point {
        let (step, before) = (1.0 / self.segments() as f64, 1.0 - after);
        let (from, to) = (self.values[segment], self.values[segment + 1]);
        let (bent, then) = (self.curvatures[segment], self.curvatures[segment + 1]);
        Point {
            value: before * from
                + after * to
                + step * step / 6.0 * ((before.powi(3) - before) * bent + (after.powi(3) - after) * then),
            first: (to - from) / step
                + step / 6.0 * ((1.0 - 3.0 * before * before) * bent + (3.0 * after * after - 1.0) * then),
            second: before * bent + after * then,
        }
    }

    /// Extent of the whole: derivatives exactly, values by the hull of each segment's control
    /// points.
    pub(super) fn extent(&self) -> Extent {
        let step = 1.0 / self.segments() as f64;
        let (lowest, highest) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut extent = Extent { first: 0.0, second: 0.0, third: 0.0, lowest, highest };
        for segment in 0..self.segments() {
            let (begin, end) = (self.within(segment, 0.0), self.within(segment, 1.0));
            let turns = begin.second * end.second < 0.0;
            let middle = if turns { begin.second / (begin.second - end.second) } else { 0.0 };
            let fastest = [begin.first, end.first, self.within(segment, middle).first];
            extent.first = fastest.iter().fold(extent.first, |most, it| most.max(it.abs()));
            extent.second = extent.second.max(begin.second.abs()).max(end.second.abs());
            extent.third = extent.third.max((end.second - begin.second).abs() / step);
            let reach = step / 3.0;
            for value in
                [begin.value, begin.value + reach * begin.first, end.value - reach * end.first, end.value]
            {
                extent.lowest = extent.lowest.min(value);
                extent.highest = extent.highest.max(value);
            }
        }
        extent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cubic_is_its_own_spline() {
        let cubic = |x: f64| 1.0 - 2.0 * x + 3.0 * x * x - 4.0 * x.powi(3);
        let mut spline = Spline::with_room(16);
        for knot in 0..=16 {
            spline.values[knot] = cubic(knot as f64 / 16.0);
        }
        spline.fit();
        for step in 0..=1000 {
            let x = f64::from(step) / 1000.0;
            let Point { value, first, second } = spline.at(x);
            assert!((value - cubic(x)).abs() < 1e-12, "{x}");
            assert!((first - (-2.0 + 6.0 * x - 12.0 * x * x)).abs() < 1e-9, "{x}");
            assert!((second - (6.0 - 24.0 * x)).abs() < 1e-8, "{x}");
        }
        let extent = spline.extent();
        assert!((extent.third - 24.0).abs() < 1e-6 && (extent.second - 18.0).abs() < 1e-6, "{extent:?}");
        assert!((extent.first - 8.0).abs() < 1e-6, "{extent:?}");
    }

    #[test]
    fn the_extent_holds_everywhere() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut spline = Spline::with_room(8);
        for _ in 0..200 {
            spline.values.iter_mut().for_each(|value| *value = random.f64() - 0.5);
            spline.fit();
            let extent = spline.extent();
            for step in 0..=1000 {
                let point = spline.at(f64::from(step) / 1000.0);
                assert!(
                    point.first.abs() <= extent.first + 1e-9 && point.second.abs() <= extent.second + 1e-9
                );
                assert!(point.value >= extent.lowest - 1e-12 && point.value <= extent.highest + 1e-12);
            }
        }
    }
}
