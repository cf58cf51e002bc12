//! End of a cycle.

use ethercat::main_device::{BusError, MainDevice};

use super::HostStalls;
use crate::signal::{Counters, SignalState};
use crate::status::Status;
use crate::watch::Lost;
use rt::pacer::Overruns;

/// A cycle that has ended, taken apart.
#[derive(Debug)]
pub struct Ended<L> {
    /// Failure of the bus, if that ended the cycle.
    pub failure: Option<BusError>,
    /// The cycle with the overrun that ended the run, under
    /// [`OverrunPolicy::Stop`](rt::pacer::OverrunPolicy::Stop).
    pub stopped_by_overrun: Option<u64>,
    /// The bus stayed lost, and that ended the cycle.
    pub lost: Option<Lost>,
    /// Cycles that ran past their next release.
    pub overruns: Overruns,
    /// Stalls of the host that the bus waited for; `None` of a bus that does not.
    pub host_stalls: Option<HostStalls>,
    /// Cycles with the bus in Op.
    pub cycles_in_op: u64,
    /// Status of the last cycle.
    pub status: Status,
    /// Status of the last cycle before the stop.
    pub before_stop: Status,
    /// True if the controller process gave no answers then, and had not disabled its axes before.
    pub controller_lost: bool,
    /// Text of a panic of the controller, which ended the cycle: the axes were stopped as after the
    /// loss of a controller process.
    pub controller_panic: Option<String>,
    /// True if the command that the controller lives on was stale then, and had gone stale while
    /// axes moved or had a torque.
    pub command_lost: bool,
    /// Status at the end of the stop, at the request for Init.
    pub before_init: Status,
    /// Signals, with their values in the last cycle before the stop.
    pub signals: Vec<(types::Signal, SignalState)>,
    /// Values set to outputs that could not be.
    pub signal_counters: Counters,
    /// The MainDevice.
    pub main_device: MainDevice,
    /// Its link.
    pub link: L,
}
