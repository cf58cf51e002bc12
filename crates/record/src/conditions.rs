//! Conditions under which a run was measured.

use serde::Serialize;
use types::Conditions;

/// [`RunConditions::link`] of a run with simulated SubDevices and without deliberate frame loss.
pub const SIMULATED: &str = "simulated";

/// Note on lost frames of such a run, so that users do not look for a cable fault.
pub const LATE_REPLIES: &str = "On a simulated bus frames are lost if this computer stalls and the reply comes too late: see `onbeat doctor`.";

/// Value requested and value granted: a run without a privilege still runs, and its report shows
/// the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestedAndGranted<T> {
    /// Requested value.
    pub requested: T,
    /// Granted value.
    pub granted: T,
}

/// The conditions of a run: the machine, the privileges, the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunConditions {
    /// Conditions of every measurement.
    #[serde(flatten)]
    pub common: Conditions,
    /// Letters of the real-time profile, as `PMCS`: priority, memory lock, CPU shield, spinning
    /// sleep; `none`.
    pub profile: RequestedAndGranted<String>,
    /// Measures that keep other work off the cycle's CPU, if it is shielded.
    pub shield: Option<String>,
    /// CPU the cycle is bound to; `None` is any.
    pub cpu: RequestedAndGranted<Option<usize>>,
    /// SCHED_FIFO priority, 1 to 99; `None` is SCHED_OTHER.
    pub priority: RequestedAndGranted<Option<u8>>,
    /// Runtime reserved in every period under SCHED_DEADLINE, ns; `None` without it.
    pub deadline_runtime_ns: RequestedAndGranted<Option<u64>>,
    /// Memory locked against paging.
    pub memory_lock: RequestedAndGranted<bool>,
    /// SubDevices on the bus.
    pub sub_devices: usize,
    /// Process image bytes from the MainDevice to the SubDevices.
    pub output_bytes: usize,
    /// Process image bytes from the SubDevices to the MainDevice.
    pub input_bytes: usize,
    /// Name of the link, as `simulated`, `simulated, with faults` or `eth0 (AF_PACKET)`.
    pub link: String,
    /// Changes that prepare the network interface, if requested.
    pub nic: Option<String>,
    /// Reply that a cycle takes, as `wait_for_reply`.
    pub frame_order: String,
    /// Conditions that worsen the numbers, each with its remedy.
    pub warnings: Vec<String>,
}
