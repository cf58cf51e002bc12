//! /joint_states, /dynamic_joint_states, /odom, /tf, /tf_static and /robot_description.

use ipc::description::Description;
use ipc::state::State;

use super::velocity::BaseTopics;
use super::{Endpoints, Moment, Timer};
use crate::clock::WallClock;
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::basic::{Header, Text, Time};
use crate::messages::geometry::{
    Covariance, Odometry, Pose, PoseWithCovariance, Quaternion, TfMessage, Transform, TransformStamped,
    Twist, TwistStamped, TwistWithCovariance, Vector3,
};
use crate::messages::sensor::{DynamicJointState, InterfaceValue, JointState};
use crate::settings::Settings;
use types::{ControllerKind, CyclicMode};

/// Publishers of the states.
pub(crate) struct States {
    joints: Option<Writer>,
    /// The same as joint_state_broadcaster has it for interfaces of any name.
    dynamic_joints: Option<Writer>,
    joints_timer: Timer,
    odometry: Option<Writer>,
    odometry_timer: Timer,
    /// Cycles published last: a stalled cycle has no new state.
    joints_cycle: Option<u64>,
    odometry_cycle: Option<u64>,
    tf: Option<Writer>,
    /// The same below the names of the controllers that drive the base, as ros2_controllers have
    /// it.
    own_odometry: Vec<Writer>,
    own_tf: Vec<Writer>,
    /// Velocity that the base is commanded, of each controller that drives it.
    commanded: Vec<(usize, Writer)>,
    tf_static: Option<Writer>,
    /// Name of the base's frame that the frames on it were last published with.
    base_frame: Option<String>,
    /// Kept open: late subscribers get the last sample.
    _robot_description: Option<Writer>,
}

