//! Bound on the work of an analysis, so that each one ends.

use std::cell::Cell;

/// Remaining steps: one for each term of each sum.
#[derive(Clone, Debug)]
pub struct Effort {
    left: Cell<u64>,
}

impl Effort {
    /// A budget of `steps`; a step takes some 10 ns.
    #[must_use]
    pub const fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// Takes `steps`; returns `false` when fewer are left.
    pub(crate) fn take(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps as u64);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Runs `work` with a small part of the remaining steps, so that one hard question leaves
    /// effort for the others.
    pub(crate) fn spend<T>(&self, work: impl FnOnce(&Self) -> T) -> T {
        let part = Self::new(self.left.get().min(MOST_FOR_ONE));
        let before = part.left.get();
        let result = work(&part);
        self.left.set(self.left.get() - (before - part.left.get()));
        result
    }

    /// True if no steps are left: results not found by then stay unknown.
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

impl Default for Effort {
    /// A budget for thousands of tasks; some seconds at most.
    fn default() -> Self {
        Self::new(300_000_000)
    }
}

/// Steps that the response of one task may cost.
const MOST_FOR_ONE: u64 = 10_000_000;
