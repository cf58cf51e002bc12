//! Other MainDevices on the wire, known by replies to frames that are not ours.

use core::time::Duration;

use crate::time::Instant;

/// Frames within [`WINDOW`] that prove another MainDevice, as fewer could be damaged frames of our
/// own.
const FRAMES: u32 = 10;

const WINDOW: Duration = Duration::from_secs(1);

/// Time without a frame of another after which it has gone.
pub(super) const GONE: Duration = Duration::from_secs(5);

/// Says once that another MainDevice is on the wire.
#[derive(Debug, Default)]
pub(super) struct Others {
    since: Option<Instant>,
    frames: u32,
    reported: bool,
    last: Option<Instant>,
}

impl Others {
    /// One more frame of another; true if it is time to report it.
    pub(super) fn received(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.since(since) > WINDOW) {
            self.since = Some(now);
            self.frames = 0;
        }
        self.last = Some(now);
        self.frames = self.frames.saturating_add(1);
        let tell = !self.reported && self.frames >= FRAMES;
        self.reported |= tell;
        tell
    }

    /// True while another MainDevice is on the wire.
    pub(super) fn are_there(&self, now: Instant) -> bool {
        self.reported && self.last.is_some_and(|last| now.since(last) < GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_keep_coming_are_reported_once() {
        let mut others = Others::default();
        let mut told = |number: u64| others.received(Instant::from_nanos(number * 50_000_000));
        let told: Vec<u64> = (0..1000).filter(|&number| told(number)).collect();
        assert_eq!(told, [9]);
        let last = Instant::from_nanos(999 * 50_000_000);
        assert!(others.are_there(last) && !others.are_there(last + GONE));
    }

    #[test]
    fn a_damaged_frame_now_and_then_is_no_main_device() {
        let mut others = Others::default();
        assert!(!(0..1000).any(|number| others.received(Instant::from_nanos(number * 200_000_000))));
    }
}
