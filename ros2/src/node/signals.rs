//! Signals as ros2_control's GPIO controllers publish them, and signals that are measurements of a
//! sensor.

use ipc::description::{Description, SensorDescription};
use ipc::state::State;
use types::SensorKind;
use types::signal::Direction;

use super::{Endpoints, Moment, Timer};
use crate::clock::WallClock;
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::basic::{Header, Time};
use crate::messages::geometry::{Quaternion, Vector3, Wrench, WrenchStamped};
use crate::messages::sensor::{DynamicInterfaceGroupValues, Imu, InterfaceValue, Temperature};

/// Publishers of signals.
pub(crate) struct Signals {
    groups: Vec<Group>,
    writer: Option<Writer>,
    sensors: Vec<(SensorDescription, Writer)>,
    timer: Timer,
    /// Cycle that was published last.
    cycle: Option<u64>,
    /// Signals that were fresh since the robot was attached to.
    seen: Vec<bool>,
}

/// Named signals of a SubDevice.
#[derive(Debug, PartialEq)]
struct Group {
    name: String,
    signals: Vec<usize>,
    /// Inputs that have an interface of their own for their freshness, and its name.
    fresh: Vec<(usize, String)>,
}

impl Signals {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let groups = groups(robot);
        let there = !groups.is_empty();
        let kind = "control_msgs/DynamicInterfaceGroupValues";
        let writer =
            there.then(|| endpoints.publish("~/gpio_states", kind, Quality::Reliable)).transpose()?;
        let mut sensors = Vec::new();
        for sensor in robot.sensors.iter().filter(|sensor| is_whole(sensor)) {
            let (topic, message) = topic(sensor.kind);
            let topic = format!("{}/{topic}", sensor.name);
            let writer = endpoints.publish(&topic, message, Quality::Reliable)?;
            sensors.push((sensor.clone(), writer));
        }
        let seen = vec![false; robot.signals.len()];
        Ok(Self { groups, writer, sensors, timer: Timer::default(), cycle: None, seen })
    }

    /// Publishes the due messages; of sensors only if `broadcasts` returns true for the name.
    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>, now_ns: u64, broadcasts: impl Fn(&str) -> bool) {
        if self.writer.is_none() && self.sensors.is_empty() {
            return;
        }
        let Some(robot) = moment.robot.as_deref_mut() else { return };
        if !self.timer.due(now_ns, moment.settings.signals_rate) || !robot.refresh() {
            return;
        }
        let (state, description) = (robot.state(), robot.description());
        if self.cycle == Some(state.cycle) {
            return;
        }
        self.cycle = Some(state.cycle);
        for (seen, signal) in self.seen.iter_mut().zip(&state.signals) {
            *seen |= signal.fresh;
        }
        let stamp = WallClock::now().stamp(state.release_ns);
        if let Some(writer) = &self.writer {
            writer.send(&group_values(&self.groups, state, description, &self.seen, stamp));
        }
        for (sensor, writer) in self.sensors.iter().filter(|(sensor, _)| broadcasts(&sensor.name)) {
            if let Some(values) = measured(sensor, state, description) {
                let header = Header { stamp, frame_id: sensor.frame.clone() };
                publish(sensor.kind, writer, header, &values);
            }
        }
    }

    /// Time of the next message.
    pub(crate) fn next(&self) -> u64 {
        let there = self.writer.is_some() || !self.sensors.is_empty();
        if there { self.timer.next() } else { u64::MAX }
    }
}

/// Named signals by their SubDevices, both in the order of the description.
fn groups(robot: &Description) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (place, signal) in robot.signals.iter().enumerate().filter(|(_, signal)| signal.named) {
        match groups.iter_mut().find(|group| group.name == signal.sub_device) {
            Some(group) => group.signals.push(place),
            None => groups.push(Group {
                name: signal.sub_device.clone(),
                signals: vec![place],
                fresh: Vec::new(),
            }),
        }
    }
    for group in &mut groups {
        let inputs = group.signals.iter().map(|&place| (place, &robot.signals[place]));
        let inputs = inputs.filter(|(_, it)| it.direction == Direction::Input);
        let named = inputs.map(|(place, it)| (place, format!("{}{FRESH}", it.name)));
        // A signal of that name comes first.
        group.fresh = named.filter(|(_, name)| robot.signals.iter().all(|it| it.name != *name)).collect();
    }
    groups
}

/// After the name of an input: the interface with 1 if the input was received in the cycle, else 0.
const FRESH: &str = ".fresh";

