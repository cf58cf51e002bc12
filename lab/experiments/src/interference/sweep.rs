//! J against the size of a load: the master-performance paper's Figure 6 against the size of the
//! copies to a GPU, and against the memory bandwidth used where there is no GPU.

use report::numbers::microseconds;
use report::{Plot, Row, Section, Series, Table};
use serde::{Deserialize, Serialize};

use super::cell::{Cell, SweptSize};
use crate::jitter::{BusJitter, BusObserver, ByCounter, WINDOW};

/// Tables, lines and plots of the sweeps among these cells.
pub(super) fn sections(cells: &[&Cell], at: &str) -> Vec<Section> {
    SweptSize::ALL.into_iter().flat_map(|kind| of_kind(kind, cells, at)).collect()
}

fn of_kind(kind: SweptSize, cells: &[&Cell], at: &str) -> Vec<Section> {
    let size = |cell: &&Cell| cell.swept.filter(|it| it.kind == kind).map(|it| it.size);
    let swept: Vec<(f64, &Cell)> = cells.iter().filter_map(|cell| Some((size(cell)?, *cell))).collect();
    // One size is no sweep.
    if swept.len() < 2 {
        return Vec::new();
    }
    let (what, unit) = kind.words();
    let within = |share: f64| {
        let point = |(size, cell): &(f64, &Cell)| {
            Some((*size, cell.judgement.jitter.jitter_histogram.size_at(share)? as f64))
        };
        swept.iter().filter_map(point).collect::<Vec<_>>()
    };
    let lines = [("50 %", 0.5), ("99.9 %", 0.999), ("all", 1.0)].map(|(name, share)| (name, within(share)));
    let row = |(size, cell): &(f64, &Cell)| {
        let within = |share| cell.judgement.jitter.jitter_histogram.size_at(share).map(|it| it as f64);
        let mut cells = vec![format!("{size:.2}")];
        cells.extend([0.5, 0.999, 1.0].map(|share| microseconds(within(share))));
        Row { name: cell.load.clone(), cells, ..Row::default() }
    };
    let columns = ["load", unit, "50 % of |J| within", "99.9 %", "all"];
    let table = Table {
        caption: format!("|J| against {what}, {at}, us (the paper's Figure 6)"),
        columns: columns.map(str::to_owned).into(),
        rows: swept.iter().map(row).collect(),
    };
    let words = lines.iter().filter_map(|(name, points)| {
        let (slope, share) = line(points)?;
        let most = points.iter().map(|(_, it)| *it).fold(0.0, f64::max);
        Some(format!(
            "{name} of |J|: {} us more for each {unit} (a line explains {:.0} %), {} us at the most",
            microseconds(Some(slope)),
            share * 100.0,
            microseconds(Some(most))
        ))
    });
    let words: Vec<String> = words.collect();
    let series = lines.iter().map(|(name, points)| Series {
        name: format!("{name} within"),
        points: points.iter().map(|(size, ns)| (*size, ns / 1e3)).collect(),
    });
    let plot = Plot {
        caption: format!("|J| against {what}, {at}"),
        x: unit.to_owned(),
        y: "us".to_owned(),
        series: series.collect(),
    };
    vec![
        Section::Table(table),
        Section::Text(format!("Against {what}: {}.", words.join("; "))),
        Section::Curve(plot),
    ]
}

/// Slope of the line through the points with the least squares, and the share of the variance that
/// it explains.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|it| of(it.0 - x, it.1 - y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    let share = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
    (xx > 0.0).then(|| (xy / xx, share))
}

/// Rising edges of one output.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wave {
    /// Number of the output, the first of which changes with every cycle.
    pub output: u32,
    /// Edges: each is a cycle of this period.
    pub edges: BusJitter,
}

/// Number of outputs with evaluated edges.
const OUTPUTS: u32 = 4;

/// Waves while a recording is read.
pub(super) struct Waves {
    outputs: Vec<Output>,
    over: bool,
}

struct Output {
    number: u32,
    was_high: Option<bool>,
    numbering: ByCounter,
    observer: BusObserver,
}

impl Waves {
    /// Of a counter of so many bits: the last one is no wave, for its edges could not be numbered.
    pub(super) fn new(period_ns: u64, bits: u32) -> Self {
        let output = |number: u32| {
            let period_ns = period_ns << (number + 1);
            Output {
                number,
                was_high: None,
                numbering: ByCounter::new(period_ns, 1 << (bits - number - 1)),
                observer: BusObserver::new(period_ns, WINDOW),
            }
        };
        let outputs = (0..OUTPUTS.min(bits.saturating_sub(1))).map(output).collect();
        Self { outputs, over: false }
    }

    /// Takes the outputs of a frame.
    pub(super) fn see(&mut self, counter: u64, at_ns: i64) {
        if self.over {
            return;
        }
        for output in &mut self.outputs {
            let is_high = counter >> output.number & 1 == 1;
            // A wave begins with its first rise.
            if output.was_high.replace(is_high) == Some(false) && is_high {
                if let Ok(arrival) = output.numbering.number(counter >> (output.number + 1), at_ns) {
                    output.observer.arrive(arrival);
                }
            }
        }
    }

    /// Nothing more is looked at.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    pub(super) fn finish(self) -> Vec<Wave> {
        let waves = self.outputs.into_iter();
        waves.map(|it| Wave { output: it.number, edges: it.observer.finish() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(measure): `measure interference --load gpu-sweep|memory-sweep`: |J| against size and bandwidth, slope and bound
    #[test]
    fn a_known_slope_comes_out_of_a_line_and_none_of_one_size() {
        let points = [0.5, 1.0, 1.5, 2.0, 2.6].map(|size| (size, 7.0 + 3.0 * size));
        let (slope, share) = line(&points).unwrap();
        assert!((slope - 3.0).abs() < 1e-9 && (share - 1.0).abs() < 1e-9, "{slope} {share}");
        let bounded = [(0.5, 4.0), (1.0, 6.0), (1.5, 4.0), (2.0, 6.0), (2.5, 4.0)];
        let (slope, share) = line(&bounded).unwrap();
        assert!(slope.abs() < 1e-9 && share < 1e-9, "{slope} {share}");
        assert_eq!(line(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(line(&[]), None);
    }

    #[test]
    fn rising_edges_of_an_output_are_a_series_with_its_period() {
        let mut waves = Waves::new(1_000, 16);
        // 70 000 cycles: the counter wraps. Each eighth frame is 40 ns late, one is missing.
        for cycle in 0..70_000_i64 {
            if cycle != 33_333 {
                let late = if cycle % 8 == 4 { 40 } else { 0 };
                waves.see(cycle as u64 % (1 << 16), cycle * 1_000 + late);
            }
        }
        let waves = waves.finish();
        assert_eq!(waves.len(), 4);
        for (wave, edges) in waves.iter().zip([34_999, 17_500, 8_750, 4_375]) {
            let it = &wave.edges;
            assert_eq!((it.period_ns, it.arrivals), (2_000 << wave.output, edges), "{}", wave.output);
            assert!(it.periods.mean() - it.period_ns as f64 <= 1.0, "{}", wave.output);
        }
        // Output 0 rises in odd cycles, one of which is missing; output 2 in the late ones, all
        // alike.
        assert!(waves[0].edges.missing == 1 && waves[2].edges.jitter.standard_deviation() < 1.0);
        assert!(Waves::new(1_000, 0).finish().is_empty());
    }
}
