//! Conditions of the measurements, and what was found in each.

use report::{Row, Section, Table};

use crate::distribution::{self, Durations};

/// Condition of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The waiting thread is a real-time one; else one of ordinary scheduling on the same CPU.
    pub real_time: bool,
    /// Measured under load.
    pub loaded: bool,
}

impl Condition {
    /// All of them, the machine as it is first.
    pub const ALL: [Self; 4] = [
        Self { real_time: true, loaded: false },
        Self { real_time: false, loaded: false },
        Self { real_time: true, loaded: true },
        Self { real_time: false, loaded: true },
    ];

    /// Name in tables.
    pub(super) const fn name(self) -> &'static str {
        match (self.real_time, self.loaded) {
            (true, false) => "real-time, idle",
            (false, false) => "ordinary, idle",
            (true, true) => "real-time, loaded",
            (false, true) => "ordinary, loaded",
        }
    }
}

/// Measurements and doubts.
#[derive(Default)]
pub(super) struct Found {
    /// Condition that is measured.
    pub(super) condition: Option<Condition>,
    pub(super) cells: Vec<(Condition, Durations)>,
    pub(super) doubts: Vec<String>,
    pub(super) gpio: String,
    pub(super) lost: usize,
}

impl Found {
    /// Adds settings that were refused.
    pub(super) fn refused(&mut self, refusals: Vec<String>) {
        refusals.into_iter().for_each(|refusal| self.doubt(refusal));
    }

    /// Adds a doubt, once.
    pub(super) fn doubt(&mut self, doubt: String) {
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    /// Measurements of one condition.
    pub(super) fn of(&self, condition: Condition) -> Vec<Durations> {
        let cells = self.cells.iter().filter(|(of, _)| *of == condition);
        cells.map(|(_, it)| it.clone()).collect()
    }

    /// Averages and maxima of an ordinary thread divided by the same of a real-time one.
    pub(super) fn ratios(&self, conditions: &[Condition]) -> Section {
        let ratio = |ordinary: Option<f64>, real_time: Option<f64>| {
            let both = ordinary.zip(real_time).filter(|(_, real_time)| *real_time > 0.0);
            both.map_or_else(
                || "-".to_owned(),
                |(ordinary, real_time)| format!("{:.2}", ordinary / real_time),
            )
        };
        let mut rows = Vec::new();
        for loaded in [false, true] {
            let [real_time, ordinary] = [true, false].map(|real_time| Condition { real_time, loaded });
            if !conditions.contains(&real_time) || !conditions.contains(&ordinary) {
                continue;
            }
            for (real_time, ordinary) in self.of(real_time).iter().zip(self.of(ordinary)) {
                let [real, other] = [real_time, &ordinary].map(|it| it.statistics().summary());
                let most = |it: &record::Summary| it.maximum.map(|ns| ns as f64);
                let cells = vec![ratio(other.average, real.average), ratio(most(&other), most(&real))];
                let name = format!("{}, {}", real_time.name, if loaded { "loaded" } else { "idle" });
                rows.push(Row { name, cells, from_paper: false });
            }
        }
        Section::Table(Table {
            caption: "Ordinary thread over real-time one; the paper has a driver of ordinary Linux at most four times as long".into(),
            columns: distribution::heads("from", &["average", "maximum"]),
            rows,
        })
    }
}
