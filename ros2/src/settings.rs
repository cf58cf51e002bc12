//! Parameters: they can be read and changed while the program runs, by `ros2 param`, or at the
//! start by `-p NAME:=VALUE` and by files ([`crate::ros_args::parameters`]).

use crate::messages::parameter::{
    FloatingPointRange, ListParametersResult, Parameter, ParameterDescriptor, ParameterValue, kind,
};

/// Values of all parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Time for which a velocity is valid, s.
    pub(crate) cmd_vel_timeout: f64,
    /// Time for which joint commands are valid, s.
    pub(crate) joint_commands_timeout: f64,
    /// Time for which values of outputs are valid, s.
    pub(crate) gpio_commands_timeout: f64,
    /// Rate of /joint_states, Hz.
    pub(crate) joint_states_rate: f64,
    /// Rate of /odom and /tf, Hz.
    pub(crate) odom_rate: f64,
    /// Rate of /diagnostics, Hz.
    pub(crate) diagnostics_rate: f64,
    /// Rate of CONTROLLER/controller_state, Hz.
    pub(crate) controller_state_rate: f64,
    /// Rate of the feedback of a goal, Hz.
    pub(crate) feedback_rate: f64,
    /// Rate of ~/gpio_states and of the sensors made of signals, Hz.
    pub(crate) signals_rate: f64,
    /// True if the velocity that the wheels are sent is published on CONTROLLER/cmd_vel_out.
    pub(crate) publish_limited_velocity: bool,
    /// True if the node becomes active without a request.
    pub(crate) autostart: bool,
    /// True if the pose of the base is published on /tf, too.
    pub(crate) publish_tf: bool,
    /// Odometry frame; empty for that of the robot file.
    pub(crate) odom_frame: String,
    /// Base frame; empty for that of the robot file.
    pub(crate) base_frame: String,
    /// Frame of /imu.
    pub(crate) imu_frame: String,
    /// Frame of /scan.
    pub(crate) scan_frame: String,
    /// Always false: the cycle uses the machine's time.
    pub(crate) use_sim_time: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cmd_vel_timeout: 0.5,
            joint_commands_timeout: 0.5,
            gpio_commands_timeout: 0.5,
            joint_states_rate: 100.0,
            odom_rate: 50.0,
            diagnostics_rate: 1.0,
            controller_state_rate: 50.0,
            feedback_rate: 20.0,
            signals_rate: 50.0,
            publish_limited_velocity: false,
            autostart: true,
            publish_tf: true,
            odom_frame: String::new(),
            base_frame: String::new(),
            imu_frame: "imu_link".into(),
            scan_frame: "laser".into(),
            use_sim_time: false,
        }
    }
}

/// One parameter.
struct Entry {
    name: &'static str,
    about: &'static str,
    field: Field,
}

/// Access to the value, and its range.
enum Field {
    Number { get: fn(&mut Settings) -> &mut f64, low: f64, high: f64 },
    Flag { get: fn(&mut Settings) -> &mut bool, fixed: bool },
    Text { get: fn(&mut Settings) -> &mut String },
}

const fn number(
    name: &'static str,
    about: &'static str,
    low: f64,
    high: f64,
    get: fn(&mut Settings) -> &mut f64,
) -> Entry {
    Entry { name, about, field: Field::Number { get, low, high } }
}

const fn text(name: &'static str, about: &'static str, get: fn(&mut Settings) -> &mut String) -> Entry {
    Entry { name, about, field: Field::Text { get } }
}

/// Parameters in the order of their names, as tools list them.
const ENTRIES: &[Entry] = &[
    Entry {
        name: "autostart",
        about: "At the start of the program: the node becomes active without a request.",
        field: Field::Flag { get: |s| &mut s.autostart, fixed: false },
    },
    text("base_frame", "Frame that moves; empty for the robot file's.", |s| &mut s.base_frame),
    number("cmd_vel_timeout", "How long a velocity holds, s.", 0.02, 5.0, |s| &mut s.cmd_vel_timeout),
    number("controller_state_rate", "Of CONTROLLER/controller_state, Hz.", 0.1, 1000.0, |s| {
        &mut s.controller_state_rate
    }),
    number("diagnostics_rate", "Of /diagnostics, Hz.", 0.1, 10.0, |s| &mut s.diagnostics_rate),
    number("feedback_rate", "Of the feedback of a goal, Hz.", 0.1, 200.0, |s| &mut s.feedback_rate),
    number("gpio_commands_timeout", "How long values of outputs hold, s.", 0.02, 5.0, |s| {
        &mut s.gpio_commands_timeout
    }),
    text("imu_frame", "Frame of /imu.", |s| &mut s.imu_frame),
    number("joint_commands_timeout", "How long joint commands hold, s.", 0.02, 5.0, |s| {
        &mut s.joint_commands_timeout
    }),
    number("joint_states_rate", "Of /joint_states, Hz.", 0.1, 1000.0, |s| &mut s.joint_states_rate),
    text("odom_frame", "Frame that odometry counts in; empty for the robot file's.", |s| &mut s.odom_frame),
    number("odom_rate", "Of /odom and /tf, Hz.", 0.1, 1000.0, |s| &mut s.odom_rate),
    Entry {
        name: "publish_limited_velocity",
        about: "The velocity that the wheels are sent goes to CONTROLLER/cmd_vel_out.",
        field: Field::Flag { get: |s| &mut s.publish_limited_velocity, fixed: false },
    },
    Entry {
        name: "publish_tf",
        about: "The place of the base goes to /tf, too.",
        field: Field::Flag { get: |s| &mut s.publish_tf, fixed: false },
    },
    text("scan_frame", "Frame of /scan.", |s| &mut s.scan_frame),
    number("signals_rate", "Of signals and the sensors made of them, Hz.", 0.1, 1000.0, |s| {
        &mut s.signals_rate
    }),
    Entry {
        name: "use_sim_time",
        about: "Always false: a cycle's time is that of the machine.",
        field: Field::Flag { get: |s| &mut s.use_sim_time, fixed: true },
    },
];

