//! J against the size of a load: the master-performance paper's Figure 6 against the size of the
//! copies to a GPU, and against the memory bandwidth used where there is no GPU.

use report::numbers::microseconds;
use report::{Plot, Row, Section, Series, Table};
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use crate::load::processes::Work;
use crate::load::{HostMemory, Load, gpu};

/// Place of a cell in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Swept {
    kind: Kind,
    size: f64,
}

/// Size that is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Copies to a GPU from pinned memory, MB.
    Pinned,
    /// Copies to a GPU from ordinary memory, MB.
    Pageable,
    /// Memory bandwidth, read and written, GB/s.
    Memory,
}

impl Swept {
    /// Place of a load that is one of a sweep, by its size or its work.
    pub(super) fn of(load: Load, work: Option<&Work>) -> Option<Self> {
        let (kind, size) = match load {
            Load::GpuCopies(HostMemory::Pinned, size) => (Kind::Pinned, gpu::SIZES[size] as f64 / 1e6),
            Load::GpuCopies(_, size) => (Kind::Pageable, gpu::SIZES[size] as f64 / 1e6),
            // Each byte copied is read and written.
            Load::Memory | Load::MemoryPart(_) => (Kind::Memory, work?.rate * 2.0 * 1.048_576e-3),
            _ => return None,
        };
        Some(Self { kind, size })
    }
}

impl Kind {
    const ALL: [Self; 3] = [Self::Pinned, Self::Pageable, Self::Memory];

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Pinned => ("copies from pinned memory", "MB"),
            Self::Pageable => ("copies from memory that is not pinned", "MB"),
            Self::Memory => ("memory bandwidth used, read and written", "GB/s"),
        }
    }
}

/// Tables, lines and plots of the sweeps among these cells.
pub(super) fn sections(cells: &[&Cell], at: &str) -> Vec<Section> {
    Kind::ALL.into_iter().flat_map(|kind| of_kind(kind, cells, at)).collect()
}

fn of_kind(kind: Kind, cells: &[&Cell], at: &str) -> Vec<Section> {
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

    #[test]
    fn a_load_has_its_place_by_its_size_or_its_work() {
        let place = |load, work: Option<&Work>| Swept::of(load, work).map(|it| (it.kind, it.size));
        assert_eq!(place(Load::GpuCopies(HostMemory::Pinned, 4), None), Some((Kind::Pinned, 2.6)));
        assert_eq!(place(Load::GpuCopies(HostMemory::Pageable, 0), None), Some((Kind::Pageable, 0.5)));
        let work = Work { rate: 1000.0, what: "MiB copied".to_owned() };
        let (kind, size) = place(Load::MemoryPart(25), Some(&work)).unwrap();
        assert!(kind == Kind::Memory && (size - 2.097_152).abs() < 1e-9, "{size}");
        assert_eq!(place(Load::Memory, None), None, "it told nothing");
        assert_eq!(place(Load::Cpu, Some(&work)), None);
    }
}
