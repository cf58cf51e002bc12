use std::time::Duration;

/// The real-time cycle: how often, and what it asks of the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Time from release to release; 50 us to 1 s.
    pub period: Duration,
    /// SCHED_FIFO priority, 1 to 99; `None` leaves the ordinary scheduling alone.
    pub priority: Option<u8>,
    /// CPU the cycle is bound to; `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// Whether all memory is locked, so that no page fault enters the cycle.
    pub memory_lock: bool,
    /// Which reply a beat works with.
    pub frame_order: FrameOrder,
}

/// Which reply a beat works with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameOrder {
    /// Take the reply to the last beat's frames, which arrived long ago, and never wait.
    #[default]
    ReplyOfLastBeat,
    /// Send, then wait for this beat's own reply.
    WaitForReply,
}
