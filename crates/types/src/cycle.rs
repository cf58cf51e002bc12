//! Choices of a cycle.

use core::time::Duration;

use crate::macros::named;

/// Time that a bus may stay lost, unless another is said.
pub const LOSS_TIME: Duration = Duration::from_secs(10);

/// Consecutive cycles without data of an axis for which its set-points continue.
pub const BLIND_CYCLES: u64 = 2;

named! {
    /// Reply that a cycle works with.
    #[derive(Default)]
    FrameOrder {
        /// Takes the replies to the frames of the cycle before, computes, sends: the cycle never
        /// waits for the wire.
        #[default]
        ReplyOfLastCycle = "reply_of_last_cycle";
        /// Sends what the cycle before computed, waits for the replies, computes: outputs leave at
        /// the release however long the controller takes, and inputs are of this cycle.
        WaitForReply = "wait_for_reply";
    }
}

named! {
    /// Clock that the cycle's releases follow.
    #[derive(Default)]
    CycleClock {
        /// This host's.
        #[default]
        Own = "own";
        /// The reference clock of the bus: releases are moved until they come at a fixed phase of
        /// its periods.
        Reference = "reference";
        /// This host's, and the reference clock of the bus is steered after it.
        Host = "host";
    }
}

named! {
    /// Lock of the cycle to the reference clock of the bus.
    #[derive(Default, PartialOrd, Ord)]
    LockState {
        /// The cycle follows its own clock.
        #[default]
        Off = "off";
        /// Not locked yet.
        Searching = "searching";
        /// Releases come at their place in the reference clock's periods.
        Locked = "locked";
        /// They did.
        Lost = "lost";
    }
}

named! {
    /// Treatment of the releases that a cycle has run past.
    #[derive(Default)]
    OverrunPolicy {
        /// They are skipped: the next cycle starts at the next grid point.
        #[default]
        Skip = "skip";
        /// They are run back to back until the grid is caught up with, up to a limit in a row; what
        /// is missing then is skipped.
        CatchUp = "catch-up";
        /// They are skipped, the axes stop, and the run ends with an error.
        Stop = "stop";
    }
}

named! {
    /// Behaviour of an axis after an outage, once it is back and at standstill.
    #[derive(Default)]
    AfterOutage {
        /// Stays in place until the outage is acknowledged.
        #[default]
        Stay = "stay";
        /// Is moved on by its controller.
        Resume = "resume";
    }
}
