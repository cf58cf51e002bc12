//! Time that replies to service frames take, learnt from all replies, also from late ones.
//!
//! A fixed time-out starves a bus whose replies take a little longer, such as a simulated bus of a
//! thousand SubDevices on a busy machine: each reply is declared lost, its work is done again, and
//! all replies come later still.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::time::Instant;

/// Frames whose send times are kept, a power of two: some hundred milliseconds of a busy bus.
const KEPT: usize = 1024;

/// Bound of the time-out, in usual time-outs: 51 consecutive losses
/// ([`super::super::limits::LOSSES`]) are still reported within 9 s.
const MOST: u32 = 8;

/// Part of the difference to the current reply times that each reply takes off.
const BACK: u32 = 16;

/// Time that replies to service frames take.
#[derive(Debug)]
pub(in super::super) struct ReplyTime {
    /// Generation numbers and send times of the newest frames; not of process data frames, whose
    /// time-out is a cycle.
    sent: Vec<(u32, Instant)>,
    /// Longest time of a reply, forgotten little by little.
    longest: Duration,
}

impl ReplyTime {
    pub(super) fn new() -> Self {
        Self { sent: vec![(0, Instant::EPOCH); KEPT], longest: Duration::ZERO }
    }

    /// The frame of this generation is sent.
    pub(super) fn sent(&mut self, generation: u32, now: Instant) {
        self.sent[generation as usize % KEPT] = (generation, now);
    }

    /// Its reply came in time, after `took`.
    pub(in super::super) fn answered(&mut self, took: Duration) {
        let back = self.longest.saturating_sub(took) / BACK;
        self.longest = took.max(self.longest - back);
    }

    /// A reply to the frame of this generation, `age` frames old, came too late.
    pub(super) fn late(&mut self, generation: u32, age: u32, now: Instant) {
        let (known, sent_at) = self.sent[generation as usize % KEPT];
        if (age as usize) < KEPT && known == generation && sent_at != Instant::EPOCH {
            self.longest = self.longest.max(now.since(sent_at));
        }
    }

    /// Time after which a frame counts as lost: twice the longest reply time, never less than
    /// `usual`.
    pub(in super::super) fn time_out(&self, usual: Duration) -> Duration {
        usual.max((self.longest * 2).min(usual * MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_millis(20);

    /// Measured times after a reply of this time, too late.
    fn after(took: Duration) -> ReplyTime {
        let (mut reply_time, sent_at) = (ReplyTime::new(), Instant::from_nanos(77));
        reply_time.sent(5, sent_at);
        reply_time.late(5, 3, sent_at + took);
        reply_time
    }

    /// Late replies lengthen the time-out, up to a bound; late process data does not.
    #[test]
    fn late_replies_lengthen_the_time_out_up_to_a_bound() {
        assert_eq!(ReplyTime::new().time_out(USUAL), USUAL);
        assert_eq!(after(USUAL * 2).time_out(USUAL), USUAL * 4);
        assert_eq!(after(USUAL * 100).time_out(USUAL), USUAL * MOST);
        let mut reply_time = ReplyTime::new();
        reply_time.sent(5, Instant::from_nanos(77));
        reply_time.late(5 + KEPT as u32, 3, Instant::from_nanos(77) + USUAL * 2);
        assert_eq!(reply_time.time_out(USUAL), USUAL);
    }

    /// One that is so old that another frame has its place counts for nothing.
    #[test]
    fn a_reply_of_long_ago_counts_for_nothing() {
        let mut reply_time = ReplyTime::new();
        reply_time.sent(5, Instant::from_nanos(77));
        reply_time.late(5, KEPT as u32, Instant::from_nanos(77) + USUAL * 2);
        reply_time.sent(5 + KEPT as u32, Instant::from_nanos(77));
        reply_time.late(5, 3, Instant::from_nanos(77) + USUAL * 2);
        assert_eq!(reply_time.time_out(USUAL), USUAL);
    }

    /// Replies that come soon bring the time-out back to the usual; longer ones keep it.
    #[test]
    fn fast_replies_shorten_the_time_out_again() {
        let mut reply_time = after(USUAL * 4);
        (0..200).for_each(|_| reply_time.answered(USUAL * 3));
        assert!(reply_time.time_out(USUAL) >= USUAL * 6);
        (0..200).for_each(|_| reply_time.answered(USUAL / 10));
        assert_eq!(reply_time.time_out(USUAL), USUAL);
    }
}
