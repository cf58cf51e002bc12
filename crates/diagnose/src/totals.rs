//! Sums by cause over late cycles.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use types::late::CauseTotal;

use crate::late::{Kind, LateCycle};

/// Most different causes summed up; later ones count as "others".
const MOST_CAUSES: usize = 1_000;

/// Causes of late cycles together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals(BTreeMap<(Kind, String), CauseTotal>);

impl Totals {
    /// Adds a late cycle.
    pub(crate) fn add(&mut self, late: &LateCycle, has_trace: bool) {
        for cause in &late.causes {
            // Counts, which stand for a trace, differ for each cycle and are named with it; here
            // they are summed up under one name.
            let name =
                if cause.kind == Kind::Unknown && !has_trace { "no trace" } else { cause.name.as_str() };
            self.take(&CauseTotal {
                kind: cause.kind,
                name: name.to_owned(),
                cycles: 1,
                ns: cause.ns,
                largest_ns: cause.ns,
            });
        }
    }

    /// Adds the sums of others.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.values().for_each(|total| self.take(total));
    }

    fn take(&mut self, added: &CauseTotal) {
        let mut key = (added.kind, added.name.clone());
        if self.0.len() >= MOST_CAUSES && !self.0.contains_key(&key) {
            key.1 = "others".to_owned();
        }
        let total = self.0.entry(key.clone()).or_insert_with(|| CauseTotal {
            kind: key.0,
            name: key.1,
            ..CauseTotal::default()
        });
        total.cycles += added.cycles;
        total.ns = total.ns.saturating_add(added.ns);
        total.largest_ns = total.largest_ns.max(added.largest_ns);
    }

    /// True if a cause of this kind is among them.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.0.keys().any(|(it, _)| *it == kind)
    }

    /// The largest first.
    pub(crate) fn sorted(self) -> Vec<CauseTotal> {
        let mut totals: Vec<CauseTotal> = self.0.into_values().collect();
        totals.sort_by_key(|total| Reverse(total.ns));
        totals
    }
}
