//! Errors of a bus.

use std::io;
use std::time::Duration;

use ethercat::al::AlStatus;
use ethercat::al_status_code::AlStatusCode;
use ethercat::debug_is_sentence;
use ethercat::main_device::{BusError, ConfigurationError, MailboxError, SubDeviceError};
use ethercat::pdo::FieldError;
use ethercat::sdo::SdoValueError;
use ethercat::time::span;
use thiserror::Error;

use crate::bring_up::BringUpError;
use crate::link::{OpenError, RingError};

/// Reason that a request to a bus failed; see [`Error::sub_device`] and [`Error::al_status_code`]
/// for details. `Debug` prints the same sentence as `Display`, so that a `main` that returns the
/// error prints it.
#[non_exhaustive]
#[derive(Error)]
pub enum Error {
    /// The interface cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Two interfaces are no ends of one ring.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The configuration or the period cannot be run.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The bus, or one SubDevice, cannot be brought up or kept up; it has been taken to Init.
    #[error(transparent)]
    Bus(BusError),
    /// The link fails.
    #[error("the link failed: {0}; check that the interface is still there, up, and has an MTU of 1500")]
    Link(io::Error),
    /// The bus does not come up for another reason: another MainDevice, time, a request to stop.
    #[error(transparent)]
    BringUp(BringUpError),
    /// No SubDevice answers any more.
    #[error("no SubDevice has answered for {}: check cables and power", span(*after))]
    Lost {
        /// Time without any reply.
        after: Duration,
    },
    /// A SubDevice stays out of Op.
    #[error(
        "SubDevice {position} \"{name}\" has been out of Op for {}: {}; check its power and cable, or let the run continue \
         (Bus::continue_out_of_op)",
        span(*after),
        if *answers { format!("it is in {status}, AL status code {code}") } else { "it does not answer".to_owned() }
    )]
    OutOfOp {
        /// Place of the SubDevice, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Time out of Op.
        after: Duration,
        /// False if it does not answer: state and code are its last.
        answers: bool,
        /// Its AL status.
        status: AlStatus,
        /// Its AL status code.
        code: AlStatusCode,
    },
    /// The bus is not in PreOp.
    #[error("the bus is not up: call bring_up first, and again after each run")]
    NotUp,
    /// There is no such SubDevice.
    #[error("no SubDevice at position {position}, the bus has {count}")]
    NoSubDevice {
        /// Requested.
        position: usize,
        /// SubDevices there are.
        count: usize,
    },
    /// An SDO cannot be read or written.
    #[error("SubDevice {position} \"{name}\", object {index:#06x}:{sub_index:02x}: {error}")]
    Sdo {
        /// Place of the SubDevice, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Cause.
        error: SdoError,
    },
    /// An object is no such process data.
    #[error("SubDevice {position} \"{name}\": {error}")]
    ProcessData {
        /// Place of the SubDevice, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Reason.
        error: FieldError,
    },
}

/// Reason that an SDO cannot be read or written.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Error)]
pub enum SdoError {
    /// The transfer failed.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    /// The value has another length than the type.
    #[error(transparent)]
    Value(#[from] SdoValueError),
}

debug_is_sentence!(Error, SdoError);

impl Error {
    /// Place of the SubDevice that it is about, if it is about one.
    #[must_use]
    pub fn sub_device(&self) -> Option<usize> {
        match self {
            Self::Bus(BusError::SubDevice { position, .. }) => Some(usize::from(*position)),
            Self::Sdo { position, .. } | Self::ProcessData { position, .. } => Some(*position),
            _ => None,
        }
    }

    /// AL status code of the SubDevice that refused a state or did not reach it, if that is the
    /// reason. Its text is its [`Display`](std::fmt::Display).
    #[must_use]
    pub fn al_status_code(&self) -> Option<AlStatusCode> {
        let Self::Bus(BusError::SubDevice { error, .. }) = self else { return None };
        match error {
            SubDeviceError::Refused { code, .. } | SubDeviceError::StateTimeout { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<BringUpError> for Error {
    fn from(error: BringUpError) -> Self {
        match error {
            BringUpError::Bus(error) => Self::Bus(error),
            BringUpError::Link(error) => Self::Link(error),
            other => Self::BringUp(other),
        }
    }
}
