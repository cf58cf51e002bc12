//! Process data in a recording of a cycle: columns after the timing columns, with a colon in their
//! names.
//!
//! | column | value |
//! |---|---|
//! | `signals:forced` | signals of the recording that are forced from outside |
//! | `signal:NAME` | value of a signal, in its unit; 0 or 1 of a bit |
//! | `forced:NAME` | 1 where this signal is forced |
//! | `axis:NAME.position` and others of [`OF_AXIS`] | an axis, in SI units |
//! | `axis:NAME.drive_state` and others of [`STATE_OF_AXIS`] | state of an axis, whole numbers |
//!
//! The values belong to the cycle of their row: inputs as its controller had them, outputs and
//! targets as it left them. A field is empty if there is no value of this cycle: an input, or the
//! feedback of an axis, that did not arrive with it. In a row that was dropped all of them are
//! empty, `signals:forced` and `forced:NAME` too.

/// Column that is empty only in rows with dropped process data.
pub const FORCED: &str = "signals:forced";

/// Columns of an axis, with their units: feedback, then targets.
pub const OF_AXIS: [(&str, &str); 6] = [
    ("position", "rad"),
    ("velocity", "rad/s"),
    ("torque", "N m"),
    ("target_position", "rad"),
    ("target_velocity", "rad/s"),
    ("target_torque", "N m"),
];

/// Further columns of an axis, without a unit: the CiA 402 state of its drive (1 Not ready to
/// switch on to 8 Fault, as [`types::state::DriveState`]; empty before the first statusword), the
/// reason of its stop ([`types::state::StopReason`], 0 of none), error code 0x603F of a drive in
/// fault, 0 for none known.
pub const STATE_OF_AXIS: [&str; 3] = ["drive_state", "stop", "error_code"];

/// Column of a signal.
#[must_use]
pub fn of_signal(name: &str) -> String {
    format!("{SIGNAL}{name}")
}

/// Column for the force flag of a signal: 1 if the signal is forced, else 0.
#[must_use]
pub fn of_force(name: &str) -> String {
    format!("{FORCE}{name}")
}

/// Columns of an axis, in their order.
pub fn of_axis(name: &str) -> impl Iterator<Item = String> + '_ {
    let quantities = OF_AXIS.iter().map(|(quantity, _)| *quantity).chain(STATE_OF_AXIS);
    quantities.map(move |quantity| format!("{AXIS}{name}.{quantity}"))
}

/// Content of a column of process data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column<'a> {
    /// Value of the signal of this name.
    Signal(&'a str),
    /// 1 where the signal of this name is forced.
    Force(&'a str),
    /// Quantity of the axis of this name, and its unit; empty for a state.
    Axis(&'a str, &'a str, &'static str),
    /// [`FORCED`], or an unknown column.
    Other,
}

impl<'a> Column<'a> {
    /// Content of the column of this name; `None` if it is no process data.
    #[must_use]
    pub fn of(name: &'a str) -> Option<Self> {
        if !is_process_data(name) {
            return None;
        }
        let axis = name.strip_prefix(AXIS).and_then(|rest| rest.rsplit_once('.'));
        let unit = |quantity: &str| {
            let state = STATE_OF_AXIS.contains(&quantity).then_some("");
            OF_AXIS.iter().find(|(known, _)| *known == quantity).map(|(_, unit)| *unit).or(state)
        };
        Some(match (name.strip_prefix(SIGNAL), name.strip_prefix(FORCE), axis) {
            (Some(signal), ..) => Self::Signal(signal),
            (_, Some(signal), _) => Self::Force(signal),
            (.., Some((axis, quantity))) => {
                unit(quantity).map_or(Self::Other, |unit| Self::Axis(axis, quantity, unit))
            }
            (None, None, None) => Self::Other,
        })
    }
}

/// True of a column of process data.
pub(crate) fn is_process_data(column: &str) -> bool {
    column.contains(':')
}

const SIGNAL: &str = "signal:";
const FORCE: &str = "forced:";
const AXIS: &str = "axis:";

#[cfg(test)]
mod tests {
    use super::*;

    // feature(measure): recordings with signals and axes, cycle by cycle
    #[test]
    fn columns_say_what_they_hold() {
        let axis: Vec<String> = of_axis("left.hip").collect();
        assert_eq!(Column::of(&axis[2]), Some(Column::Axis("left.hip", "torque", "N m")));
        assert_eq!(Column::of(&axis[8]), Some(Column::Axis("left.hip", "error_code", "")));
        assert_eq!(Column::of(&of_signal("a: b")), Some(Column::Signal("a: b")));
        assert_eq!(Column::of(&of_force("a: b")), Some(Column::Force("a: b")));
        assert_eq!(Column::of("axis:x.colour"), Some(Column::Other));
        assert_eq!(Column::of(FORCED), Some(Column::Other));
        assert_eq!(Column::of("release_ns"), None);
    }
}
