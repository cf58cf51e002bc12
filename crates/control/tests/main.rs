//! Cycles of simulated drives, in virtual time. Tests that count allocations or run in real time
//! are separate programs.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod absent;
mod brake_feedback;
mod brake_output;
mod braking_drives;
mod bus_requests;
mod bus_time;
mod clock_lock;
mod cycle;
mod drive_homing;
mod external;
mod fault_codes;
mod fault_matrix;
mod following_error;
mod implausible;
mod interlock;
mod jogs;
mod modes;
mod outage;
mod quick_stop;
mod ring;
mod runaway;
mod same_report;
mod several_axes;
mod signals;
mod start_requests;
mod stopped_together;
mod stopping;
mod supervision;
mod support;
mod touch_probe;
mod unreferenced;
