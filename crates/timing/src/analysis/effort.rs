//! How much work an analysis may take, so that none of them hangs.

use std::cell::Cell;

/// Steps that are left: one for each term of each sum.
#[derive(Clone, Debug)]
pub struct Effort {
    left: Cell<u64>,
}

impl Effort {
    /// So many steps; a step takes some 10 ns.
    #[must_use]
    pub const fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// Takes `steps`; `false` when there are not so many left.
    pub(crate) fn take(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps as u64);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// What `work` returns when it may take a small part of the steps that are left: one hard question must not keep
    /// the others from being answered.
    pub(crate) fn spend<T>(&self, work: impl FnOnce(&Self) -> T) -> T {
        let part = Self::new(self.left.get().min(MOST_FOR_ONE));
        let before = part.left.get();
        let result = work(&part);
        self.left.set(self.left.get() - (before - part.left.get()));
        result
    }

    /// Whether none are left: what was not found out then stays unknown.
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

impl Default for Effort {
    /// Enough for thousands of tasks; some seconds at most.
    fn default() -> Self {
        Self::new(300_000_000)
    }
}

/// Steps that one task's response may cost.
const MOST_FOR_ONE: u64 = 10_000_000;
