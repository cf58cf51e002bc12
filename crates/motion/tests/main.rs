//! Set-points and kinematics.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod arm;
mod bases;
mod hostile;
mod lines;
mod online;