impl States {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let reliable = Quality::Reliable;
        let joints = !robot.axes.is_empty();
        let base = robot.base.is_some();
        let mut publish = |there: bool, topic: &str, kind: &str, quality| {
            there.then(|| endpoints.publish(topic, kind, quality)).transpose()
        };
        let robot_description =
            publish(robot.urdf.is_some(), "robot_description", "std_msgs/String", Quality::Latched)?;
        if let (Some(writer), Some(urdf)) = (&robot_description, &robot.urdf) {
            writer.send(&Text { data: urdf.clone() });
        }
        let (mut own_odometry, mut own_tf, mut commanded) = (Vec::new(), Vec::new(), Vec::new());
        let drives = |kind: Option<ControllerKind>| kind.is_some_and(ControllerKind::drives_a_base);
        for (index, controller) in
            robot.controllers.iter().enumerate().filter(|(_, it)| base && drives(it.kind))
        {
            let (name, topics) = (&controller.name, BaseTopics::of(robot));
            let odometry = format!("{name}/{}", topics.odometry);
            own_odometry.extend(publish(true, &odometry, "nav_msgs/Odometry", reliable)?);
            let limited =
                publish(true, &format!("{name}/cmd_vel_out"), "geometry_msgs/TwistStamped", reliable)?;
            commanded.extend(limited.map(|limited| (index, limited)));
            if let Some(tf) = topics.tf {
                own_tf.extend(publish(true, &format!("{name}/{tf}"), "tf2_msgs/TFMessage", reliable)?);
            }
        }
        Ok(Self {
            own_odometry,
            own_tf,
            commanded,
            joints: publish(joints, "joint_states", "sensor_msgs/JointState", reliable)?,
            dynamic_joints: publish(
                joints,
                "dynamic_joint_states",
                "control_msgs/DynamicJointState",
                reliable,
            )?,
            joints_timer: Timer::default(),
            odometry: publish(base, "odom", "nav_msgs/Odometry", reliable)?,
            odometry_timer: Timer::default(),
            joints_cycle: None,
            odometry_cycle: None,
            tf: publish(base, "/tf", "tf2_msgs/TFMessage", reliable)?,
            tf_static: publish(
                !robot.frames.is_empty(),
                "/tf_static",
                "tf2_msgs/TFMessage",
                Quality::Latched,
            )?,
            base_frame: None,
            _robot_description: robot_description,
        })
    }

    /// Publishes the due messages; of the joints only if `broadcasts` is true.
    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>, now_ns: u64, broadcasts: bool) {
        let Some(robot) = moment.robot.as_deref_mut() else {
            return;
        };
        if let Some(writer) = &self.tf_static {
            let frame = base_frame(moment.settings, robot.description());
            if self.base_frame.as_ref() != Some(&frame) {
                let stamp = WallClock::now().stamp(now_ns);
                writer.send(&fixed(robot.description(), &frame, stamp));
                self.base_frame = Some(frame);
            }
        }
        let joints = self.joints_timer.due(now_ns, moment.settings.joint_states_rate) && broadcasts;
        let odometry = self.odometry_timer.due(now_ns, moment.settings.odom_rate);
        if !(joints || odometry) || !robot.refresh() {
            return;
        }
        let (state, description) = (robot.state(), robot.description());
        let stamp = WallClock::now().stamp(state.release_ns);
        let due = |asked: bool, timer: &mut Timer, last: Option<u64>| {
            let is_new = last != Some(state.cycle);
            if asked && !is_new {
                // The cycle is a little late: its state is waited for, not left out.
                timer.again_at(now_ns + (description.period_ns / 4).max(SHORTEST_RETRY_NS));
            }
            asked && is_new
        };
        let joints = due(joints, &mut self.joints_timer, self.joints_cycle);
        let odometry = due(odometry, &mut self.odometry_timer, self.odometry_cycle);
        if let Some(writer) = self.joints.as_ref().filter(|_| joints) {
            self.joints_cycle = Some(state.cycle);
            let message = joint_state(state, description, stamp);
            if let Some(writer) = &self.dynamic_joints {
                writer.send(&dynamic_joint_state(&message));
            }
            writer.send(&message);
        }
        if let Some(writer) = self.odometry.as_ref().filter(|_| odometry) {
            self.odometry_cycle = Some(state.cycle);
            let message = odometry_of(state, description, moment.settings, stamp);
            if moment.settings.publish_tf {
                let transform = transform(&message);
                self.tf.iter().chain(&self.own_tf).for_each(|tf| _ = tf.send(&transform));
            }
            self.own_odometry.iter().for_each(|own| _ = own.send(&message));
            let active = usize::from(state.control.active);
            let limited = self.commanded.iter().find(|(controller, _)| *controller == active);
            if let Some((_, limited)) = limited.filter(|_| moment.settings.publish_limited_velocity)
                && let Some(twist) = commanded_twist(state, description)
            {
                let header = Header { stamp, frame_id: message.child_frame_id.clone() };
                limited.send(&TwistStamped { header, twist });
            }
            writer.send(&message);
        }
    }

    /// Time of the next message.
    pub(crate) fn next(&self) -> u64 {
        self.joints_timer.next().min(self.odometry_timer.next())
    }
}

/// Shortest wait for the state of a cycle that is late.
const SHORTEST_RETRY_NS: u64 = 200_000;

fn dynamic_joint_state(joints: &JointState) -> DynamicJointState {
    let measured = joints.position.iter().zip(&joints.velocity).zip(&joints.effort);
    let values = measured.map(|((&position, &velocity), &effort)| InterfaceValue {
        interface_names: ["position", "velocity", "effort"].map(String::from).to_vec(),
        values: vec![position, velocity, effort],
    });
    DynamicJointState {
        header: joints.header.clone(),
        joint_names: joints.name.clone(),
        interface_values: values.collect(),
    }
}

fn joint_state(state: &State, description: &Description, stamp: Time) -> JointState {
    JointState {
        header: Header { stamp, frame_id: String::new() },
        name: description.axes.iter().map(|axis| axis.name.clone()).collect(),
        position: state.axes.iter().map(|axis| axis.position).collect(),
        velocity: state.axes.iter().map(|axis| axis.velocity).collect(),
        effort: state.axes.iter().map(|axis| axis.effort).collect(),
    }
}

fn odometry_of(state: &State, description: &Description, settings: &Settings, stamp: Time) -> Odometry {
    let own = description.base.as_ref().map(|base| &base.odometry_frame);
    let [x, y, yaw] = state.base.pose;
    let [forward, left, turn] = state.base.twist;
    Odometry {
        header: Header { stamp, frame_id: chosen(&settings.odom_frame, own) },
        child_frame_id: base_frame(settings, description),
        pose: PoseWithCovariance {
            pose: Pose { position: Vector3 { x, y, z: 0.0 }, orientation: Quaternion::from_yaw(yaw) },
            covariance: planar(POSE_VARIANCE),
        },
        twist: TwistWithCovariance {
            twist: Twist {
                linear: Vector3 { x: forward, y: left, z: 0.0 },
                angular: Vector3 { x: 0.0, y: 0.0, z: turn },
            },
            covariance: planar(TWIST_VARIANCE),
        },
    }
}

