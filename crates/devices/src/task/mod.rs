//! What each device's two tasks say to each other, and what the real-time one does.
//!
//! | module | real-time task |
//! |---|---|
//! | [`sonar`] | asks for a ping a period, turns echoes into distances, filters them |
//! | [`range_finder`] | turns scans into metres, finds the nearest obstacle ahead |
//! | [`led_strip`] | paints a pattern |
//! | [`imu`] | asks for a sample a period, follows the orientation |
//! | [`actuators`] | brings the wheels to the velocities asked for, within their acceleration |

pub mod actuators;
pub mod imu;
pub mod led_strip;
pub mod range_finder;
pub mod sonar;
