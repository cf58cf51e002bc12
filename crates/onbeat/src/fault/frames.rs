//! Faults of frames on the wire, as users state them: shares of all frames, there and back.

use std::time::Duration;

use onbeat_ethercat_linux::link::{FaultRates, Faults};

/// Faults of frames: shares between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameFaults {
    /// Frames that are lost, on either way.
    pub loss: f64,
    /// Replies held back for `delay`.
    pub late: f64,
    /// Time a late reply is held back.
    pub delay: Duration,
    /// Replies that come twice.
    pub duplicate: f64,
    /// Replies that are overtaken by the next.
    pub reorder: f64,
    /// Replies with one bit that is another.
    pub corrupt: f64,
    /// Seed of their chance.
    pub seed: u64,
}

impl FrameFaults {
    /// Faults of each direction. Frames are lost on either way; all else happens to replies, so
    /// that no SubDevice acts on it.
    #[must_use]
    pub fn on_link(self) -> Faults {
        // A frame goes both ways and must survive each.
        let loss = 1.0 - (1.0 - self.loss).sqrt();
        let replies = FaultRates {
            loss,
            corrupt: self.corrupt,
            duplicate: self.duplicate,
            delay: self.late,
            delay_by: self.delay,
            reorder: self.reorder,
        };
        Faults { requests: FaultRates { loss, ..FaultRates::default() }, replies, seed: self.seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_lost_on_either_way_and_altered_on_its_way_back() {
        let asked = FrameFaults { loss: 0.75, corrupt: 0.5, seed: 3, ..FrameFaults::default() };
        let faults = asked.on_link();
        assert_eq!((faults.requests.loss, faults.replies.loss), (0.5, 0.5));
        assert_eq!((faults.requests.corrupt, faults.replies.corrupt, faults.seed), (0.0, 0.5, 3));
    }
}
