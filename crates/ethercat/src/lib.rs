//! The EtherCAT protocol: bytes and time in, bytes and events out.
//!
//! No I/O, no clock, no unsafe code. A caller hands in frames it received and the time it read, and
//! takes out frames to send and events to act on; allocation happens only before the cycle starts.
//!
//! | module | part |
//! |---|---|
//! | [`wire`] | Ethernet, the EtherCAT frame, datagrams, mailbox, CoE: checked bytes |
//! | [`register`] | the ESC's registers by group, with their clauses |
//! | [`sii`] | the SubDevice information interface: EEPROM image and categories |
//! | [`pdo`] | process data objects: entries, mappings, and values of any type: [`pdo::Field`] |
//! | [`al`] | the EtherCAT state machine's states, as AL control and AL status spell them |
//! | [`al_status_code`] | reasons for a refused state: codes and texts |
//! | [`sdo`] | values of SDOs by type |
//! | [`sdo_abort`] | reasons for an aborted SDO transfer: codes and texts |
//! | [`link`] | the lengths of frames, and the far end of the cable: [`link::Segment`] |
//! | [`main_device`] | the MainDevice: bring-up, cycle, mailbox services, distributed clocks |
//! | [`cia402`] | servo drives: statusword, controlword, modes, enabling without a jump |
//!
//! # Order of calls
//!
//! A [`main_device::MainDevice`] is a state machine. After each call of any other method, call
//!
//! 1. [`poll_transmit`](main_device::MainDevice::poll_transmit), or
//!    [`next_frame`](main_device::MainDevice::next_frame) where the frame lies, until it returns
//!    `None`, and send each frame,
//! 2. [`poll_event`](main_device::MainDevice::poll_event) until it returns `None`,
//! 3. [`poll_timeout`](main_device::MainDevice::poll_timeout), which says when to begin again at 1
//!    if nothing else comes.
//!
//! | call | when |
//! |---|---|
//! | [`handle_frame`](main_device::MainDevice::handle_frame) | a frame came from the link, of any source |
//! | [`submit`](main_device::MainDevice::submit) | from PreOp on: an SDO to read or write; its outcome is an event |
//! | [`request_state`](main_device::MainDevice::request_state) | up: in PreOp, before the first cycle; down: at any time |
//! | [`end_cycle`](main_device::MainDevice::end_cycle) | once a period, after receiving: frames still missing are lost |
//! | [`get`](main_device::MainDevice::get), [`set`](main_device::MainDevice::set) | between the two: process data |
//! | [`begin_cycle`](main_device::MainDevice::begin_cycle) | once a period, before sending: process data is due |
//!
//! Without cycles the bus reaches PreOp, as fast as the wire allows. With the first cycle it
//! continues to its target state; from then on nothing allocates. The caller provides the time: any
//! monotonic clock, or none at all.
//!
//! ```
//! use core::time::Duration;
//! use onbeat_ethercat::al::AlState;
//! use onbeat_ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
//! use onbeat_ethercat::main_device::{Configuration, Event, MainDevice, BringUpPhase};
//! use onbeat_ethercat::time::Instant;
//! # use onbeat_ethercat::main_device::BusError;
//! # use onbeat_ethercat::sii::Identity;
//! # use simulator::application::sii::{digital_inputs, digital_outputs};
//! # use simulator::application::{DigitalInputs, DigitalOutputs, Wires};
//! # use simulator::{EscDescription, Segment, SubDevice};
//! # let wires = Wires::new();
//! # let inputs = digital_inputs(Identity::default(), "buttons", 4).image().emit();
//! # let outputs = digital_outputs(Identity::default(), "lamps", 4).image().emit();
//! # let (buttons, lamps) = (wires.clone(), Wires::new());
//! # let mut segment = Segment::new(vec![
//! #     SubDevice::new(EscDescription::default(), inputs, Box::new(DigitalInputs::new(4, buttons)?)),
//! #     SubDevice::new(EscDescription::default(), outputs, Box::new(DigitalOutputs::new(4, lamps.clone())?)),
//! # ]);
//!
//! // The wire: here simulated SubDevices that answer at once. A real one has its replies later.
//! let mut exchange = |main_device: &mut MainDevice, now: Instant| {
//!     let mut frame = [0; MAXIMUM_FRAME_LENGTH];
//!     while let Some(length) = main_device.poll_transmit(now, &mut frame) {
//!         if segment.process_frame(now, &mut frame[..length]) {
//!             main_device.handle_frame(now, &frame[..length]);
//!         }
//!     }
//!     segment.advance(now);
//!     while let Some(event) = main_device.poll_event() {
//!         if let Event::Failed(error) = event {
//!             return Err(error); // which SubDevice, which state or register, why
//!         }
//!     }
//!     Ok(())
//! };
//!
//! let mut main_device = MainDevice::new(Configuration::scan())?;
//! let mut now = Instant::from_nanos(1);
//! while main_device.phase() != BringUpPhase::PreOp {
//!     exchange(&mut main_device, now)?;
//!     now = now + Duration::from_micros(100);
//! }
//! let button = main_device.sub_devices()[0].input::<bool>(0x6000, 1)?;
//! let lamp = main_device.sub_devices()[1].output::<bool>(0x7000, 1)?;
//!
//! main_device.request_state(AlState::Op);
//! # wires.set(0, true);
//! # let mut in_op = 0;
//! # while in_op < 10 {
//! # in_op += u32::from(main_device.phase() == BringUpPhase::Op);
//! # let mut cycle = || {
//! // One cycle:
//! main_device.begin_cycle(now);
//! exchange(&mut main_device, now)?;
//! main_device.end_cycle(now);
//! main_device.set(lamp, main_device.get(button));
//! now = now + Duration::from_millis(1);
//! # Ok::<(), BusError>(())
//! # };
//! # cycle()?;
//! # }
//! # assert_eq!(lamps.levels(), 1);
//!
//! main_device.request_state(AlState::Init);
//! while main_device.phase() != BringUpPhase::Down {
//!     main_device.begin_cycle(now);
//!     exchange(&mut main_device, now)?;
//!     main_device.end_cycle(now);
//!     now = now + Duration::from_millis(1);
//! }
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! The same as a program, with an SDO and a servo drive:
//! [`examples/sans_io.rs`](https://github.com/onbeat-rt/onbeat/blob/main/crates/ethercat/examples/sans_io.rs).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod al;
pub mod al_status_code;
pub mod cia402;
pub mod link;
pub mod main_device;
pub mod pdo;
pub mod redundancy;
pub mod register;
pub mod sdo;
pub mod sdo_abort;
pub mod sii;
mod table;
pub mod wire;

#[doc(hidden)]
pub use types::debug_is_sentence;
pub use types::time;
