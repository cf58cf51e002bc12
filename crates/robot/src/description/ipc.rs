use std::time::Duration;

/// Shared-memory interface: name, access and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipc {
    /// Name of the interface; by default that of the robot.
    pub name: String,
    /// Group whose members may attach besides the user that runs the cycle.
    pub group: Option<String>,
    /// True if the drives are enabled at the start; otherwise on request.
    pub enable: bool,
    /// True if signals may be forced.
    pub force: bool,
    /// Longest time to live of a command.
    pub longest_time_to_live: Duration,
    /// Ports besides `control` and `trajectory`.
    pub ports: Vec<IpcPort>,
}

/// A port of a datagram channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcPort {
    /// Name; unique.
    pub name: String,
    /// Kind.
    pub kind: IpcPortKind,
}

/// Kind of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpcPortKind {
    /// A queue of messages each way.
    Message {
        /// Bytes of the longest message.
        size: usize,
        /// Depth of the queue each way, in messages.
        depth: usize,
    },
    /// A byte stream each way.
    Stream {
        /// Size of the buffer each way, in bytes.
        size: usize,
    },
}