/// Values of the groups, NaN for an input that has not come yet, then the freshness of their
/// inputs.
fn group_values(
    groups: &[Group],
    state: &State,
    description: &Description,
    seen: &[bool],
    stamp: Time,
) -> DynamicInterfaceGroupValues {
    let value = |place: usize| {
        let described = description.signals.get(place)?;
        let known = described.direction == Direction::Output || seen.get(place) == Some(&true);
        known.then(|| number(state, description, place)).flatten()
    };
    let name = |&place: &usize| Some(description.signals.get(place)?.name.clone());
    let fresh = |place: usize| f64::from(state.signals.get(place).is_some_and(|signal| signal.fresh));
    let group = |group: &Group| {
        let names = group.signals.iter().filter_map(name);
        let values = group.signals.iter().map(|&place| value(place).unwrap_or(f64::NAN));
        InterfaceValue {
            interface_names: names.chain(group.fresh.iter().map(|(_, name)| name.clone())).collect(),
            values: values.chain(group.fresh.iter().map(|&(place, _)| fresh(place))).collect(),
        }
    };
    DynamicInterfaceGroupValues {
        header: Header { stamp, frame_id: String::new() },
        interface_groups: groups.iter().map(|group| group.name.clone()).collect(),
        interface_values: groups.iter().map(group).collect(),
    }
}

fn number(state: &State, description: &Description, place: usize) -> Option<f64> {
    let (signal, described) = (state.signals.get(place)?, description.signals.get(place)?);
    Some(signal.value(described.kind).number())
}

/// Values of a sensor, if all of them came in with this cycle.
fn measured(sensor: &SensorDescription, state: &State, description: &Description) -> Option<Vec<f64>> {
    let fresh = |&place: &usize| state.signals.get(place).is_some_and(|signal| signal.fresh);
    let all = sensor.signals.iter().all(fresh);
    all.then(|| sensor.signals.iter().map(|&place| number(state, description, place)).collect()).flatten()
}

/// True if the sensor has the signals of its kind.
fn is_whole(sensor: &SensorDescription) -> bool {
    match sensor.kind {
        SensorKind::ForceTorque => sensor.signals.len() == 6,
        SensorKind::Imu => matches!(sensor.signals.len(), 6 | 10),
        SensorKind::Temperature => sensor.signals.len() == 1,
    }
}

/// Topic below the sensor's name, and type of its message.
fn topic(kind: SensorKind) -> (&'static str, &'static str) {
    match kind {
        SensorKind::ForceTorque => ("wrench", "geometry_msgs/WrenchStamped"),
        SensorKind::Imu => ("imu", "sensor_msgs/Imu"),
        SensorKind::Temperature => ("temperature", "sensor_msgs/Temperature"),
    }
}

fn publish(kind: SensorKind, writer: &Writer, header: Header, values: &[f64]) {
    match kind {
        SensorKind::ForceTorque => writer.send(&wrench(header, values)),
        SensorKind::Imu => writer.send(&imu(header, values)),
        SensorKind::Temperature => {
            let temperature = values.first().copied().unwrap_or(f64::NAN);
            writer.send(&Temperature { header, temperature, variance: 0.0 })
        }
    };
}

/// Three numbers from this place on.
fn vector(values: &[f64], from: usize) -> Vector3 {
    let at = |place: usize| values.get(from + place).copied().unwrap_or(f64::NAN);
    Vector3 { x: at(0), y: at(1), z: at(2) }
}

fn wrench(header: Header, values: &[f64]) -> WrenchStamped {
    WrenchStamped { header, wrench: Wrench { force: vector(values, 0), torque: vector(values, 3) } }
}

fn imu(header: Header, values: &[f64]) -> Imu {
    let mut imu = Imu {
        header,
        linear_acceleration: vector(values, 0),
        angular_velocity: vector(values, 3),
        ..Imu::default()
    };
    match values.get(6..10) {
        Some(&[x, y, z, w]) => imu.orientation = Quaternion { x, y, z, w },
        _ => imu.orientation_covariance[0] = NOT_MEASURED,
    }
    imu
}

/// First covariance of a value that is not measured.
const NOT_MEASURED: f64 = -1.0;

#[cfg(test)]
mod tests {
    use ipc::description::SignalDescription;
    use ipc::state::{Signal, ValueKind};

    use super::*;

    fn robot() -> Description {
        let signal = |name: &str, sub_device: &str, kind, direction, named| SignalDescription {
            name: name.to_owned(),
            sub_device: sub_device.to_owned(),
            kind,
            direction,
            named,
            ..SignalDescription::default()
        };
        Description {
            signals: vec![
                signal("lamp", "lamps", ValueKind::Bool, Direction::Output, true),
                signal("level", "sensors", ValueKind::Real, Direction::Input, true),
                signal("count", "sensors", ValueKind::Signed, Direction::Input, true),
                signal("lamps.0x7010:01", "lamps", ValueKind::Bool, Direction::Output, false),
            ],
            ..Description::default()
        }
    }

