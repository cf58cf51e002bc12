//! Values to lines of a plot.

use crate::{Plot, Series};

/// Named values, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// Name of the values.
    pub name: &'a str,
    /// The values, in the unit of the plot.
    pub values: &'a [f64],
}

/// Histogram. All lines have the same bins: evenly wide, or growing by a constant factor if the
/// values span decades. A last point without values closes the last bin.
#[must_use]
pub fn histogram(caption: &str, unit: &str, samples: &[Samples]) -> Plot {
    let edges = edges(samples.iter().flat_map(|it| it.values.iter().copied()));
    let series =
        samples.iter().map(|it| Series { name: it.name.to_owned(), points: counts(it.values, &edges) });
    Plot {
        caption: caption.to_owned(),
        x: unit.to_owned(),
        y: "samples".to_owned(),
        series: series.collect(),
    }
}

/// Share of values above each value: falls from 1 to the share of one sample at the largest value.
#[must_use]
pub fn tail(caption: &str, unit: &str, samples: &[Samples]) -> Plot {
    let series =
        samples.iter().map(|it| Series { name: it.name.to_owned(), points: shares_above(it.values) });
    let y = "share of samples above".to_owned();
    Plot { caption: caption.to_owned(), x: unit.to_owned(), y, series: series.collect() }
}

/// Values over time, thinned out for a picture. The smallest and the largest value of each interval
/// stay, so that no peak is lost.
#[must_use]
pub fn trace(caption: &str, unit: &str, times_s: &[f64], samples: &[Samples]) -> Plot {
    let thin = |values: &[f64]| thinned(times_s, values);
    let series = samples.iter().map(|it| Series { name: it.name.to_owned(), points: thin(it.values) });
    Plot { caption: caption.to_owned(), x: "s".to_owned(), y: unit.to_owned(), series: series.collect() }
}

/// Edges of the bins, one more than there are bins; empty without values.
fn edges(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let finite = values.filter(|value| value.is_finite());
    let low = finite.clone().fold(f64::INFINITY, f64::min);
    let high = finite.clone().fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return Vec::new();
    }
    let smallest = finite.filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
    if low >= 0.0 && high > smallest * DECADES_FROM {
        let factor = (high / smallest).powf(1.0 / BINS as f64);
        let mut edges: Vec<f64> = (0..BINS).map(|index| smallest * factor.powi(index as i32)).collect();
        edges.push(high);
        return edges;
    }
    let width = (high - low) / BINS as f64;
    if width <= 0.0 {
        return vec![low, low.abs().mul_add(1e-3, low + 1e-9)];
    }
    let mut edges: Vec<f64> = (0..BINS).map(|index| width.mul_add(index as f64, low)).collect();
    edges.push(high);
    edges
}

fn counts(values: &[f64], edges: &[f64]) -> Vec<(f64, f64)> {
    if edges.len() < 2 {
        return Vec::new();
    }
    let mut counts = vec![0_u64; edges.len() - 1];
    for &value in values.iter().filter(|value| value.is_finite()) {
        // Bin k holds edge k up to edge k + 1; the last also holds its upper edge, the first what
        // is below it.
        let bin = edges.partition_point(|&edge| edge <= value).saturating_sub(1).min(counts.len() - 1);
        counts[bin] += 1;
    }
    let mut points: Vec<_> =
        edges.iter().zip(counts).map(|(&edge, count)| (rounded(edge), count as f64)).collect();
    points.push((rounded(edges[edges.len() - 1]), 0.0));
    points
}

fn shares_above(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    let mut points: Vec<(f64, f64)> = Vec::new();
    // Ranks from the top: 1, 2, 3 ... then in growing steps, so that every decade has as many
    // points.
    let mut above = 0;
    while above < count {
        let value = sorted[count - 1 - above];
        // No sample is above the largest value: it is shown with the share of one sample.
        let share = (above.max(1)) as f64 / count as f64;
        match points.last_mut() {
            Some(last) if last.0 <= value => last.1 = last.1.max(share),
            _ => points.push((value, share)),
        }
        above += (above / STEPS_A_DECADE).max(1);
    }
    if let Some(&least) = sorted.first() {
        if points.last().is_some_and(|last| last.0 > least) {
            points.push((least, (count - 1).max(1) as f64 / count as f64));
        }
    }
    points.reverse();
    points.iter().map(|&(value, share)| (rounded(value), share)).collect()
}

