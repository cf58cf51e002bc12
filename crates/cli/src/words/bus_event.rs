//! Events of a running cycle, a line each, for those who attach to it.

use ethercat::time::Instant;
use ipc::bus::Event;
use ipc::description::Description;

use super::moment::Moment;

/// Time, cycle, and the event, with the names of the robot's parts.
pub(crate) fn line(event: &Event, robot: &Description) -> String {
    let moment = Moment::of(Instant::from_nanos(event.at_ns), event.cycle);
    format!("{moment}: {}", event.what.sentence(robot))
}
