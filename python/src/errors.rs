//! Exceptions raised: the shared-memory interface's own sentences, sorted by what a program does
//! about them.

use std::io;

use pyo3::exceptions::{PyException, PyOSError, PyTimeoutError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(
    onbeat,
    OnbeatError,
    PyException,
    "Anything that goes wrong between a program and a cycle."
);
create_exception!(onbeat, NoCycleError, OnbeatError, "There is no such running cycle, or more than one.");
create_exception!(onbeat, CycleEndedError, OnbeatError, "The cycle has ended, or its process was killed.");
create_exception!(onbeat, LeaseError, OnbeatError, "Another process holds the lease of commands.");
create_exception!(onbeat, CommandError, OnbeatError, "A command that cannot be given.");
create_exception!(onbeat, PortError, OnbeatError, "A port that is not there, or is open already.");
create_exception!(onbeat, RequestRefusedError, OnbeatError, "The cycle refused a request or a trajectory.");

/// An error of a port's descriptor.
pub(crate) fn of_port(error: io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::NotConnected => ended(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => PyTimeoutError::new_err(error.to_string()),
        io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        _ => PyOSError::new_err(error.to_string()),
    }
}

/// The cycle has ended.
pub(crate) fn ended() -> PyErr {
    CycleEndedError::new_err("the cycle has ended: attach again once it runs")
}
