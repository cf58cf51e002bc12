//! The native part of the Python package `onbeat`: the shared-memory interface, seen from Python.
//! `onbeat/_native.pyi` is its typed face, and `onbeat/` what people import.
//!
//! | module | part |
//! |---|---|
//! | [`errors`] | exceptions raised |
//! | [`state`] | the state of a cycle, read-only |
//! | [`cycle`] | a running cycle, attached to, and the lease of its commands |
//! | [`controller`] | the role of its controller |
//! | [`ports`] | ports as files, and what two of them speak: requests and trajectories |
//! | [`wait`] | waiting without holding Python's lock |

mod controller;
mod cycle;
mod errors;
mod ports;
mod state;
mod wait;

/// The native part of `onbeat`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::controller::{ControllerRequest, ControllerRole};
    #[pymodule_export]
    use crate::cycle::{Cycle, Lease, attach, cycles};
    #[pymodule_export]
    use crate::errors::{
        CommandError, CycleEndedError, LeaseError, NoCycleError, OnbeatError, PortError,
        RequestRefusedError,
    };
    #[pymodule_export]
    use crate::ports::{ControlPort, Port, TrajectoryPort, TrajectoryReport};
    #[pymodule_export]
    use crate::state::{
        Axis, Base, Bus, Clock, CommandState, Control, Signal, SignalCounters, Spread, State, Timing,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
