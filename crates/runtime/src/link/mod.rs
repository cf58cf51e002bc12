//! Links: the wire, the simulated wire, and what can be wrapped around either.

mod capture;
mod direct;
mod faulty;
mod lock;
pub(crate) mod packet;
mod pcapng;
mod simulated;

pub use capture::{Capture, CaptureError, CaptureSummary};
pub use direct::DirectLink;
pub use faulty::{FaultCounts, FaultRates, Faults, Faulty};
pub use lock::Owner;
pub use packet::{OpenError, PacketLink};
pub use simulated::{SIMULATED_SYSTEM_CALLS, SegmentControl, SimulatedLink};
