//! `ptsematest` and `pmqtest`: time from one thread's `pthread_mutex_unlock` or `mq_send` to the
//! other thread's return from `pthread_mutex_lock` or `mq_receive`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{NoPeer, output_of, timeout};

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOver {
    /// `ptsematest` or `pmqtest`.
    pub(crate) program: &'static str,
    /// `SCHED_FIFO` priority of both its threads.
    pub(crate) priority: u8,
    /// CPU of both threads.
    pub(crate) cpu: usize,
    /// Time between two hand-overs, in whole microseconds.
    pub(crate) interval: Duration,
    /// Number of hand-overs.
    pub(crate) rounds: u64,
}

/// Printed results, in whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct HandedOver {
    /// Number of hand-overs made.
    pub(crate) rounds: u64,
    /// Minimum.
    pub(crate) minimum: u64,
    /// Mean, rounded down.
    pub(crate) average: u64,
    /// Maximum.
    pub(crate) maximum: u64,
}

impl HandedOver {
    /// Combines two runs.
    pub(crate) fn and(self, other: Self) -> Self {
        let rounds = self.rounds + other.rounds;
        let sum = self.average * self.rounds + other.average * other.rounds;
        Self {
            rounds,
            minimum: self.minimum.min(other.minimum),
            average: sum / rounds.max(1),
            maximum: self.maximum.max(other.maximum),
        }
    }
}

impl HandOver {
    /// Runs it.
    ///
    /// # Errors
    /// The reason for missing numbers.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<HandedOver, NoPeer> {
        let timeout = timeout(self.interval, self.rounds);
        let printed = output_of(self.program, &self.arguments(), timeout, stop)?;
        parse(&printed).ok_or_else(|| {
            NoPeer(format!(
                "{} printed no summary (expected `Cycles N` and `#1 -> #0, Min a, Cur b, Avg c, Max d`)",
                self.program
            ))
        })
    }

    /// Arguments: one pair of threads, a summary at the end only.
    fn arguments(&self) -> Vec<String> {
        vec![
            "-q".into(),
            "-t1".into(),
            "-d0".into(),
            format!("-a{}", self.cpu),
            format!("-p{}", self.priority),
            format!("-i{}", self.interval.as_micros().max(1)),
            format!("-l{}", self.rounds),
        ]
    }
}

/// Parses the last summary of the pair.
fn parse(printed: &str) -> Option<HandedOver> {
    let rounds = number_after(printed.lines().rfind(|line| line.contains("Cycles"))?, "Cycles")?;
    let line = printed.lines().rfind(|line| line.contains("#1 -> #0"))?;
    let found = HandedOver {
        rounds,
        minimum: number_after(line, "Min")?,
        average: number_after(line, "Avg")?,
        maximum: number_after(line, "Max")?,
    };
    (found.minimum <= found.average && found.average <= found.maximum && rounds > 0).then_some(found)
}

fn number_after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_summaries_are_read() {
        // Output of rt-tests 2.40 on Debian 12.
        let semaphore = "#0: ID12418, P90, CPU0, I500; #1: ID12421, P90, CPU0, Cycles 300\n\
            #1 -> #0, Min    2, Cur   59, Avg    3, Max   59\n";
        let queue = "#0: ID12430, P90, CPU0, I500; #1: ID12431, P90, CPU0, TO 0, Cycles 301\n\
            #1 -> #0, Min    2, Cur    3, Avg    3, Max  140\n";
        let expected = |rounds, maximum| HandedOver { rounds, minimum: 2, average: 3, maximum };
        assert_eq!(parse(semaphore), Some(expected(300, 59)));
        assert_eq!(parse(queue), Some(expected(301, 140)));
        assert_eq!(
            parse(&format!("{queue}\u{1b}[2A{semaphore}")),
            Some(expected(300, 59)),
            "the last counts"
        );
    }

    #[test]
    fn two_runs_are_one_longer_one() {
        let short = HandedOver { rounds: 100, minimum: 2, average: 3, maximum: 9 };
        let long = HandedOver { rounds: 300, minimum: 1, average: 7, maximum: 8 };
        assert_eq!(short.and(long), HandedOver { rounds: 400, minimum: 1, average: 6, maximum: 9 });
    }

    #[test]
    fn garbage_is_no_summary() {
        for garbage in [
            "",
            "#1 -> #0, Min 2, Cur 3, Avg 3, Max 4",
            "Cycles 5",
            "Cycles 5\n#1 -> #0, Min , Avg 3, Max 4",
            "Cycles 5\n#1 -> #0, Min 5, Avg 3, Max 4",
            "Cycles 0\n#1 -> #0, Min 1, Avg 3, Max 4",
            "Cycles x\n#1 -> #0, Min 1, Avg 3, Max 4",
            "Cycles 5\n#1 -> #0, Min 99999999999999999999999, Avg 3, Max 4",
        ] {
            assert_eq!(parse(garbage), None, "{garbage:?}");
        }
    }
}
