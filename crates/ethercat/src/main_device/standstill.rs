//! Time in which the MainDevice was not called, as during a host stall or on a busy machine: it
//! counts towards no limit.

use core::time::Duration;

use crate::time::Instant;

use super::MainDevice;

/// Shorter gaps are as good as none.
const NOTICED: Duration = Duration::from_millis(2);

/// Time for which a cycle may wait for its replies.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

impl MainDevice {
    /// Notes a call at `now`. If a call was due earlier, all time-outs are put off by the
    /// difference.
    pub(super) fn note_served(&mut self, now: Instant) {
        let before = core::mem::replace(&mut self.served_at, now);
        // One comparison also finds a clock that was read before.
        if now.as_nanos().wrapping_sub(before.as_nanos()) > NOTICED.as_nanos() as u64 {
            self.note_gap(before, now);
        }
    }

    #[cold]
    fn note_gap(&mut self, before: Instant, now: Instant) {
        if now < before || before == Instant::EPOCH {
            return;
        }
        let due = if self.cycle.running {
            // From cycle to cycle, and for late replies before Op is requested.
            Some(before + (self.configuration.period * 2).max(LONGEST_WAIT))
        } else {
            self.poll_timeout()
        };
        let stood_still = due.map_or(Duration::ZERO, |due| now.since(due.max(before)));
        if stood_still > NOTICED && !self.check_quiet() {
            self.put_off(stood_still);
        }
    }

    fn put_off(&mut self, by: Duration) {
        self.phase_since = self.phase_since + by;
        self.broadcasts.put_off(by);
        self.together.put_off(by);
        self.workers.iter_mut().for_each(|worker| worker.put_off(by));
    }
}
