//! Our codec against recordings of real devices, and against tshark's reading of them.
//!
//! The recordings are outside the workspace, in `../shared/real`; without them, or without tshark,
//! the tests print that and pass.
#![allow(clippy::unwrap_used, reason = "a recording that is not as expected fails the test")]

mod devices;
mod mailbox;
mod recording;
