//! DC motors behind a digital-to-analogue converter, with absolute encoders: words on the wire, and
//! the velocity of a wheel; without I/O or clock.
//!
//! | module | contents |
//! |---|---|
//! | [`mcp49x2`] | words of Microchip's MCP4912 and MCP4922 |
//! | [`as5045`] | words of ams' AS5045 |
//! | [`wheel`] | a wheel: position, velocity, output, and conditions that stop it |

pub mod as5045;
pub mod mcp49x2;
pub mod wheel;

pub use wheel::{Fault, Wheel, WheelSettings};
