//! Temporary loop settings (0x0100 bit 1; ESC data sheet, section II, 2.4): after about a second
//! the previous settings return. A MainDevice uses them to open or close a port that could cut it
//! off for good.

use core::time::Duration;

use ethercat::time::Instant;

/// Time for which temporary settings hold.
const TEMPORARY: Duration = Duration::from_secs(1);

/// Loop settings to return to, and the time of that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TemporaryLoops {
    until: Option<(Instant, u8)>,
}

impl TemporaryLoops {
    /// Registers a write of DL control at `now`; the loop settings were `before`.
    pub(super) fn written(&mut self, now: Instant, temporary: bool, before: u8) {
        let restored = self.until.map_or(before, |(_, restored)| restored);
        self.until = temporary.then(|| (now + TEMPORARY, restored));
    }

    /// True while some are set.
    pub(super) fn are_set(&self) -> bool {
        self.until.is_some()
    }

    /// Loop settings to restore, once, if their time has come by `now`.
    pub(super) fn end(&mut self, now: Instant) -> Option<u8> {
        let (_, restored) = self.until.filter(|(end, _)| *end <= now)?;
        self.until = None;
        Some(restored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_settings_revert_after_one_second() {
        let at = |milliseconds: u64| Instant::from_nanos(milliseconds * 1_000_000);
        let mut loops = TemporaryLoops::default();
        loops.written(at(0), true, 0x11);
        // Once more: the first settings return, a second after the last write.
        loops.written(at(500), true, 0x22);
        assert_eq!(
            (loops.end(at(1_499)), loops.end(at(1_500)), loops.end(at(1_501))),
            (None, Some(0x11), None)
        );
        loops.written(at(2_000), true, 0x11);
        loops.written(at(2_100), false, 0x22);
        assert_eq!(loops.end(at(9_000)), None);
    }
}
