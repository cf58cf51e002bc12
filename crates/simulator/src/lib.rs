//! Simulated SubDevices, and the cables between them.
//!
//! A segment of two terminals answers a frame. `wires` are the inputs of the first terminal:
//!
//! ```
//! use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _}; // the crate onbeat-ethercat
//! use ethercat::sii::Identity;
//! use ethercat::time::Instant;
//! use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
//! use onbeat_simulator::application::sii::{digital_inputs, digital_outputs};
//! use onbeat_simulator::application::{DigitalInputs, DigitalOutputs, Wires};
//! use onbeat_simulator::{EscDescription, Segment, SubDevice};
//!
//! let (wires, lamps) = (Wires::new(), Wires::new());
//! let identity = |product_code| Identity { vendor_id: 0x4F4E, product_code, ..Identity::default() };
//! let buttons = SubDevice::new(
//!     EscDescription::default(),
//!     digital_inputs(identity(1), "buttons", 8).image().emit(),
//!     Box::new(DigitalInputs::new(8, wires.clone())?),
//! );
//! let lamps = SubDevice::new(
//!     EscDescription::default(),
//!     digital_outputs(identity(2), "lamps", 8).image().emit(),
//!     Box::new(DigitalOutputs::new(8, lamps)?),
//! );
//! let mut segment = Segment::new(vec![buttons, lamps]);
//! wires.set(0, true);
//!
//! // A broadcast read of register 0x0130, the AL status. Each SubDevice adds 1 to the counter.
//! let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
//! let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
//! let header = DatagramHeader::new(Command::Brd, 0, Address::AutoIncrement { position: 0, register: 0x0130 }, 2);
//! builder.push_data(header, &[0; 2]).expect("room for a datagram");
//! let length = builder.finish();
//! assert!(segment.process_frame(Instant::from_nanos(1), &mut buffer[..length]));
//! let frame = Frame::parse(&buffer[..length])?;
//! let datagram = frame.datagrams().next().expect("one datagram");
//! assert_eq!((datagram.data, datagram.working_counter), (&[1, 0][..], 2)); // both in Init
//!
//! segment.power_off(1);
//! assert!(!segment.is_powered(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A MainDevice runs such a segment with `Bus::simulated` of the crate `onbeat-ethercat-linux`.
//!
//! | module | contents |
//! |---|---|
//! | [`application`] | the application behind an ESC: the trait and its implementations |
//! | [`coe`] | CANopen over EtherCAT: object dictionary, SDO, SDO information, emergencies |
//! | `fault` | faults of a simulated bus as text (feature `faults`) |
//! | [`sub_device`] | one SubDevice: ESC, EtherCAT state machine, mailbox, application |
//! | [`segment`] | SubDevices joined by cables, which answer frames |
#![forbid(unsafe_code)]

pub mod application;
pub mod coe;
mod esc;
#[cfg(feature = "faults")]
pub mod fault;
pub mod segment;
pub mod sub_device;

pub use application::Application;
pub use esc::{EscDescription, Oscillator};
pub use segment::Segment;
pub use sub_device::{SiiStore, SubDevice};
pub use types::{EscKind, TerminalModel};