    fn sensor(kind: SensorKind, signals: Vec<usize>) -> SensorDescription {
        SensorDescription { name: "sensor".to_owned(), kind, frame: "frame".to_owned(), signals }
    }

    fn state(fresh: bool) -> State {
        let signal = |word, fresh| Signal { word, fresh, forced: false };
        let signals = vec![
            signal(1, false),
            signal(2.5_f64.to_bits(), fresh),
            signal(-3_i64 as u64, true),
            signal(1, true),
        ];
        State { signals, ..State::default() }
    }

    // feature(signals): ROS 2: named signals as ros2_control's GPIO controllers publish them; wrenches, inertial measurements and temperatures of sensors
    #[test]
    fn named_signals_are_grouped_by_their_sub_devices() {
        let (robot, stamp) = (robot(), Time { sec: 7, nanosec: 9 });
        let groups = groups(&robot);
        let message = group_values(&groups, &state(false), &robot, &[false, false, true, true], stamp);
        assert_eq!(
            (message.header.stamp, message.interface_groups),
            (stamp, vec!["lamps".to_owned(), "sensors".to_owned()])
        );
        let [lamps, sensors] = &message.interface_values[..] else { panic!("two groups") };
        assert_eq!(
            (lamps.interface_names.as_slice(), lamps.values.as_slice()),
            (&["lamp".to_owned()][..], &[1.0][..])
        );
        assert_eq!(sensors.interface_names, ["level", "count", "level.fresh", "count.fresh"]);
        // An input not yet received is NaN; one received before keeps its value.
        assert!(sensors.values[0].is_nan() && sensors.values[1] == -3.0, "{sensors:?}");
        let message = group_values(&groups, &state(false), &robot, &[false, true, true, true], stamp);
        assert_eq!(message.interface_values[1].values, [2.5, -3.0, 0.0, 1.0]);
    }

    // feature(ros2): `~/gpio_states` says of each input whether it is fresh, as an interface `NAME.fresh`
    #[test]
    fn a_stale_input_is_reported_with_its_last_value() {
        let mut robot = robot();
        let seen = [true; 4];
        let sensors = |robot: &Description, fresh| {
            let all = group_values(&groups(robot), &state(fresh), robot, &seen, Time::default());
            all.interface_values[1].clone()
        };
        assert_eq!(sensors(&robot, true).values, [2.5, -3.0, 1.0, 1.0]);
        assert_eq!(sensors(&robot, false).values, [2.5, -3.0, 0.0, 1.0]);
        // A signal that has the name already keeps it.
        robot.signals[2].name = "level.fresh".to_owned();
        let names = ["level", "level.fresh", "level.fresh.fresh"];
        assert_eq!(sensors(&robot, false).interface_names, names);
        assert_eq!(sensors(&robot, false).values, [2.5, -3.0, 1.0]);
    }

    // feature(signals): ROS 2: named signals as ros2_control's GPIO controllers publish them; wrenches, inertial measurements and temperatures of sensors
    #[test]
    fn a_sensor_measures_only_what_came_with_this_cycle() {
        let sensor = sensor(SensorKind::Temperature, vec![2, 1]);
        assert_eq!(measured(&sensor, &state(true), &robot()), Some(vec![-3.0, 2.5]));
        assert_eq!(measured(&sensor, &state(false), &robot()), None);
        let missing = SensorDescription { signals: vec![9], ..sensor };
        assert_eq!(measured(&missing, &state(true), &robot()), None);
    }

    // feature(signals): ROS 2: named signals as ros2_control's GPIO controllers publish them; wrenches, inertial measurements and temperatures of sensors
    #[test]
    fn measurements_go_to_the_messages_of_their_kind() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let whole = |kind, number| is_whole(&sensor(kind, vec![0; number]));
        assert!(whole(SensorKind::ForceTorque, 6) && !whole(SensorKind::ForceTorque, 5));
        assert!(whole(SensorKind::Imu, 10) && whole(SensorKind::Temperature, 1));
        let wrench = wrench(Header::default(), &values).wrench;
        assert_eq!((wrench.force.z, wrench.torque.x), (3.0, 4.0));
        let without = imu(Header::default(), &values);
        assert_eq!((without.linear_acceleration.y, without.angular_velocity.z), (2.0, 6.0));
        assert_eq!(without.orientation_covariance[0], -1.0);
        let with = imu(Header::default(), &[&values[..], &[0.1, 0.2, 0.3, 0.9]].concat());
        assert_eq!((with.orientation.w, with.orientation_covariance[0]), (0.9, 0.0));
    }
}
