//! Requests of other programs to the bus of a running cycle: mailboxes, the state of SubDevices,
//! events.
//!
//! An ordinary thread ([`ipc::bus::Server`]) serves the clients; [`BusBackend`] is its way to the
//! cycle, which has [`BusRequests`]. Between them are two rings. The ordinary thread allocates and
//! frees all items in them. The cycle takes a few requests in each period, and its one service
//! frame carries their datagrams.

mod backend;
mod events;
mod names;
mod picture;
mod poll;
mod queue;
mod repeats;
mod working_counters;
mod write_protection;

pub use backend::BusBackend;
pub use events::{error_code, event, is_alike, other_main_device, place, sentence, stop_reason};
pub use names::{MOST_NAMED, PartNames, sub_device};
pub use picture::{latch_inputs, sub_device_status, sync_status};
pub use poll::BusPoll;
pub use queue::BusRequests;
pub use repeats::{Repeated, Repeats};
pub use types::time::span;
pub use write_protection::WriteProtection;

use std::cell::LazyCell;

use ethercat::main_device::MainDevice;
use rtrb::RingBuffer;
use serde_json::Value;

use crate::status::StatusReader;

/// Mailbox requests in the cycle at once.
const SLOTS: usize = 16;

/// Both ends for a bus in PreOp: the end of the cycle, and the end of the server. `description`
/// makes the description of the SubDevices for clients at the first request, `status` the status of
/// the cycle.
#[must_use]
pub fn requests(
    main_device: &MainDevice,
    protection: WriteProtection,
    status: StatusReader,
    description: impl FnOnce() -> Value + Send + 'static,
) -> (BusRequests, BusBackend) {
    // In addition to the mailbox requests one for a picture, one that clears the error counters,
    // and one for latch inputs.
    let (asks, asked) = RingBuffer::new(SLOTS + 3);
    let (answers, answered) = RingBuffer::new(SLOTS + 3);
    let description = LazyCell::new(Box::new(description) as _);
    let backend =
        BusBackend::new(asks, answered, protection, status, description, main_device.sub_devices().len());
    (BusRequests::new(asked, answers), backend)
}
