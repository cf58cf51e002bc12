//! SCIP 2.0, the protocol of Hokuyo's laser range finders: bytes in, replies out, without I/O or
//! clock.
//!
//! | module | contents |
//! |---|---|
//! | [`command`] | commands of a host: VV, PP, II, BM, QT, RS, TM, GD/GS, MD/MS, SCIP2.0 |
//! | [`reply`] | replies of a sensor, checked |
//! | [`stream`] | replies from a stream of bytes, resynchronising after garbage |
//! | [`encoding`] | numbers as two, three or four characters, and the sum of a line |
//! | [`session`] | from a sensor in unknown state to a stream of scans |
//! | [`sensor_clock`] | the sensor's time stamps on the host's clock |
//!
//! Source: Hokuyo, *Communication Protocol Specification for SCIP2.0 Standard*, C-42-03320B;
//! sections are cited as (n). Not supported: SS, CR, HS and DB (bit rate, motor speed, sensitivity,
//! malfunction simulation), multi-echo extensions of later models (ND, HD, ME), and SCIP 1.1 except
//! for the command that leaves it.

pub mod command;
pub mod encoding;
pub mod reply;
pub mod sensor_clock;
pub mod session;
pub mod stream;

pub use command::{Command, Echo, Encoding, Sector, Symbol, TimeControl};
pub use reply::{Content, Parameters, Reply, ReplyError, Status, Version};
pub use session::{Event, Scanned, Session, SessionError};
pub use stream::Replies;
