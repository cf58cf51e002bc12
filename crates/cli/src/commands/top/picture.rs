//! Knowledge of a cycle at one instant, and a person's choice of the view.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use ipc::description::Description;
use ipc::state::{Spread, State, Timing};
use serde_json::Value;
use types::CyclicMode;

use crate::words::axes;

/// A cycle, as last read.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) description: Description,
    pub(super) state: State,
    /// Diagnostics of the run besides; `None` before its first word.
    pub(super) diagnostics: Option<Value>,
    /// When the state was read, CLOCK_MONOTONIC.
    pub(super) read_ns: u64,
    pub(super) standing: Standing,
    pub(super) history: History,
}

/// Relation of the cycle to us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// The cycle runs.
    #[default]
    Live,
    /// Its process lives, but no new cycle has come for this long.
    Still(Duration),
    /// The cycle ended: reason, and time since then.
    Ended(String, Duration),
}

impl Picture {
    /// A newer state of the same cycle.
    pub(super) fn take(&mut self, state: State, read_ns: u64) {
        if state.cycle != self.state.cycle {
            self.history.take(&state.timing);
            let moved = (0..state.axes.len()).map(|axis| self.moved(axis, &state)).collect();
            self.history.take_axes(moved);
        }
        self.state = state;
        self.read_ns = read_ns;
    }

    /// True of a run with simulated SubDevices: lost frames are then caused by this machine.
    pub(super) fn is_simulated(&self) -> bool {
        self.diagnostics
            .as_ref()
            .is_some_and(|it| it["conditions"]["link"] == record::conditions::SIMULATED)
    }

    /// The name of an axis.
    pub(super) fn axis_name(&self, axis: usize) -> &str {
        self.description.axes.get(axis).map_or("?", |axis| &axis.name)
    }

    /// Names of all axes, each at most `room` letters long. A longer name loses the part without
    /// which most names stay distinct. If no part does that, the common start and end of all names
    /// are left out, too.
    pub(super) fn short_axis_names(&self, room: usize) -> Vec<String> {
        let names: Vec<&str> = (0..self.state.axes.len()).map(|axis| self.axis_name(axis)).collect();
        let cut = |names: &[&str], begin| names.iter().map(|name| shortened(name, begin, room)).collect();
        let distinct = |names: &[String]| names.iter().collect::<HashSet<_>>().len();
        let usual: Vec<String> = cut(&names, room.saturating_sub(1) / 2);
        if distinct(&usual) == names.iter().collect::<HashSet<_>>().len() {
            return usual;
        }
        let differing = differing(&names);
        let others =
            [&names, &differing].into_iter().flat_map(|names| (0..room).map(|begin| cut(names, begin)));
        // The first of the best.
        others.fold(usual, |best, other| if distinct(&other) > distinct(&best) { other } else { best })
    }

    /// Torque of an axis; `None` where its drive does not have it.
    pub(super) fn effort(&self, axis: usize) -> Option<f64> {
        let measures = self.description.axes.get(axis).is_none_or(|it| it.measures_effort);
        self.state.axes.get(axis).map(|it| it.effort).filter(|_| measures)
    }

    /// Quantity that an axis is moved by, as its mode says: position, velocity or torque.
    fn moved(&self, axis: usize, state: &State) -> f64 {
        let Some(it) = state.axes.get(axis).filter(|it| it.fresh) else { return f64::NAN };
        match self.mode(axis) {
            CyclicMode::Position => it.position,
            CyclicMode::Velocity => it.velocity,
            CyclicMode::Torque => it.effort,
        }
    }

    /// Mode of an axis.
    pub(super) fn mode(&self, axis: usize) -> CyclicMode {
        self.description.axes.get(axis).map_or(CyclicMode::Position, |axis| axis.mode.cyclic())
    }

    /// Set-point the axis was sent, and its distance from that, where it is known: in the unit of
    /// its mode.
    pub(super) fn target_and_error(&self, axis: usize) -> Option<(f64, Option<f64>)> {
        Some(axes::target_and_error(self.state.axes.get(axis)?, self.description.axes.get(axis)?))
    }

    /// Since the last command taken over; `None` if there was none.
    pub(super) fn command_age(&self) -> Option<Duration> {
        let given = self.state.command.stamp_ns;
        (given > 0).then(|| Duration::from_nanos(self.read_ns.saturating_sub(given)))
    }
}

