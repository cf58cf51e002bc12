//! Types that more than one crate of Onbeat uses, declared once.
//!
//! | module | part |
//! |---|---|
//! | [`axis`] | modes, interlocks and reactions of axes |
//! | [`bus`] | error counters, working counters, ends of cables |
//! | [`cause`] | causes of lateness and of disturbances |
//! | [`command`] | [`Twist`], [`AxisTarget`], [`ExternalCommand`], and their [`Freshness`] |
//! | [`conditions`] | [`Conditions`] that every measurement has, by their names |
//! | [`duration`] | durations as text |
//! | [`kind`] | kinds of controllers, bases, sensors, ports and peripherals |
//! | [`cycle`] | choices of a cycle |
//! | [`late`] | late cycles with their causes |
//! | `near` | suggestions for a mistyped name (feature `near`) |
//! | [`object`] | values of CoE objects as text |
//! | [`profile`] | [`RealTimeProfile`]: requests to the operating system, and their letters |
//! | [`schedule`] | [`Policy`], [`Protocol`]: rules by which tasks share a processor |
//! | [`signal`] | [`Signal`]: process data by name |
//! | [`state`] | phases of bus and axes, states of drives, requests, stop reasons; their codes |
//! | [`time`] | [`Instant`], the house clock's; [`Spread`] of a time |
//! | [`units`] | radians, metres, newton metres, seconds and their rates, as types |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod axis;
pub mod bus;
pub mod cause;
pub mod command;
pub mod conditions;
pub mod cycle;
pub mod duration;
pub mod kind;
pub mod late;
mod macros;
#[cfg(feature = "near")]
pub mod near;
pub mod number;
pub mod object;
pub mod profile;
pub mod schedule;
pub mod signal;
pub mod state;
pub mod time;
pub mod units;

pub use axis::{
    AxisMode, BrakeFeedback, CyclicMode, DigitalOutput, Encoder, EncoderSide, FeedbackInput, Interlock,
    InterlockKind, OnStale,
};
pub use bus::{
    CableEnd, ErrorCounters, PortErrorCounters, RingStatus, WorkingCounter, WorkingCounterChange,
};
pub use command::{AxisTarget, ExternalCommand, Freshness, Takes, ToolPose, Twist};
pub use conditions::Conditions;
pub use cycle::{AfterOutage, CycleClock, FrameOrder, LockState, OverrunPolicy};
pub use kind::{
    ApplicationKind, BaseKind, ControllerKind, DacChip, EscKind, ImuOutput, ImuUnit, LedChip,
    PeripheralKind, PortKind, SensorKind, TerminalModel,
};
pub use profile::{Profile, ProfileError, RealTimeProfile, Residency, Scheduling};
pub use schedule::{Policy, Protocol};
pub use signal::{Signal, Value, ValueKind, ValueType};
pub use time::{Instant, Spread};