/// Velocity that the wheels of the base are sent; none where their drives are sent no velocities.
fn commanded_twist(state: &State, description: &Description) -> Option<Twist> {
    let wheels = &description.base.as_ref()?.wheels;
    let mut twist = [0.0; 3];
    for wheel in wheels {
        let mode = description.axes.get(wheel.axis)?.mode;
        if mode.cyclic() != CyclicMode::Velocity {
            return None;
        }
        let sent = state.axes.get(wheel.axis)?.target_velocity;
        twist.iter_mut().zip(wheel.twist).for_each(|(part, of_wheel)| *part += of_wheel * sent);
    }
    let [x, y, yaw] = twist;
    let (linear, angular) = (Vector3 { x, y, z: 0.0 }, Vector3 { x: 0.0, y: 0.0, z: yaw });
    (!wheels.is_empty()).then_some(Twist { linear, angular })
}

fn base_frame(settings: &Settings, description: &Description) -> String {
    chosen(&settings.base_frame, description.base.as_ref().map(|base| &base.base_frame))
}

/// A parameter, or where it is empty the robot file's.
fn chosen(parameter: &str, own: Option<&String>) -> String {
    if parameter.is_empty() { own.cloned().unwrap_or_default() } else { parameter.to_owned() }
}

/// Frames fixed to other frames. Frames on the base are fixed to odometry's frame of it.
fn fixed(description: &Description, base_frame: &str, stamp: Time) -> TfMessage {
    let own = description.base.as_ref().map(|base| &base.base_frame);
    let transforms = description.frames.iter().map(|frame| {
        let parent = if Some(&frame.parent) == own { base_frame } else { &frame.parent };
        let ([x, y, z], [qx, qy, qz, qw]) = (frame.translation, frame.rotation);
        TransformStamped {
            header: Header { stamp, frame_id: parent.to_owned() },
            child_frame_id: frame.name.clone(),
            transform: Transform {
                translation: Vector3 { x, y, z },
                rotation: Quaternion { x: qx, y: qy, z: qz, w: qw },
            },
        }
    });
    TfMessage { transforms: transforms.collect() }
}

/// Variances of x, y and yaw. Wheels slip and their size is known to a few tenths of a per cent:
/// this is a guess for filters that need one, not a measurement. The pose itself drifts without
/// bound, which no number here expresses.
const POSE_VARIANCE: [f64; 3] = [1e-3, 1e-3, 1e-2];
const TWIST_VARIANCE: [f64; 3] = [1e-4, 1e-4, 1e-3];

/// Variance of z, roll and pitch, which are not measured: so large that no filter trusts them.
const UNKNOWN: f64 = 1e6;

fn planar([x, y, yaw]: [f64; 3]) -> Covariance {
    let mut covariance = Covariance::default();
    for (index, variance) in [x, y, UNKNOWN, UNKNOWN, UNKNOWN, yaw].into_iter().enumerate() {
        covariance[index][index] = variance;
    }
    covariance
}

/// Pose as a transform from the odometry frame to the base frame.
fn transform(odometry: &Odometry) -> TfMessage {
    let Pose { position, orientation } = odometry.pose.pose;
    TfMessage {
        transforms: vec![TransformStamped {
            header: odometry.header.clone(),
            child_frame_id: odometry.child_frame_id.clone(),
            transform: Transform { translation: position, rotation: orientation },
        }],
    }
}

#[cfg(test)]
mod tests {
    use types::BaseKind;

    use super::*;
    use ipc::description::{AxisDescription, BaseDescription, FrameDescription, WheelDescription};
    use ipc::state::{Axis, Base};

