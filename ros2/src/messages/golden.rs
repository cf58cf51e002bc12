//! Messages of `lab/peers/cyclone_golden.py`: this crate must encode them to the same bytes as
//! Cyclone DDS.

use std::fmt::Debug;

use proptest::prelude::*;
use rustdds::RepresentationIdentifier;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::action::{
    CancelGoalRequest, FeedbackMessage, GetResultResponse, GoalInfo, GoalStatus, GoalStatusArray,
    SendGoalRequest,
};
use super::basic::{
    Duration, Float64MultiArray, Header, MultiArrayDimension, MultiArrayLayout, Text, Time,
};
use super::controller_manager::{
    ChainConnection, ChangeStateRequest, ControllerManagerActivity, ControllerState,
    HardwareComponentState, HardwareInterface, LifecycleState, NameRequest, NamedLifecycleState,
    SetHardwareComponentStateRequest, SwitchControllerRequest, TransitionDescription, TransitionEvent,
};
use super::geometry::{
    Covariance, Odometry, Pose, PoseWithCovariance, Quaternion, TfMessage, Transform, TransformStamped,
    Twist, TwistStamped, TwistWithCovariance, Vector3, Wrench, WrenchStamped,
};
use super::parameter::{
    FloatingPointRange, IntegerRange, ListParametersRequest, ListParametersResult, Log, LoggerLevel,
    NamesRequest, Parameter, ParameterDescriptor, ParameterValue, SetParametersRequest,
};
use super::sensor::{
    DiagnosticArray, DiagnosticStatus, DynamicInterfaceGroupValues, DynamicJointState, Imu, InterfaceValue,
    JointState, KeyValue, LaserScan, Temperature,
};
use super::service::{
    Done, Field, FieldType, GetSdoRequest, GetSdoResponse, GetTypeDescriptionRequest,
    IndividualTypeDescription, SetBoolRequest, SetSdoRequest, TypeDescription, TypeSource,
};
use super::trajectory::{
    FollowFeedback, FollowGoal, FollowResult, JointComponentTolerance, JointTolerance, JointTrajectory,
    JointTrajectoryControllerState, JointTrajectoryPoint, MultiDofJointTrajectory,
    MultiDofJointTrajectoryPoint, QueryTrajectoryStateRequest, QueryTrajectoryStateResponse,
};
use crate::dds::sample::{decode, encode};

const GOLDEN: &str = include_str!("golden.txt");

/// Bytes of a message, without the four that give the encoding.
fn golden(name: &str) -> Vec<u8> {
    let line = GOLDEN.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let hex = line.unwrap_or_else(|| panic!("golden.txt has no {name}"));
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    // CDR, little-endian; the options that follow give the number of padding bytes at the end.
    assert_eq!(bytes[..2], [0, 1], "{name}");
    let padding = usize::from(bytes[3] & 3);
    bytes[4..bytes.len() - padding].to_vec()
}

/// Checks that both encode it to the same bytes, and that it decodes to itself.
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, message: &T) {
    let mut bytes = Vec::new();
    assert!(encode(message, &mut bytes), "{name}");
    assert_eq!(bytes, golden(name), "{name}");
    let back: T = decode(&bytes, RepresentationIdentifier::CDR_LE).expect(name);
    assert_eq!(back, *message, "{name}");
}