fn thinned(times: &[f64], values: &[f64]) -> Vec<(f64, f64)> {
    let points: Vec<_> = times.iter().copied().zip(values.iter().copied()).collect();
    if points.len() <= 2 * STRETCHES {
        return points;
    }
    let mut thin = Vec::with_capacity(2 * STRETCHES);
    for stretch in 0..STRETCHES {
        let part = &points[points.len() * stretch / STRETCHES..points.len() * (stretch + 1) / STRETCHES];
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let extremes = part.iter().min_by(by_value).zip(part.iter().max_by(by_value));
        if let Some((&low, &high)) = extremes {
            let pair = if low.0 <= high.0 { [low, high] } else { [high, low] };
            thin.extend(pair.map(|(time, value)| (rounded(time), rounded(value))));
        }
    }
    thin
}

/// Rounds to seven digits: more than a picture shows, and short in a file.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// Number of bins of a histogram.
const BINS: usize = 100;

/// Span, as a factor, from which on the bins grow.
const DECADES_FROM: f64 = 100.0;

/// Steps that give each decade of a tail about 2.3 times as many points.
const STEPS_A_DECADE: usize = 50;

/// Stretches of a time trace, two points each.
const STRETCHES: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(values: &[f64]) -> [Samples<'_>; 1] {
        [Samples { name: "it", values }]
    }

    fn counted(plot: &Plot) -> f64 {
        plot.series[0].points.iter().map(|point| point.1).sum()
    }

    #[test]
    fn a_histogram_counts_every_value_once() {
        let even: Vec<f64> = (0..1000).map(f64::from).map(|value| value / 10.0 - 3.0).collect();
        let plot = histogram("", "us", &one(&even));
        assert_eq!((counted(&plot), plot.series[0].points.len()), (1000.0, 101));
        assert!(plot.series[0].points[..100].iter().all(|point| point.1 == 10.0), "{plot:?}");

        let decades = [0.0, 1.0, 1.0, 10.0, 100.0, 5_000.0];
        let plot = histogram("", "us", &one(&decades));
        assert_eq!(counted(&plot), 6.0);
        assert_eq!((plot.series[0].points[0], plot.series[0].points[99].1), ((1.0, 3.0), 1.0));

        assert_eq!(counted(&histogram("", "us", &one(&[7.0; 5]))), 5.0);
        assert!(histogram("", "us", &one(&[f64::NAN])).series[0].points.is_empty());
    }

    #[test]
    fn a_tail_says_how_many_are_above() {
        let plot = tail("", "us", &one(&[4.0, 1.0, 3.0, 2.0, 10.0]));
        let points = [(1.0, 0.8), (2.0, 0.6), (3.0, 0.4), (4.0, 0.2), (10.0, 0.2)];
        assert_eq!(plot.series[0].points, points);
        let many: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let plot = tail("", "us", &one(&many));
        assert!(plot.series[0].points.len() < 1000);
        for &(value, share) in &plot.series[0].points[..plot.series[0].points.len() - 1] {
            assert!((share - (100_000.0 - value) / 100_000.0).abs() < 1e-9, "{value} {share}");
        }
    }

    #[test]
    fn a_trace_keeps_every_peak() {
        let times: Vec<f64> = (0..100_000).map(|index| f64::from(index) / 1000.0).collect();
        let mut values = vec![5.0; 100_000];
        (values[31_234], values[77_777]) = (400.0, -1.0);
        let plot = trace("", "us", &times, &one(&values));
        let points = &plot.series[0].points;
        assert!(points.len() <= 1200 && points.is_sorted_by(|a, b| a.0 <= b.0));
        assert!(points.contains(&(31.234, 400.0)) && points.contains(&(77.777, -1.0)));
    }
}