    // feature(ros2): `CONTROLLER/cmd_vel_out`: the velocity that the wheels are sent, within all limits of the base
    #[test]
    fn the_velocity_of_a_base_is_that_of_what_its_wheels_are_sent() {
        let axis = |name: &str| AxisDescription::new(name, CyclicMode::Velocity, 20.0, 5.0);
        let wheel = |axis, yaw| WheelDescription { axis, twist: [0.05, 0.0, yaw] };
        let base = BaseDescription {
            kind: BaseKind::Differential,
            velocity_limit: 1.0,
            yaw_limit: 1.0,
            odometry_frame: "odom".into(),
            base_frame: "base_link".into(),
            wheels: vec![wheel(1, -0.25), wheel(0, 0.25)],
        };
        let mut description = Description {
            axes: ["right", "left"].map(axis).to_vec(),
            base: Some(base),
            ..Description::default()
        };
        let sent = |target_velocity| Axis { target_velocity, velocity: 9.0, ..Axis::default() };
        let state = State { axes: vec![sent(6.0), sent(2.0)], ..State::default() };
        let Twist { linear, angular } = commanded_twist(&state, &description).unwrap();
        assert!(
            (linear.x - 0.4).abs() < 1e-12 && (angular.z - 1.0).abs() < 1e-12,
            "{linear:?} {angular:?}"
        );
        description.axes[0].mode = CyclicMode::Position.into();
        assert_eq!(commanded_twist(&state, &description), None, "it is sent positions");
        assert_eq!(commanded_twist(&state, &Description::default()), None);
    }

    #[test]
    fn the_base_looks_the_same_in_odometry_and_tf() {
        let base = BaseDescription {
            kind: BaseKind::Differential,
            velocity_limit: 1.0,
            yaw_limit: 1.0,
            odometry_frame: "odom".into(),
            base_frame: "base_link".into(),
            wheels: Vec::new(),
        };
        let description = Description { base: Some(base), ..Description::default() };
        let half_turn = std::f64::consts::PI;
        let base = Base { pose: [1.0, -2.0, half_turn], twist: [0.5, 0.1, -0.2] };
        let state = State { base, ..State::default() };
        let mut settings = Settings::default();
        let odometry = odometry_of(&state, &description, &settings, Time { sec: 5, nanosec: 6 });
        assert_eq!(
            (odometry.header.frame_id.as_str(), odometry.child_frame_id.as_str()),
            ("odom", "base_link")
        );
        assert!((odometry.pose.pose.orientation.z - 1.0).abs() < 1e-12, "half a turn is z = 1");
        let Twist { linear, angular } = odometry.twist.twist;
        assert_eq!((linear.x, linear.y, angular.z), (0.5, 0.1, -0.2));
        let diagonal = |covariance: Covariance| [0, 1, 2, 3, 4, 5].map(|index| covariance[index][index]);
        // No filter may trust z, roll and pitch, which wheels do not measure.
        assert_eq!(diagonal(odometry.pose.covariance), [1e-3, 1e-3, 1e6, 1e6, 1e6, 1e-2]);
        assert_eq!(diagonal(odometry.twist.covariance), [1e-4, 1e-4, 1e6, 1e6, 1e6, 1e-3]);
        let tf = transform(&odometry);
        assert_eq!(tf.transforms[0].transform.translation, odometry.pose.pose.position);
        assert_eq!(tf.transforms[0].header, odometry.header);
        let frame = |name: &str, parent: &str| FrameDescription {
            name: name.into(),
            parent: parent.into(),
            translation: [0.1, 0.2, 0.3],
            rotation: [0.0, 0.0, 1.0, 0.0],
        };
        let frames = vec![frame("laser", "base_link"), frame("lens", "laser")];
        let fixed =
            fixed(&Description { frames, ..description.clone() }, "base_footprint", Time::default());
        let names = |it: &TransformStamped| (it.header.frame_id.clone(), it.child_frame_id.clone());
        assert_eq!(names(&fixed.transforms[0]), ("base_footprint".into(), "laser".into()));
        assert_eq!(names(&fixed.transforms[1]), ("laser".into(), "lens".into()));
        assert_eq!(fixed.transforms[0].transform.translation, Vector3 { x: 0.1, y: 0.2, z: 0.3 });
        assert_eq!(fixed.transforms[0].transform.rotation.z, 1.0);
        settings.odom_frame = "map".into();
        assert_eq!(odometry_of(&state, &description, &settings, Time::default()).header.frame_id, "map");
    }
}
