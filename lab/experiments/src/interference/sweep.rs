//! J against the size of a load: the master-performance paper's Figure 6 against the size of the
//! copies to a GPU, and against the memory bandwidth used where there is no GPU.

use report::numbers::microseconds;
use report::{Plot, Row, Section, Series, Table};

use super::cell::{Cell, SweptSize};

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
}
