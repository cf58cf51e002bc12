//! Encoder of an axis: what the drive knows of the position after a time without power.

use core::f64::consts::TAU;

/// Knowledge of an encoder after a time without power.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Encoder {
    /// Every position, however far the shaft has turned.
    #[default]
    Unlimited,
    /// No encoder memory: the drive continues with the count from before the loss of power.
    Incremental,
    /// Positions within this many turns of the motor; above 0. After a restart the drive counts
    /// from -1/2 to +1/2 of this range.
    Absolute {
        /// Turns that the encoder distinguishes.
        turns: f64,
    },
}

/// Encoder of one axis, and the motion that its drive does not know of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    pub(super) encoder: Encoder,
    /// Angle at which the drive last counted, in rad.
    counted: f64,
    /// Part of the true angle that the count lacks, in rad.
    unseen: f64,
    restarts: bool,
}

impl Counter {
    pub(super) fn at(angle: f64) -> Self {
        Self { counted: angle, ..Self::default() }
    }

    /// The drive has power, and sees the shaft at `angle` (rad).
    pub(super) fn sees(&mut self, angle: f64) {
        if !self.restarts {
            self.counted = angle;
        }
    }

    /// The drive has power again: motion until [`end_restart`](Self::end_restart) is of the time
    /// without.
    pub(super) fn restart(&mut self) {
        self.restarts = true;
    }

    /// Angle (rad) by which the count changes because the drive was without power, once it has
    /// restarted; the shaft is at `angle`.
    pub(super) fn end_restart(&mut self, angle: f64) -> Option<f64> {
        if !core::mem::take(&mut self.restarts) {
            return None;
        }
        let before = self.unseen;
        match self.encoder {
            Encoder::Unlimited => {}
            Encoder::Incremental => self.unseen += angle - self.counted,
            Encoder::Absolute { turns } => {
                let range = turns * TAU;
                self.unseen = range * (angle / range).round();
            }
        }
        self.counted = angle;
        Some(before - self.unseen)
    }
}