fn header() -> Header {
    Header { stamp: Time { sec: 1_763_722_800, nanosec: 123_456_789 }, frame_id: "base_link".into() }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn point() -> JointTrajectoryPoint {
    JointTrajectoryPoint {
        positions: vec![0.25, -0.5],
        velocities: vec![1.0, 2.0],
        time_from_start: Duration { sec: 1, nanosec: 500_000_000 },
        ..JointTrajectoryPoint::default()
    }
}

fn trajectory() -> JointTrajectory {
    JointTrajectory { header: header(), joint_names: texts(&["a", "bc"]), points: vec![point(), point()] }
}

fn tolerance() -> JointTolerance {
    JointTolerance { name: "a".into(), position: 0.01, velocity: 0.02, acceleration: 0.03 }
}

fn transform() -> Transform {
    Transform {
        translation: Vector3 { x: 1.0, y: 2.0, z: 3.0 },
        rotation: Quaternion { x: 0.1, y: 0.2, z: 0.3, w: 0.9 },
    }
}

fn twist() -> Twist {
    let (linear, angular) =
        (Vector3 { x: 0.5, ..Vector3::default() }, Vector3 { z: -1.5, ..Vector3::default() });
    Twist { linear, angular }
}

fn numbers<const N: usize>(from: usize) -> [f64; N] {
    std::array::from_fn(|index| (from + index) as f64)
}

fn covariance() -> Covariance {
    std::array::from_fn(|row| numbers(row * 6))
}

fn goal() -> FollowGoal {
    let multi = MultiDofJointTrajectoryPoint {
        transforms: vec![transform()],
        velocities: vec![twist()],
        time_from_start: Duration { sec: 2, nanosec: 0 },
        ..MultiDofJointTrajectoryPoint::default()
    };
    let component = JointComponentTolerance {
        joint_name: "d".into(),
        component: 3,
        position: 0.1,
        velocity: 0.2,
        acceleration: 0.3,
    };
    FollowGoal {
        trajectory: trajectory(),
        multi_dof_trajectory: MultiDofJointTrajectory {
            header: header(),
            joint_names: texts(&["d"]),
            points: vec![multi],
        },
        path_tolerance: vec![tolerance()],
        component_path_tolerance: vec![component],
        goal_tolerance: vec![tolerance(), tolerance()],
        component_goal_tolerance: vec![],
        goal_time_tolerance: Duration { sec: 0, nanosec: 250_000_000 },
    }
}

const GOAL_ID: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

#[test]
fn basic_messages_are_the_bytes_cyclone_makes() {
    same("Header", &header());
    same("Text", &Text { data: "<robot/>".into() });
    let dim = MultiArrayDimension { label: "joints".into(), size: 2, stride: 2 };
    let layout = MultiArrayLayout { dim: vec![dim], data_offset: 0 };
    same("Float64MultiArray", &Float64MultiArray { layout, data: vec![1.0, -2.0] });
}

#[test]
fn velocities_and_places_are_the_bytes_cyclone_makes() {
    same("Twist", &twist());
    same("TwistStamped", &TwistStamped { header: header(), twist: twist() });
    let Transform { translation, rotation } = transform();
    let pose = Pose { position: translation, orientation: rotation };
    same(
        "Odometry",
        &Odometry {
            header: header(),
            child_frame_id: "odom".into(),
            pose: PoseWithCovariance { pose, covariance: covariance() },
            twist: TwistWithCovariance { twist: twist(), covariance: covariance() },
        },
    );
    let stamped =
        TransformStamped { header: header(), child_frame_id: "child".into(), transform: transform() };
    same("TfMessage", &TfMessage { transforms: vec![stamped.clone(), stamped] });
}

// feature(signals): ROS 2: named signals as ros2_control's GPIO controllers publish them; wrenches, inertial measurements and temperatures of sensors
#[test]
fn sensor_messages_are_the_bytes_cyclone_makes() {
    let joints = JointState {
        header: header(),
        name: texts(&["a", "bc"]),
        position: vec![1.0, 2.0],
        velocity: vec![3.0],
        effort: vec![],
    };
    same("JointState", &joints);
    let Transform { translation, rotation } = transform();
    let imu = Imu {
        header: header(),
        orientation: rotation,
        orientation_covariance: numbers(0),
        angular_velocity: translation,
        angular_velocity_covariance: numbers(9),
        linear_acceleration: translation,
        linear_acceleration_covariance: numbers(18),
    };
    same("Imu", &imu);
    let force = Vector3 { x: 1.0, y: -2.0, z: 30.5 };
    let wrench = Wrench { force, torque: Vector3 { x: 0.25, y: 0.0, z: -0.125 } };
    same("WrenchStamped", &WrenchStamped { header: header(), wrench });
    same("Temperature", &Temperature { header: header(), temperature: 36.5, variance: 0.0 });
    let group = |names: &[&str], values: &[f64]| InterfaceValue {
        interface_names: texts(names),
        values: values.to_vec(),
    };
    let signals = DynamicInterfaceGroupValues {
        header: header(),
        interface_groups: texts(&["lamps", "sensors"]),
        interface_values: vec![
            group(&["lamp green"], &[1.0]),
            group(&["tank level", "force.x"], &[42.5, -0.5]),
        ],
    };
    same("DynamicInterfaceGroupValues", &signals);
    let joints = DynamicJointState {
        header: header(),
        joint_names: texts(&["a"]),
        interface_values: vec![group(&["position", "velocity", "effort"], &[1.0, -2.0, 0.5])],
    };
    same("DynamicJointState", &joints);
    let scan = LaserScan {
        header: header(),
        angle_min: -1.0,
        angle_max: 1.0,
        angle_increment: 0.5,
        time_increment: 0.25,
        scan_time: 0.125,
        range_min: 0.1,
        range_max: 4.0,
        ranges: vec![1.0, 2.0, 3.0],
        intensities: vec![],
    };
    same("LaserScan", &scan);
    let value = KeyValue { key: "k".into(), value: "v".into() };
    let status = DiagnosticStatus {
        level: 2,
        name: "name".into(),
        message: "message".into(),
        hardware_id: "id".into(),
        values: vec![value.clone(), value],
    };
    same("DiagnosticArray", &DiagnosticArray { header: header(), status: vec![status] });
}

#[test]
fn trajectories_and_actions_are_the_bytes_cyclone_makes() {
    same("JointTrajectory", &trajectory());
    same("FollowGoal", &goal());
    same("FollowResult", &FollowResult { error_code: -4, error_string: "too far".into() });
    let feedback = FollowFeedback {
        header: header(),
        joint_names: texts(&["a", "bc"]),
        desired: point(),
        actual: point(),
        error: point(),
        ..FollowFeedback::default()
    };
    same("FollowFeedbackMessage", &FeedbackMessage { goal_id: GOAL_ID, feedback });
    let state = JointTrajectoryControllerState {
        header: header(),
        joint_names: texts(&["a", "bc"]),
        reference: point(),
        feedback: point(),
        error: point(),
        output: point(),
        speed_scaling_factor: 1.0,
        ..JointTrajectoryControllerState::default()
    };
    same("JointTrajectoryControllerState", &state);
    let answer = QueryTrajectoryStateResponse {
        success: true,
        message: "now".into(),
        name: texts(&["a", "bc"]),
        position: vec![0.25, -0.5],
        velocity: vec![1.0, 2.0],
        acceleration: vec![0.0, 0.5],
    };
    same("QueryTrajectoryStateResponse", &answer);
    let goal_info = GoalInfo { goal_id: GOAL_ID, stamp: header().stamp };
    let status = GoalStatus { goal_info, status: 4 };
    same("GoalStatusArray", &GoalStatusArray { status_list: vec![status, status] });
}

#[test]
fn parameters_logs_and_controllers_are_the_bytes_cyclone_makes() {
    let value = ParameterValue {
        kind: 3,
        bool_value: true,
        integer_value: -7,
        double_value: 0.5,
        string_value: "text".into(),
        byte_array_value: vec![1, 2],
        bool_array_value: vec![true, false],
        integer_array_value: vec![-1],
        double_array_value: vec![1.5, 2.5],
        string_array_value: texts(&["x", "yz"]),
    };
    same("Parameter", &Parameter { name: "name".into(), value });
    let descriptor = ParameterDescriptor {
        name: "name".into(),
        kind: 3,
        description: "about".into(),
        additional_constraints: String::new(),
        read_only: false,
        dynamic_typing: true,
        floating_point_range: vec![FloatingPointRange { from_value: 0.5, to_value: 2.5, step: 0.0 }],
        integer_range: vec![IntegerRange { from_value: -1, to_value: 1, step: 1 }],
    };
    same("ParameterDescriptor", &descriptor);
    same("ListParametersResult", &ListParametersResult { names: texts(&["a", "b"]), prefixes: vec![] });
    let log = Log {
        stamp: header().stamp,
        level: 30,
        name: "name".into(),
        msg: "msg".into(),
        file: "file".into(),
        function: "function".into(),
        line: 7,
    };
    same("Log", &log);
    same("LoggerLevel", &LoggerLevel { name: "onbeat".into(), level: 30 });
    let state = ControllerState {
        name: "arm".into(),
        state: "active".into(),
        kind: "kind".into(),
        is_async: false,
        update_rate: 1000,
        claimed_interfaces: texts(&["a/position"]),
        required_command_interfaces: texts(&["a/position"]),
        required_state_interfaces: vec![],
        is_chainable: true,
        is_chained: false,
        exported_state_interfaces: vec![],
        reference_interfaces: texts(&["r"]),
        chain_connections: vec![ChainConnection { name: "c".into(), reference_interfaces: texts(&["x"]) }],
    };
    same("ControllerState", &state);
    let active = LifecycleState { id: 3, label: "active".into() };
    let named = |name: &str| NamedLifecycleState { name: name.into(), state: active.clone() };
    let activity = ControllerManagerActivity {
        header: header(),
        controllers: vec![named("arm"), named("base")],
        hardware_components: vec![named("cell")],
    };
    same("ControllerManagerActivity", &activity);
    let interface =
        |name: &str, is_claimed| HardwareInterface { name: name.into(), is_available: true, is_claimed };
    let component = HardwareComponentState {
        name: "cell".into(),
        kind: "system".into(),
        is_async: true,
        rw_rate: 1000,
        class_type: "class".into(),
        plugin_name: "plugin".into(),
        state: active.clone(),
        command_interfaces: vec![interface("a/position", true), interface("bc/position", false)],
        state_interfaces: vec![interface("a/velocity", false)],
    };
    same("HardwareComponentState", &component);
    let asked = SetHardwareComponentStateRequest { name: "cell".into(), target_state: active };
    same("SetHardwareComponentStateRequest", &asked);
}

#[test]
fn lives_and_types_are_the_bytes_cyclone_makes() {
    let state = LifecycleState::new;
    let description = TransitionDescription {
        transition: state(4, "deactivate"),
        start_state: state(3, "active"),
        goal_state: state(14, "deactivating"),
    };
    same("TransitionDescription", &description);
    let event = TransitionEvent {
        timestamp: 1_763_722_800_123_456_789,
        transition: state(40, "transition_success"),
        start_state: state(14, "deactivating"),
        goal_state: state(2, "inactive"),
    };
    same("TransitionEvent", &event);
    let field = |name: &str, type_id, capacity, string_capacity, nested: &str, default: &str| Field {
        name: name.into(),
        kind: FieldType { type_id, capacity, string_capacity, nested_type_name: nested.into() },
        default_value: default.into(),
    };
    let individual = |name: &str, fields| IndividualTypeDescription { type_name: name.into(), fields };
    let fields = vec![field("header", 1, 0, 0, "std_msgs/msg/Header", ""), field("w", 59, 9, 3, "", "1")];
    let description = TypeDescription {
        type_description: individual("a/msg/B", fields),
        referenced_type_descriptions: vec![individual("std_msgs/msg/Header", vec![])],
    };
    same("TypeDescription", &description);
    let source = TypeSource {
        type_name: "a/msg/B".into(),
        encoding: "msg".into(),
        raw_file_contents: "float64 w 1\n".into(),
    };
    same("TypeSource", &source);
}

// feature(ros2): `~/get_sdo`, `~/set_sdo`, `~/al_states` of the running bus
#[test]
fn objects_are_the_bytes_cyclone_makes() {
    let get = GetSdoRequest {
        master_id: -1,
        slave_position: 3,
        sdo_index: 0x1018,
        sdo_subindex: 1,
        sdo_data_type: "uint32".into(),
    };
    same("GetSdoRequest", &get);
    same("GetSdoResponse", &GetSdoResponse::read("4294904577".into(), 4_294_904_577.0));
    let set = SetSdoRequest {
        master_id: 0,
        slave_position: 3,
        sdo_index: 0x2F00,
        sdo_subindex: 1,
        sdo_data_type: "int32".into(),
        sdo_value: "-10".into(),
    };
    same("SetSdoRequest", &set);
    same("SetSdoResponse", &Done { success: false, message: "no".into() });
}

/// Decodes the bytes as every message that is received: each is an error or a message.
fn read_all(bytes: &[u8], encoding: RepresentationIdentifier) {
    let _ = decode::<Twist>(bytes, encoding);
    let _ = decode::<TwistStamped>(bytes, encoding);
    let _ = decode::<JointState>(bytes, encoding);
    let _ = decode::<Float64MultiArray>(bytes, encoding);
    let _ = decode::<JointTrajectory>(bytes, encoding);
    let _ = decode::<SendGoalRequest<FollowGoal>>(bytes, encoding);
    let _ = decode::<GetResultResponse<FollowResult>>(bytes, encoding);
    let _ = decode::<CancelGoalRequest>(bytes, encoding);
    let _ = decode::<SetBoolRequest>(bytes, encoding);
    let _ = decode::<SwitchControllerRequest>(bytes, encoding);
    let _ = decode::<NameRequest>(bytes, encoding);
    let _ = decode::<SetHardwareComponentStateRequest>(bytes, encoding);
    let _ = decode::<QueryTrajectoryStateRequest>(bytes, encoding);
    let _ = decode::<NamesRequest>(bytes, encoding);
    let _ = decode::<ListParametersRequest>(bytes, encoding);
    let _ = decode::<SetParametersRequest>(bytes, encoding);
    let _ = decode::<GetSdoRequest>(bytes, encoding);
    let _ = decode::<SetSdoRequest>(bytes, encoding);
    let _ = decode::<ChangeStateRequest>(bytes, encoding);
    let _ = decode::<GetTypeDescriptionRequest>(bytes, encoding);
}

proptest! {
    // feature(ros2): messages are the bytes Cyclone DDS makes of them
    #[test]
    fn bytes_that_are_no_message_are_an_error_and_nothing_worse(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        little in any::<bool>(),
    ) {
        let encodings = [RepresentationIdentifier::CDR_BE, RepresentationIdentifier::CDR_LE];
        read_all(&bytes, encodings[usize::from(little)]);
    }

    /// Lengths of strings and lists are the most dangerous bytes.
    // feature(ros2): messages are the bytes Cyclone DDS makes of them
    #[test]
    fn a_message_with_bytes_changed_is_an_error_or_another_message(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
    ) {
        for name in ["FollowGoal", "JointTrajectory", "JointState", "TwistStamped", "Parameter"] {
            let mut bytes = golden(name);
            for (at, to) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *to;
            }
            bytes.truncate(length.index(bytes.len()) + 1);
            read_all(&bytes, RepresentationIdentifier::CDR_LE);
        }
    }
}
