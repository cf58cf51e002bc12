//! Messages between each device's two tasks, and the work of the real-time one.
//!
//! | module | real-time task |
//! |---|---|
//! | [`sonar`] | requests a ping a period, converts echoes into distances, filters them |
//! | [`range_finder`] | converts scans into metres, finds the nearest obstacle ahead |
//! | [`led_strip`] | paints a pattern |
//! | [`imu`] | requests a sample a period, tracks the orientation |
//! | [`actuators`] | brings the wheels to the requested velocities, within their acceleration |

pub mod actuators;
pub mod imu;
pub mod led_strip;
pub mod range_finder;
pub mod sonar;
