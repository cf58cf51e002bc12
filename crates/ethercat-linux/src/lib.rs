//! EtherCAT on Linux: links to the wire, and what serves a simulated segment on one.
//!
//! | module | part |
//! |---|---|
//! | [`link`] | the wire, the simulated wire, capture and faults |
//! | [`bring_up`] | a MainDevice on its link before the cycle, and without one |
//! | [`serve`] | a simulated segment on a real interface |
#![deny(unsafe_code)]

pub mod bring_up;
pub mod link;
pub mod serve;
mod sys;
