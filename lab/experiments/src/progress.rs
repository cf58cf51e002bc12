//! Progress of an experiment through its cells, and the time left.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Cells of an experiment with their planned times, and how far it is.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Plan>);

#[derive(Debug, Default)]
struct Plan {
    experiment: String,
    /// Planned time of each cell.
    cells: Vec<Duration>,
    /// Cells begun or passed over.
    begun: usize,
    /// Beginning of the cell that is being measured.
    current: Option<Instant>,
    /// Planned time of the cells measured before, and the time they took.
    planned: Duration,
    took: Duration,
    said: Option<Instant>,
}

impl Progress {
    /// Begins an experiment with cells of these times.
    pub(crate) fn plan(&self, experiment: &str, cells: Vec<Duration>) {
        let mut plan = self.lock();
        *plan = Plan { experiment: experiment.to_owned(), cells, ..Plan::default() };
    }

    /// Begins the next cell: a line on it, with the time left.
    pub(crate) fn begin(&self, what: impl fmt::Display, now: Instant) -> String {
        let mut plan = self.lock();
        plan.finish(now);
        (plan.current, plan.said) = (Some(now), Some(now));
        plan.begun += 1;
        format!("{}, {what}; {} left", plan.place(), words(plan.left(now)))
    }

    /// Passes over the next cell, which was measured before: a line on it.
    pub(crate) fn pass_over(&self, what: impl fmt::Display, now: Instant) -> String {
        let mut plan = self.lock();
        plan.finish(now);
        plan.begun += 1;
        format!("{}, {what}: measured before", plan.place())
    }

    /// A line within a long cell, once in [`EVERY`].
    pub(crate) fn look(&self, now: Instant) -> Option<String> {
        let mut plan = self.lock();
        plan.said.filter(|said| now.saturating_duration_since(*said) >= EVERY && plan.current.is_some())?;
        plan.said = Some(now);
        Some(format!("{}: {} left", plan.place(), words(plan.left(now))))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Plan {
    /// Marks the current cell as finished.
    fn finish(&mut self, now: Instant) {
        if let Some(begin) = self.current.take() {
            self.planned += self.cells.get(self.begun - 1).copied().unwrap_or_default();
            self.took += now.saturating_duration_since(begin);
        }
    }

    /// `tuning: 3 of 18`.
    fn place(&self) -> String {
        format!("{}: {} of {}", self.experiment, self.begun, self.cells.len().max(self.begun))
    }

    /// Planned time of the remaining cells, scaled by how much longer the finished ones took.
    fn left(&self, now: Instant) -> Duration {
        let later: Duration = self.cells.iter().skip(self.begun).sum();
        let current = self.current.and_then(|begin| {
            let planned = self.cells.get(self.begun.checked_sub(1)?)?;
            Some(planned.saturating_sub(now.saturating_duration_since(begin)))
        });
        let longer = match self.planned.is_zero() {
            true => 1.0,
            false => (self.took.as_secs_f64() / self.planned.as_secs_f64()).max(1.0),
        };
        Duration::try_from_secs_f64((later + current.unwrap_or_default()).as_secs_f64() * longer)
            .unwrap_or(Duration::MAX)
    }
}

/// A duration for people: `45 s`, `12 min`, `2 h 5 min`.
fn words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    let minutes = seconds.div_ceil(60);
    match seconds {
        0..90 => format!("{seconds} s"),
        90..5_400 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Time between two lines within a cell.
const EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    // feature(measure): progress with the time left, learnt from the cells before, on standard error
    #[test]
    fn time_left_follows_the_plan_scaled_by_finished_cells() {
        let progress = Progress::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        progress.plan("tuning", vec![Duration::from_secs(600); 3]);
        assert_eq!(progress.begin("P", at(0)), "tuning: 1 of 3, P; 30 min left");
        assert_eq!(progress.look(at(59)), None);
        assert_eq!(progress.look(at(60)).as_deref(), Some("tuning: 1 of 3: 29 min left"));
        assert_eq!(progress.look(at(61)), None);
        // It took 900 s instead of 600.
        assert_eq!(progress.begin("PM", at(900)), "tuning: 2 of 3, PM; 30 min left");
        assert_eq!(progress.begin("PMC", at(1500)), "tuning: 3 of 3, PMC; 13 min left");
    }

    #[test]
    fn cells_measured_before_take_no_time() {
        let progress = Progress::default();
        let begin = Instant::now();
        progress.plan("servo", vec![Duration::from_secs(10), Duration::from_secs(20)]);
        assert_eq!(progress.pass_over("a", begin), "servo: 1 of 2, a: measured before");
        assert_eq!(progress.look(begin + Duration::from_secs(500)), None);
        assert_eq!(progress.begin("b", begin), "servo: 2 of 2, b; 20 s left");
    }

    #[test]
    fn durations_are_in_words() {
        let all = [0, 89, 90, 5_399, 5_400, 7_500].map(|it| words(Duration::from_secs(it)));
        assert_eq!(all, ["0 s", "89 s", "2 min", "90 min", "1 h 30 min", "2 h 5 min"]);
    }
}
