use std::time::Duration;

/// What the rest of the world gets to see of the cycle, and may ask of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seam {
    /// Name of the seam; that of the robot where the file does not say.
    pub name: String,
    /// Group whose members may attach besides the user that runs the cycle.
    pub group: Option<String>,
    /// The drives are enabled at the start; otherwise somebody has to ask for it.
    pub enable: bool,
    /// Longest time a command may hold.
    pub longest_time_to_live: Duration,
    /// Ports besides `control` and `trajectory`.
    pub ports: Vec<SeamPort>,
}

/// A port of a datagram channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeamPort {
    /// What it is called; unique.
    pub name: String,
    /// What goes through it.
    pub kind: SeamPortKind,
}

/// What goes through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeamPortKind {
    /// Messages.
    Message {
        /// Bytes of the longest.
        size: usize,
        /// Messages that find room each way.
        depth: usize,
    },
    /// Bytes.
    Stream {
        /// Bytes that find room each way.
        size: usize,
    },
}
