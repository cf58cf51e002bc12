//! Mailbox requests to a SubDevice, and their outcomes.

use alloc::vec::Vec;
use core::time::Duration;

use thiserror::Error;

use crate::sdo_abort::AbortCode;
use crate::time::span;
use crate::wire::coe::{CoeFormatError, ListType, ValueInfo};
use crate::wire::mailbox::{self, MailboxFormatError};

/// A request to one SubDevice's mailbox. The outcome returns it, with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxRequest {
    /// Place of the SubDevice, from 0.
    pub position: u16,
    /// The request.
    pub service: MailboxService,
    /// A download's value; otherwise the buffer for the read data, filled up to its *capacity*:
    /// nothing allocates here.
    pub data: Vec<u8>,
}

/// Request to a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxService {
    /// SDO upload: read an object.
    Upload {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// All sub-indices from there on at once.
        complete_access: bool,
    },
    /// SDO download: write an object.
    Download {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// All sub-indices from there on at once.
        complete_access: bool,
    },
    /// SDO information: the list of objects. The data is the list type, then indices of 2 bytes.
    ObjectList(ListType),
    /// SDO information: [`crate::wire::coe::ObjectDescription`].
    DescribeObject {
        /// Object index.
        index: u16,
    },
    /// SDO information: [`crate::wire::coe::EntryDescription`].
    DescribeEntry {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Values that shall follow.
        value_info: ValueInfo,
    },
}

impl MailboxService {
    /// The object it is about.
    pub(super) fn index(self) -> Option<u16> {
        match self {
            Self::Upload { index, .. } | Self::Download { index, .. } => Some(index),
            Self::DescribeObject { index } | Self::DescribeEntry { index, .. } => Some(index),
            Self::ObjectList(_) => None,
        }
    }
}

/// A request that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct MailboxOutcome {
    /// The request, with the read bytes in its data.
    pub request: MailboxRequest,
    /// Outcome.
    pub result: Result<(), MailboxError>,
}

/// Reason that a mailbox request failed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum MailboxError {
    /// The SubDevice ended the transfer.
    #[error("aborted, {0}")]
    Aborted(AbortCode),
    /// No answer in time.
    #[error("no mailbox answer within {0:?}")]
    Timeout(Duration),
    /// Answers came, but the transfer was not over in time.
    #[error(
        "not over after {}: {bytes} bytes in {answers} answers; the SubDevice is stuck, restart it",
        span(*after)
    )]
    Unfinished {
        /// Time given to it.
        after: Duration,
        /// Answers that took it further.
        answers: u32,
        /// Bytes transferred by then.
        bytes: usize,
    },
    /// There is no such SubDevice.
    #[error("no SubDevice at position {position}, the bus has {count}")]
    NoSubDevice {
        /// Requested.
        position: u16,
        /// Number there are.
        count: usize,
    },
    /// The SubDevice is not on the bus.
    #[error("it is not on the bus: it does not answer; check its power and the cable to it")]
    Gone,
    /// The SubDevice has no mailbox with CoE.
    #[error("its SII declares no CoE mailbox")]
    NoCoe,
    /// The bus is not, or no longer, in PreOp or above.
    #[error("the bus is not in PreOp or above")]
    NotReady,
    /// More data than the request's buffer holds.
    #[error("{needed} bytes to read, the request's buffer holds {capacity}")]
    BufferTooSmall {
        /// Bytes needed.
        needed: usize,
        /// Bytes the buffer holds.
        capacity: usize,
    },
    /// The SubDevice refuses the message.
    #[error("refused, {0}")]
    Refused(mailbox::MailboxError),
    /// The answer is no mailbox message.
    #[error("answer: {0}")]
    Mailbox(MailboxFormatError),
    /// The answer, or the request, is no CoE message.
    #[error("{0}")]
    Format(CoeFormatError),
    /// The mailbox does not take or give messages.
    #[error("the mailbox at {address:#06x} does not answer: check power and cable, or restart it")]
    NoAnswer {
        /// Address of the mailbox.
        address: u16,
    },
}
