//! The EtherCAT protocol: bytes and time in, bytes and events out.
//!
//! No I/O, no clock, no unsafe code. A caller hands in frames it received and the time it read, and
//! takes out frames to send and events to act on; allocation happens only before the cycle starts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`wire`] | Ethernet, the EtherCAT frame, datagrams, mailbox, CoE: checked bytes and their meaning |
//! | [`register`] | the ESC's registers by group, with their clauses |
//! | [`sii`] | the SubDevice information interface: EEPROM image and categories |
//! | [`pdo`] | process data objects: entries, mappings, assignments |
//! | [`al`] | the EtherCAT state machine's states, as AL control and AL status spell them |
//! | [`al_status_code`] | why a SubDevice refused a state: codes and texts |
//! | [`sdo_abort`] | why an SDO transfer ended: codes and texts |
//! | [`link`] | the seam to the wire: [`link::Link`] and, at the other end, [`link::Segment`] |
//! | [`main_device`] | the MainDevice: bring-up, cyclic exchange, mailbox services, distributed clocks |
//! | [`cia402`] | servo drives: statusword, controlword, modes, enabling without a jump |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod al;
pub mod al_status_code;
pub mod cia402;
pub mod link;
pub mod main_device;
pub mod pdo;
pub mod register;
pub mod sdo_abort;
pub mod sii;
mod table;
pub mod wire;

pub use types::time;
