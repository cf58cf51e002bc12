//! EtherCAT on Linux: a [`Bus`] to scan, read, write and run, and the links it runs on.
//!
//! A button lights a lamp, a thousand times a second:
//!
//! ```no_run
//! use std::time::Duration;
//! use onbeat_ethercat_linux::{Bus, Configuration};
//!
//! let mut bus = Bus::open("enp3s0")?;
//! bus.bring_up(&Configuration::scan())?;
//! let vendor: u32 = bus.subdevice(3).sdo_read(0x1018, 1)?; // as in examples/io-station.toml
//! let lamp = bus.subdevice(1).output::<bool>(0x7000, 1)?;
//! let button = bus.subdevice(2).input::<bool>(0x6000, 1)?;
//! bus.run(Duration::from_millis(1), |io| io.set(lamp, io.get(button)))?;
//! # Ok::<(), onbeat_ethercat_linux::Error>(())
//! ```
//!
//! [`Bus::open`] needs the capability CAP_NET_RAW and an interface that is up. [`Bus::simulated`]
//! needs neither, but SubDevices such as the ones of the crate `onbeat-simulator`. [`Bus::on`]
//! takes any [`Link`](link::Link). Objects are resolved and checked once, before the cycle: a wrong
//! index, direction or type is an [`Error`] that names the existing ones. A run ends by
//! [`Io::stop`] or a [`StopHandle`], or with an error, such as a SubDevice out of Op for a second.
//! In every case the outputs are set to their safe values and the bus goes to Init. The programs in
//! `examples/` scan a bus, read and write objects, and move a servo drive.
//!
//! The crate installs no signal handler, prints nothing, and has no global state: buses on several
//! interfaces run in parallel, and one bus can run repeatedly.
//!
//! | module | part |
//! |---|---|
//! | [`bus`] | the bus, its SubDevices, its cycle |
//! | [`link`] | the wire, the simulated wire, capture and faults |
//! | [`bring_up`] | a MainDevice on its link before the cycle, and without one |
//! | [`cyclic`] | the frames of one cycle, out and back |
//! | [`serve`] | a simulated segment on a real interface |
//!
//! The protocol itself is [`ethercat`]; clocks, the pacer and thread scheduling are [`rt`].
#![deny(unsafe_code)]

pub mod bring_up;
pub mod bus;
pub mod cyclic;
pub mod link;
pub mod serve;
mod sys;

pub use bus::{Bus, Error, Io, RunFinding, RunReport, SdoError, StopHandle, SubDeviceOnBus};
pub use ethercat::main_device::{Configuration, Event, Input, MailboxRequest, Output};
pub use ethercat::pdo::ProcessValue;
pub use ethercat::sdo::SdoValue;
pub use {ethercat, rt};
