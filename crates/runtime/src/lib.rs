//! The real-time cycle on Linux: clock, scheduling, links.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cycle`] | the cycle itself: from release to release, phase by phase |
//! | [`controller`] | what moves the axes, in SI units |
//! | [`axis`] | axes bound to the process image |
//! | [`seam`] | what other processes ask of the cycle, and see of it |
//! | [`observer`] | what a running cycle tells the rest of the program |
//! | [`beat_number`] | the number of the beat on digital outputs |
//! | [`status`] | how it stands, read from any thread |
//! | [`bring_up`] | a MainDevice on its link before the cycle, and without one |
//! | [`task`] | real-time tasks beside the cycle, each with its own period |
//! | [`disturbance`] | what keeps a real-time thread from doing nothing but its work and its wait |
//! | [`pacer`] | absolute releases on a fixed grid |
//! | [`link`] | the wire, the simulated wire, capture and faults |
//! | [`output`] | outputs that may hang, each on a thread of its own |
//! | [`serve`] | a simulated segment on a real interface |
//! | [`interlock`] | digital inputs that stop axes, or permit them to be enabled |
//! | [`stop`] | a request to stop a cycle |
//! | [`verdict`] | what is wrong about a run that is over, and its exit code |
//! | [`delayed_lock`] | data shared with the cycle by a task that is not real-time |
//! | [`always_on`] | what every cycle wants and nobody has to ask for |
//! | [`profile`] | what a real-time thread asks of the system, and what it was granted |
//! | [`probe`] | wake-up latency of this machine, with nothing to do |
//! | [`clock`] | the monotonic clock, and a virtual one |
#![deny(unsafe_code)]

pub mod always_on;
pub mod axis;
pub mod beat_number;
pub mod bring_up;
mod cell;
pub mod clock;
pub mod controller;
pub mod cycle;
pub mod delayed_lock;
pub mod disturbance;
mod field;
pub mod interlock;
pub mod link;
pub mod observer;
pub mod output;
pub mod pacer;
pub mod probe;
pub mod profile;
pub mod seam;
pub mod serve;
pub mod status;
pub mod stop;
mod sys;
pub mod task;
pub mod verdict;
mod watch;
