//! `cyclictest`: sleeps from release to release as our pacer does, and prints its wake-up latency.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{NoPeer, output_of, timeout};

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cyclictest {
    /// `SCHED_FIFO` priority; `None` for the ordinary policy.
    pub(crate) priority: Option<u8>,
    /// CPU of its measuring thread.
    pub(crate) cpu: usize,
    /// Period, in whole microseconds.
    pub(crate) period: Duration,
    /// Number of wake-ups.
    pub(crate) cycles: u64,
}

impl Cyclictest {
    /// Runs it, and returns the wake-up latency of each cycle in nanoseconds.
    ///
    /// # Errors
    /// The reason for missing latencies.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Vec<u64>, NoPeer> {
        let printed = output_of("cyclictest", &self.arguments(), timeout(self.period, self.cycles), stop)?;
        let latencies = latencies(&printed);
        if latencies.is_empty() {
            return Err(NoPeer("cyclictest printed no latencies (expected lines as `0: 1: 2345`)".into()));
        }
        Ok(latencies)
    }

    /// Arguments: memory locked, every wake-up printed (`-v`), in nanoseconds (`-N`).
    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = ["-m", "-N", "-v", "-t1", "-d0"].map(String::from).into();
        arguments.push(format!("-a{}", self.cpu));
        if let Some(priority) = self.priority {
            arguments.push(format!("-p{priority}"));
        }
        arguments.push(format!("-i{}", self.period.as_micros().max(1)));
        arguments.push(format!("-l{}", self.cycles));
        arguments
    }
}

/// Parses the lines `thread: cycle: latency` of thread 0 and skips all others.
fn latencies(printed: &str) -> Vec<u64> {
    let latency = |line: &str| {
        let mut parts = line.split(':').map(str::trim);
        let (thread, cycle, latency) = (parts.next()?, parts.next()?, parts.next()?);
        cycle.parse::<u64>().ok()?;
        let latency = latency.parse::<i64>().ok()?;
        // A clock stepped back gives a negative latency, which is ignored.
        (thread == "0" && parts.next().is_none()).then(|| u64::try_from(latency).ok())?
    };
    printed.lines().filter_map(latency).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of cyclictest 2.40 on Debian 12: `cyclictest -m -N -v -t1 -a0 -p80 -i1000 -l4`.
    const PRINTED: &str = "Max CPUs = 2\nOnline CPUs = 2\nUsing 1 cpus.\n\
        # /dev/cpu_dma_latency set to 0us\nThread 0 using cpu 0.\nThread 0 Interval: 1500\n       \
        0:       0:   20563\n       0:       1:   26083\n       0:       2:   18064\n       0:       3:  114675\n";

    #[test]
    fn cycles_are_read_and_all_else_is_not() {
        assert_eq!(latencies(PRINTED), [20_563, 26_083, 18_064, 114_675]);
    }

    #[test]
    fn garbage_gives_no_latencies() {
        for garbage in [
            "",
            "\u{0}\u{1b}[2A::::",
            "0:0",
            "0:0:",
            "0:0:x",
            "0:x:5",
            "1:0:5",
            "0:0:5:6",
            "0:0:-5",
            "T: 0 (1) P:80 C: 5 Min: 1",
            "0: 0: 99999999999999999999999999",
        ] {
            assert_eq!(latencies(garbage), [0_u64; 0], "{garbage:?}");
        }
    }

    #[test]
    fn cyclictest_gets_the_same_parameters_as_ours() {
        let asked =
            Cyclictest { priority: Some(80), cpu: 1, period: Duration::from_micros(250), cycles: 7 };
        assert_eq!(asked.arguments().join(" "), "-m -N -v -t1 -d0 -a1 -p80 -i250 -l7");
        let ordinary = Cyclictest { priority: None, ..asked };
        assert_eq!(ordinary.arguments().join(" "), "-m -N -v -t1 -d0 -a1 -i250 -l7");
    }
}
