//! Events of a running cycle, one line each, for attached clients.

use ethercat::time::Instant;
use ipc::bus::Event;

use super::moment::Moment;

/// Time, cycle, and the event in words.
pub(crate) fn line(event: &Event) -> String {
    format!("{}: {}", Moment::of(Instant::from_nanos(event.at_ns), event.cycle), event.sentence)
}