/// Names without what all of them begin and end with.
fn differing<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let first = names.first().copied().unwrap_or_default();
    let shared = |same: &dyn Fn(&str) -> usize| names.iter().map(|name| same(name)).min().unwrap_or(0);
    let begin = shared(&|name| {
        let alike = name.chars().zip(first.chars()).take_while(|(one, other)| one == other);
        alike.map(|(letter, _)| letter.len_utf8()).sum()
    });
    let end = shared(&|name| {
        let alike = name[begin..].chars().rev().zip(first[begin..].chars().rev());
        alike.take_while(|(one, other)| one == other).map(|(letter, _)| letter.len_utf8()).sum()
    });
    names.iter().map(|name| &name[begin..name.len() - end]).collect()
}

/// A name with its first letters, so many, and as many of its last ones as there is room for.
fn shortened(name: &str, begin: usize, room: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= room || room == 0 {
        return name.to_owned();
    }
    let end = room - 1 - begin;
    letters[..begin].iter().chain(&['\u{2026}']).chain(&letters[letters.len() - end..]).collect()
}

/// The last times of each kind that were seen, oldest first: what a sparkline shows.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) wakeup_latency: VecDeque<u64>,
    pub(super) period_jitter: VecDeque<u64>,
    pub(super) execution: VecDeque<u64>,
    /// Set-points of each axis, NaN where there was no value.
    pub(super) axes: Vec<VecDeque<f64>>,
}

impl History {
    fn take(&mut self, timing: &Timing) {
        let one = |all: &mut VecDeque<u64>, spread: &Spread| push(all, spread.last_ns);
        one(&mut self.wakeup_latency, &timing.wakeup_latency);
        one(&mut self.period_jitter, &timing.period_jitter);
        one(&mut self.execution, &timing.execution);
    }
}

impl History {
    /// True once there is more than a point of each curve.
    pub(super) fn has_curves(&self) -> bool {
        self.axes.first().is_some_and(|seen| seen.len() > 1)
    }

    fn take_axes(&mut self, values: Vec<f64>) {
        self.axes.resize(values.len(), VecDeque::new());
        self.axes.iter_mut().zip(values).for_each(|(all, value)| push(all, value));
    }
}

fn push<T>(all: &mut VecDeque<T>, value: T) {
    if all.len() == SEEN {
        all.pop_front();
    }
    all.push_back(value);
}

/// As many as a wide terminal has columns.
const SEEN: usize = 256;

/// Columns that can be left of the screen.
pub(super) const MOST_ACROSS: u16 = 400;

/// A person's choice of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) page: Page,
    /// First row of the page that is shown.
    pub(super) scroll: usize,
    /// Columns that are left of the screen.
    pub(super) across: u16,
    pub(super) paused: bool,
    /// The keys are explained.
    pub(super) help: bool,
}

/// Contents below the header if not all of it fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Page {
    #[default]
    Axes,
    /// Set-points of the axes, over the last pictures.
    Curves,
    /// Process data by name.
    Signals,
    /// SubDevices with their states and error counters.
    Bus,
    /// Tasks, channels, warnings: diagnostics of the run.
    Details,
}

impl View {
    /// The next page, from its top.
    pub(super) fn turn(&mut self) {
        self.page = match self.page {
            Page::Axes => Page::Curves,
            Page::Curves => Page::Signals,
            Page::Signals => Page::Bus,
            Page::Bus => Page::Details,
            Page::Details => Page::Axes,
        };
        (self.scroll, self.across) = (0, 0);
    }

    /// Columns to the right, or to the left.
    pub(super) fn move_across(&mut self, by: i16) {
        self.across = self.across.saturating_add_signed(by).min(MOST_ACROSS);
    }

    /// Rows further down, or up, within `rows` rows.
    pub(super) fn scroll(&mut self, by: isize, rows: usize) {
        self.scroll = self.scroll.saturating_add_signed(by).min(rows.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("left-leg-hip-yaw", 7, 16), "left-leg-hip-yaw");
        assert_eq!(shortened("left-leg-hip-yaw", 4, 10), "left\u{2026}p-yaw");
        assert_eq!(shortened("left-leg-hip-yaw", 0, 1), "\u{2026}");
    }
}