impl Settings {
    /// Value of a parameter; "not set" for an unknown name.
    pub(crate) fn get(&self, name: &str) -> ParameterValue {
        // `get` of an entry returns a mutable reference; reading needs a copy.
        let mut copy = self.clone();
        let Some(entry) = entry(name) else {
            return ParameterValue::default();
        };
        let mut value = ParameterValue { kind: entry.kind(), ..ParameterValue::default() };
        match entry.field {
            Field::Number { get, .. } => value.double_value = *get(&mut copy),
            Field::Flag { get, .. } => value.bool_value = *get(&mut copy),
            Field::Text { get } => value.string_value.clone_from(get(&mut copy)),
        }
        value
    }

    /// Changes one parameter.
    ///
    /// # Errors
    /// Reason against the new value.
    pub(crate) fn set(&mut self, parameter: &Parameter) -> Result<(), String> {
        let Parameter { name, value } = parameter;
        let entry = entry(name).ok_or_else(|| unknown(name))?;
        match (&entry.field, value.kind) {
            (Field::Number { get, low, high }, kind::DOUBLE | kind::INTEGER) => {
                let number = if value.kind == kind::DOUBLE {
                    value.double_value
                } else {
                    value.integer_value as f64
                };
                if !(*low..=*high).contains(&number) {
                    return Err(format!("`{name}` is {number}; expected {low} to {high}"));
                }
                *get(self) = number;
            }
            (Field::Flag { get, fixed }, kind::BOOL) => {
                if *fixed && *get(self) != value.bool_value {
                    return Err(format!("`{name}` cannot be changed. {}", entry.about));
                }
                *get(self) = value.bool_value;
            }
            (Field::Text { get }, kind::STRING) => {
                if !is_frame(&value.string_value) {
                    return Err(format!(
                        "`{name}` is `{}`; expected the name of a frame",
                        value.string_value
                    ));
                }
                get(self).clone_from(&value.string_value);
            }
            (_, found) => {
                let (expected, found) = (kind::name(entry.kind()), kind::name(found));
                return Err(format!("`{name}`: expected a value of type {expected}, found {found}"));
            }
        }
        Ok(())
    }
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
    format!("there is no parameter `{name}`; there are {}", known.join(", "))
}

/// True if there is such a parameter.
pub(crate) fn is_known(name: &str) -> bool {
    entry(name).is_some()
}

/// Description of a parameter; only the name for an unknown one.
pub(crate) fn describe(name: &str) -> ParameterDescriptor {
    let mut descriptor = ParameterDescriptor { name: name.to_owned(), ..ParameterDescriptor::default() };
    if let Some(entry) = entry(name) {
        descriptor.kind = entry.kind();
        entry.about.clone_into(&mut descriptor.description);
        match entry.field {
            Field::Number { low, high, .. } => {
                let range = FloatingPointRange { from_value: low, to_value: high, step: 0.0 };
                descriptor.floating_point_range.push(range);
            }
            Field::Flag { fixed, .. } => descriptor.read_only = fixed,
            Field::Text { .. } => {}
        }
    }
    descriptor
}

/// Names that equal one of `prefixes`; all if there are none. No name here has parts, so the depth
/// in the request hides none.
pub(crate) fn list(prefixes: &[String]) -> ListParametersResult {
    let wanted = |name: &str| prefixes.is_empty() || prefixes.iter().any(|prefix| prefix == name);
    let names = ENTRIES.iter().filter(|entry| wanted(entry.name)).map(|entry| entry.name.to_owned());
    ListParametersResult { names: names.collect(), prefixes: Vec::new() }
}

impl Entry {
    fn kind(&self) -> u8 {
        match self.field {
            Field::Number { .. } => kind::DOUBLE,
            Field::Flag { .. } => kind::BOOL,
            Field::Text { .. } => kind::STRING,
        }
    }
}

fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

fn is_frame(name: &str) -> bool {
    name.len() <= 256 && name.chars().all(|c| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(name: &str, double_value: f64) -> Parameter {
        let value = ParameterValue { kind: kind::DOUBLE, double_value, ..ParameterValue::default() };
        Parameter { name: name.into(), value }
    }

    #[test]
    fn every_parameter_is_listed_described_read_and_written_back() {
        let mut settings = Settings::default();
        let names = list(&[]).names;
        assert!(names.is_sorted());
        for name in names {
            let value = settings.get(&name);
            assert_ne!(value.kind, kind::NOT_SET, "{name}");
            assert_eq!(describe(&name).kind, value.kind, "{name}");
            assert!(!describe(&name).description.is_empty(), "{name}");
            assert_eq!(settings.set(&Parameter { name: name.clone(), value }), Ok(()), "{name}");
        }
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_and_changes_nothing() {
        let mut settings = Settings::default();
        for (name, number) in [
            ("cmd_vel_timeout", 60.0),
            ("cmd_vel_timeout", f64::NAN),
            ("odom_rate", 0.0),
            ("no", 1.0),
            ("publish_tf", 1.0),
        ] {
            assert!(settings.set(&double(name, number)).is_err(), "{name} {number}");
        }
        assert_eq!(settings, Settings::default());
    }
}
