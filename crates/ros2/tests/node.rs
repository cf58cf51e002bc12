//! `onbeat-ros2` beside a cycle, as its user sees it.
#![allow(clippy::unwrap_used, reason = "a test says where it fails")]
#![allow(missing_docs, unreachable_pub, reason = "tests and what they share")]

mod support;

use std::time::{Duration, Instant};

use ipc::bus::{Bytes, CableEnd, Event, Happening, Severity};
use rustdds::{DomainParticipantStatusEvent, LostReason, StatusEvented};
use serde::{Deserialize, Serialize};
use support::{Cycle, Folder, Node, Peer, forge_participants, until};

/// geometry_msgs/Twist.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Twist([f64; 6]);

/// nav_msgs/Odometry, the fields that are checked.
#[derive(Clone, Debug, Deserialize)]
struct Odometry {
    _stamp: (i32, u32),
    frame: String,
    child: String,
    place: [f64; 3],
    _orientation: [f64; 4],
    _covariance: [[f64; 6]; 6],
    twist: [f64; 6],
}

/// Odometry messages, 50 a second, during which the base must rest.
const RESTING: u32 = 75;

/// A domain that is probably unique to this test: `offset` separates those of one process.
fn domain(offset: u32) -> u16 {
    1 + ((std::process::id() + offset) % 90) as u16
}

// feature(ros2): a velocity from DDS drives the base and goes stale; nonsense does not move it
#[test]
fn a_velocity_from_dds_drives_the_base_and_goes_stale() {
    let (folder, domain) = (Folder::new("velocity"), domain(0));
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
    let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
    let mut place = move || odometry.take_next_sample().ok().flatten().map(|it| it.into_value());

    let start = until("odometry", &mut place);
    assert_eq!((start.frame.as_str(), start.child.as_str()), ("odom", "base_link"));
    let moving = until("the base drives", || {
        velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
        place().filter(|now| now.place[0] > start.place[0] + 0.05)
    });
    assert!((moving.twist[0] - 0.5).abs() < 1e-12, "{moving:?}");
    // On a loaded machine a command may still be in transit: the base rests when it has rested for a while.
    let mut rests = || {
        let mut last: Option<[f64; 3]> = None;
        let mut seen = 0;
        until("it stops when nobody commands it", || {
            let now = place()?;
            seen = if now.twist[0] == 0.0 && last == Some(now.place) { seen + 1 } else { 0 };
            last = Some(now.place);
            (seen > RESTING).then_some(now.place)
        })
    };
    let rest = rests();

    // Any of this that the node passed on would show in the next odometry, and stay in the pose.
    for nonsense in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for _ in 0..20 {
            velocity.write(Twist([nonsense, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
        }
    }
    node.says("cmd_vel: refused", 1);
    assert_eq!(rests(), rest);
}

/// control_msgs/DynamicInterfaceGroupValues.
#[derive(Clone, Debug, Deserialize)]
struct GroupValues {
    _stamp: (i32, u32),
    _frame: String,
    groups: Vec<String>,
    values: Vec<(Vec<String>, Vec<f64>)>,
}

/// geometry_msgs/WrenchStamped.
#[derive(Clone, Debug, Deserialize)]
struct Wrench {
    stamp: (i32, u32),
    frame: String,
    wrench: [f64; 6],
}

// feature(signals): ROS 2: named signals as ros2_control's GPIO controllers publish them; wrenches, inertial measurements and temperatures of sensors
#[test]
fn named_signals_are_published_by_sub_device_and_a_force_torque_sensor_as_its_wrench() {
    let (folder, domain) = (Folder::new("signals"), domain(3));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let mut states = peer.reader::<GroupValues>(
        "rt/onbeat/gpio_states",
        "control_msgs::msg::dds_::DynamicInterfaceGroupValues_",
    );
    let got = until("signals", || states.take_next_sample().ok().flatten()).into_value();
    assert_eq!(got.groups, ["lamps", "foot"]);
    assert_eq!(got.values[0], (vec!["lamp".to_owned()], vec![1.0]));
    assert_eq!(got.values[1].0[2..4], ["force.z", "torque.x"]);
    assert_eq!(got.values[1].1[..6], [1.0, -2.0, 300.0, 0.25, 0.5, -0.75]);
    assert_eq!((got.values[1].0[6].as_str(), got.values[1].1[6]), ("force.x.fresh", 1.0));
    let mut wrenches =
        peer.reader::<Wrench>("rt/left_foot/wrench", "geometry_msgs::msg::dds_::WrenchStamped_");
    let got = until("a wrench", || wrenches.take_next_sample().ok().flatten()).into_value();
    assert_eq!((got.frame.as_str(), got.wrench), ("sole", [1.0, -2.0, 300.0, 0.25, 0.5, -0.75]));
    assert!(got.stamp.0 > 1_700_000_000, "{got:?}");
}

// feature(ros2): `~/gpio_commands` sets outputs that the robot file gives to the outside; others are refused by name
#[test]
fn an_output_is_set_by_a_message_and_an_input_is_refused_by_its_name() {
    let (folder, domain) = (Folder::new("outputs"), domain(4));
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = "control_msgs::msg::dds_::DynamicInterfaceGroupValues_";
    let commands = peer.writer::<SetValues>("rt/onbeat/gpio_commands", kind);
    let mut states = peer.reader::<GroupValues>("rt/onbeat/gpio_states", kind);
    let message = |group: &str, name: &str, value: f64| {
        let values = vec![(vec![name.to_owned()], vec![value])];
        ((0, 0), String::new(), vec![group.to_owned()], values)
    };
    until("the lamp is dark", || {
        commands.write(message("lamps", "lamp", 0.0), None).unwrap();
        let got = states.take_next_sample().ok().flatten()?.into_value();
        (got.values[0].1 == [0.0]).then_some(())
    });
    commands.write(message("foot", "force.x", 0.0), None).unwrap();
    node.says("gpio_commands: refused: signal `force.x` is an input", 1);
}

/// control_msgs/DynamicInterfaceGroupValues.
type SetValues = ((i32, u32), String, Vec<String>, Vec<(Vec<String>, Vec<f64>)>);

/// tf2_msgs/TFMessage.
type Transforms = Vec<(((i32, u32), String), String, [f64; 7])>;

// feature(ros2): `--ros-args` from end to end, and `/tf_static` for those who come later
#[test]
fn names_and_parameters_are_those_of_the_arguments_of_ros() {
    let (folder, domain) = (Folder::new("ros-args"), domain(10));
    let cycle = Cycle::start(&folder.0);
    // The file and the command of docs/first-ros-robot.md.
    let page = include_str!("../../../docs/first-ros-robot.md");
    let between = |begin: &str, end: &str| page.split_once(begin).unwrap().1.split_once(end).unwrap().0;
    let file = folder.0.join("left.yaml");
    std::fs::write(&file, between("```yaml\n", "```")).unwrap();
    let line = between("\nonbeat-ros2 --ros-args ", "\n").split(' ');
    let rest = ["-r", "/tf_static:=tf_static", "--params-file", file.to_str().unwrap(), "--", "--quiet"];
    let more: Vec<&str> = ["--ros-args"].into_iter().chain(line).chain(rest).collect();
    let mut node = Node::with(&folder.0, cycle.path(), domain, &more);
    let peer = Peer::join(domain);
    let mut odometry = peer.reader::<Odometry>("rt/left/wheels/odom", "nav_msgs::msg::dds_::Odometry_");
    let got = until("odometry", || odometry.take_next_sample().ok().flatten()).into_value();
    assert_eq!((got.frame.as_str(), got.child.as_str()), ("odom", "left_base"));
    let mut fixed =
        peer.latched_reader::<Transforms>("rt/left/tf_static", "tf2_msgs::msg::dds_::TFMessage_");
    let got = until("frames", || fixed.take_next_sample().ok().flatten()).into_value();
    let [(head, child, place)] = got.as_slice() else { panic!("{got:?}") };
    assert_eq!((head.1.as_str(), child.as_str()), ("left_base", "laser"));
    assert_eq!(*place, [0.25, 0.0, 0.5, 0.0, 0.0, 1.0, 0.0]);
    assert!(node.ends() && node.said().is_empty(), "quiet: {}", node.said());
}

/// lifecycle_msgs/State and Transition, and a request for one.
type LifecycleState = (u8, String);

// feature(ros2): a managed node: `~/change_state`, `~/get_state`, `~/transition_event`; a stop is heard in every state
#[test]
fn a_node_that_is_deactivated_moves_nothing_and_still_stops() {
    let (folder, domain) = (Folder::new("lifecycle"), domain(11));
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |part: &str| format!("lifecycle_msgs::srv::dds_::{part}_");
    let asks = peer
        .writer::<(Header, LifecycleState)>("rq/onbeat/change_stateRequest", &kind("ChangeState_Request"));
    let mut told =
        peer.reader::<(Header, bool)>("rr/onbeat/change_stateReply", &kind("ChangeState_Response"));
    let mut events = peer.reader::<(u64, LifecycleState, LifecycleState, LifecycleState)>(
        "rt/onbeat/transition_event",
        "lifecycle_msgs::msg::dds_::TransitionEvent_",
    );
    let trigger = |part: &str| format!("std_srvs::srv::dds_::Trigger_{part}_");
    let stops = peer.writer::<(Header, u8)>("rq/onbeat/stopRequest", &trigger("Request"));
    let mut stopped = peer.reader::<(Header, bool, String)>("rr/onbeat/stopReply", &trigger("Response"));
    let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
    let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
    let mut drives = || {
        velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
        odometry.take_next_sample().ok().flatten().filter(|it| it.value().twist[0] > 0.4).map(drop)
    };
    until("the base drives", &mut drives);
    // A request is lost only before both ends know of each other.
    until("a refusal", || {
        asks.write(((7, 0), (0, "dance".to_owned())), None).unwrap();
        told.take_next_sample().ok().flatten().filter(|it| !it.value().1)
    });
    let mut number = 0;
    let mut change = |label: &str| {
        number += 1;
        asks.write(((7, number), (0, label.to_owned())), None).unwrap();
        let mut answer = || told.take_next_sample().ok().flatten().filter(|it| it.value().0.1 == number);
        until(label, &mut answer).into_value().1
    };
    assert!(change("deactivate"));
    let mut labels = Vec::new();
    until("its transitions", || {
        let event = events.take_next_sample().ok().flatten()?.into_value();
        labels.push(event.3.1);
        // The first ones are those of the start.
        labels.ends_with(&["deactivating".to_owned(), "inactive".to_owned()]).then_some(())
    });
    node.says("the node is inactive", 1);
    for _ in 0..20 {
        velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
    }
    node.says("cmd_vel: refused: the node is inactive, expected active", 1);
    let answer = until("a stop", || {
        stops.write(((7, 99), 0), None).unwrap();
        stopped.take_next_sample().ok().flatten()
    });
    assert!(answer.into_value().1);
    assert!(!change("configure"), "there is no such transition");
    assert!(change("cleanup"));
    let answer = until("a stop without states", || {
        stops.write(((7, 100), 0), None).unwrap();
        stopped.take_next_sample().ok().flatten().filter(|it| it.value().0.1 == 100)
    });
    assert!(answer.into_value().1);
    assert!(change("configure") && change("activate"));
    until("the base drives again", &mut drives);
}

/// Client and number of a request, as rmw_cyclonedds has them before the message.
type Header = (u64, u64);

// feature(ros2): `~/get_sdo`, `~/set_sdo`, `~/al_states` of the running bus
#[test]
fn objects_are_read_and_written_and_states_are_told_by_services() {
    let (folder, domain) = (Folder::new("objects"), domain(5));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let types = |service: &str| {
        let (package, name) = service.split_once('/').unwrap();
        ["Request_", "Response_"].map(|part| format!("{package}::srv::dds_::{name}_{part}"))
    };
    let (get, set, trigger) =
        (types("ethercat_msgs/GetSdo"), types("ethercat_msgs/SetSdo"), types("std_srvs/Trigger"));
    let gets = peer.writer::<(Header, (i16, u16, u16, u8, String))>("rq/onbeat/get_sdoRequest", &get[0]);
    let mut got = peer.reader::<(Header, bool, String, String, f64)>("rr/onbeat/get_sdoReply", &get[1]);
    let sets =
        peer.writer::<(Header, (i16, u16, u16, u8, String, String))>("rq/onbeat/set_sdoRequest", &set[0]);
    let mut done = peer.reader::<(Header, bool, String)>("rr/onbeat/set_sdoReply", &set[1]);
    let asks = peer.writer::<(Header, u8)>("rq/onbeat/al_statesRequest", &trigger[0]);
    let mut told = peer.reader::<(Header, bool, String)>("rr/onbeat/al_statesReply", &trigger[1]);

    let write = |kind: &str, value: &str| (0, 0, 0x6065, 0, kind.to_owned(), value.to_owned());
    let written = until("it is written", || {
        sets.write(((7, 1), write("uint32", "4000")), None).unwrap();
        done.take_next_sample().ok().flatten()
    });
    assert_eq!(written.into_value(), ((7, 1), true, String::new()));
    let read = until("it is read", || {
        gets.write(((7, 2), (0, 0, 0x6065, 0, "uint32".into())), None).unwrap();
        got.take_next_sample().ok().flatten()
    });
    assert_eq!(read.into_value(), ((7, 2), true, String::new(), "4000".into(), 4000.0));
    gets.write(((7, 3), (0, 0, 0x5FFF, 0, "uint32".into())), None).unwrap();
    let failed = until("it is refused", || {
        got.take_next_sample().ok().flatten().map(|it| it.into_value()).filter(|it| it.0.1 == 3)
    });
    assert_eq!((failed.1, failed.2.as_str()), (false, "object does not exist"));
    sets.write(((7, 4), write("uint8", "4000")), None).unwrap();
    let failed = until("it is refused", || {
        done.take_next_sample().ok().flatten().map(|it| it.into_value()).filter(|it| it.0.1 == 4)
    });
    assert!(!failed.1 && failed.2.contains("expected a whole number from 0 to 255"), "{failed:?}");
    sets.write(((7, 6), write("uint24", "4000")), None).unwrap();
    let failed = until("it is refused", || {
        done.take_next_sample().ok().flatten().map(|it| it.into_value()).filter(|it| it.0.1 == 6)
    });
    assert!(!failed.1 && failed.2.contains("found type \"uint24\""), "{failed:?}");
    let states = until("states", || {
        asks.write(((7, 5), 0), None).unwrap();
        told.take_next_sample().ok().flatten()
    });
    assert_eq!(states.into_value(), ((7, 5), true, "drive: Op".into()));
}

// feature(ros2): `~/sdo_information`, `~/bus_status` of the running bus
#[test]
fn the_object_dictionary_and_all_counters_are_told_by_services() {
    let (folder, domain) = (Folder::new("information"), domain(6));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |part: &str| format!("ethercat_msgs::srv::dds_::GetSdo_{part}_");
    let asks = peer.writer::<(Header, (i16, u16, u16, u8, String))>(
        "rq/onbeat/sdo_informationRequest",
        &kind("Request"),
    );
    let mut told = peer
        .reader::<(Header, bool, String, String, f64)>("rr/onbeat/sdo_informationReply", &kind("Response"));
    let mut ask = |number: u64, index: u16| {
        until("information", || {
            asks.write(((7, number), (0, 0, index, 0, String::new())), None).unwrap();
            let told = told.take_next_sample().ok().flatten().map(|it| it.into_value());
            // Asked this often, it may say so: then it is asked again.
            told.filter(|it| it.0.1 == number && !it.2.contains("ask again"))
        })
    };
    assert_eq!(ask(1, 0), ((7, 1), true, String::new(), "0x1018 0x6065".into(), 2.0));
    let (_, success, _, text, number) = ask(2, 0x6065);
    let entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(success && number == 7.0, "{text}");
    assert_eq!((entry["name"].as_str(), entry["type"].as_str()), (Some("Window"), Some("uint32")));
    assert_eq!((entry["bits"].as_u64(), entry["access"].as_u64()), (Some(32), Some(0xBF)));
    assert_eq!((entry["object"].as_str(), entry["object_code"].as_u64()), (Some("Window"), Some(7)));
    let (_, success, why, ..) = ask(3, 0x5FFF);
    assert_eq!((success, why.as_str()), (false, "object does not exist"));

    let trigger = |part: &str| format!("std_srvs::srv::dds_::Trigger_{part}_");
    let asks = peer.writer::<(Header, u8)>("rq/onbeat/bus_statusRequest", &trigger("Request"));
    let mut told = peer.reader::<(Header, bool, String)>("rr/onbeat/bus_statusReply", &trigger("Response"));
    let (_, success, text) = until("the state of the bus", || {
        asks.write(((7, 4), 0), None).unwrap();
        told.take_next_sample().ok().flatten()
    })
    .into_value();
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(success && status["sub_devices"][0]["state"] == "Op", "{text}");
    assert_eq!(status["sub_devices"][0]["errors"]["pdi_errors"], 3, "{text}");
}

/// diagnostic_msgs/DiagnosticArray.
type EventArray = (((i32, u32), String), Vec<(u8, String, String, String, Vec<(String, String)>)>);

// feature(ros2): `~/events`: state changes, emergencies, losses, returns, stops, with the numbers of their cycles
#[test]
fn events_of_the_bus_are_messages_with_the_numbers_of_their_cycles() {
    let (folder, domain) = (Folder::new("events"), domain(7));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let mut events =
        peer.reader::<EventArray>("rt/onbeat/events", "diagnostic_msgs::msg::dds_::DiagnosticArray_");
    let mut number = 0;
    let ((stamp, _), mut told) = until("an event", || {
        number += 1;
        let what = Happening::Emergency {
            position: 0,
            error_code: 0x2310,
            error_register: 2,
            data: Bytes(vec![0; 5]),
        };
        let sentence = "SubDevice 0 \"drive\" sends an emergency".to_owned();
        let end = |position| CableEnd { position, port: Some(1) };
        let between = Some([None, Some(4)].map(end));
        cycle.publish(Event {
            cycle: number,
            at_ns: 1,
            severity: Severity::Error,
            sentence,
            between,
            what,
        });
        events.take_next_sample().ok().flatten()
    })
    .into_value();
    let (level, name, message, robot, values) = told.remove(0);
    assert_eq!((level, name.as_str(), robot.as_str()), (2, "onbeat: emergency", "base"));
    assert_eq!(message, "SubDevice 0 \"drive\" sends an emergency");
    let value = |key: &str| values.iter().find(|(it, _)| it == key).map(|(_, value)| value.as_str());
    let cycle: u64 = value("cycle").unwrap().parse().unwrap();
    assert!((1..=number).contains(&cycle), "{values:?}");
    assert_eq!((value("error_code"), value("position")), (Some("8976"), Some("0")), "{values:?}");
    assert_eq!(
        (value("between.1.position"), value("between.1.port")),
        (Some("4"), Some("1")),
        "{values:?}"
    );
    assert_eq!(value("between.0.position"), Some("null"), "{values:?}");
    assert!(stamp.0 > 0, "{stamp:?}");
}

/// controller_manager_msgs/ControllerManagerActivity: names with the numbers and labels of their states.
type Activity = (((i32, u32), String), Vec<(String, (u8, String))>, Vec<(String, (u8, String))>);

/// controller_manager_msgs/SwitchController: activate, deactivate, strictness, as soon as possible, time-out.
type SwitchController = (Vec<String>, Vec<String>, i32, bool, (i32, u32));

// feature(ros2): the node `controller_manager`: services of controller_manager_msgs, and its activity to whoever comes late
#[test]
fn a_controller_is_deactivated_unloaded_and_spawned_by_services() {
    let (folder, domain) = (Folder::new("manager"), domain(10));
    let cycle = Cycle::start(&folder.0);
    let node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |name: &str| format!("controller_manager_msgs::srv::dds_::{name}_");
    let service = |name: &str| ["rq", "rr"].map(|it| format!("{it}/controller_manager/{name}"));
    let [request, reply] = service("switch_controller");
    let switches = peer.writer::<(Header, SwitchController)>(
        &format!("{request}Request"),
        &kind("SwitchController_Request"),
    );
    let mut switched =
        peer.reader::<(Header, bool, String)>(&format!("{reply}Reply"), &kind("SwitchController_Response"));
    let mut number = 0;
    let mut switch = |on: &[&str], off: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect();
        number += 1;
        until("an answer", || {
            let asked = (names(on), names(off), 2, false, (5, 0));
            switches.write(((7, number), asked), None).unwrap();
            let (header, ok, why) = switched.take_next_sample().ok().flatten()?.into_value();
            (header == (7, number)).then_some((ok, why))
        })
    };
    // Each may be asked for more than once until the first answer comes: judged is where it leads.
    let _ = switch(&[], &["drive"]);
    let (ok, why) = switch(&[], &["drive"]);
    assert_eq!((ok, why.as_str()), (false, "controller `drive` is not active"));
    let mut activity = peer.latched_reader::<Activity>(
        "rt/controller_manager/activity",
        "controller_manager_msgs::msg::dds_::ControllerManagerActivity_",
    );
    let mut comes_to = |wanted: &[(&str, u8)]| {
        until("activity", || {
            let (_, controllers, components) = activity.take_next_sample().ok().flatten()?.into_value();
            assert_eq!((components.len(), components[0].0.as_str()), (1, "base"));
            let found: Vec<_> = controllers.iter().map(|(name, (id, _))| (name.as_str(), *id)).collect();
            (found == wanted).then_some(())
        });
    };
    comes_to(&[("drive", 2)]);
    let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
    until("a refusal", || {
        velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
        node.said().contains("cmd_vel: refused: no controller is active").then_some(())
    });
    let mut calls = ["unload_controller", "load_controller", "configure_controller"].map(|name| {
        let [request, reply] = service(name);
        let mut words = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        let class: String = words.by_ref().collect();
        (
            peer.writer::<(Header, String)>(
                &format!("{request}Request"),
                &kind(&format!("{class}_Request")),
            ),
            peer.reader::<(Header, bool)>(&format!("{reply}Reply"), &kind(&format!("{class}_Response"))),
        )
    });
    let mut call = |place: usize, name: &str| {
        let (requests, replies) = &mut calls[place];
        until("an answer", || {
            requests.write(((7, 1), name.to_owned()), None).unwrap();
            replies.take_next_sample().ok().flatten()
        })
        .into_value();
    };
    call(0, "drive");
    comes_to(&[]);
    call(0, "nobody");
    call(1, "drive");
    comes_to(&[("drive", 1)]);
    assert!(!switch(&["drive"], &[]).0, "it is not configured");
    call(2, "drive");
    let (ok, why) = switch(&["drive"], &[]);
    assert!(ok, "{why}");
    comes_to(&[("drive", 3)]);
}

// feature(ros2): a cycle that ends is waited for and attached to again
#[test]
fn a_cycle_that_ends_is_waited_for_and_attached_to_again() {
    let (folder, domain) = (Folder::new("restart"), domain(1));
    let cycle = Cycle::start(&folder.0);
    let path = cycle.path().to_owned();
    let mut node = Node::start(&folder.0, &path, domain);
    node.says("attached to `base`", 1);
    drop(cycle);
    node.says("the cycle has ended", 1);
    let again = Cycle::start(&folder.0);
    assert_eq!(again.path(), path);
    let peer = Peer::join(domain);
    let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
    until("odometry of the new cycle", || odometry.take_next_sample().ok().flatten());
}

// feature(ros2): hashes of types (RIHS01) in discovery; peers know of an orderly end at once
#[test]
fn the_node_tells_the_hashes_of_its_types_and_takes_its_leave() {
    let (folder, domain) = (Folder::new("leave"), domain(8));
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let events = peer.participant.status_listener();
    let writer = until("the writer of /odom", || match events.try_recv_status()? {
        DomainParticipantStatusEvent::WriterDetected { writer } if writer.topic_name == "rt/odom" => {
            Some(writer)
        }
        _ => None,
    });
    // As `ros2 topic info -v` has it of a genuine publisher of nav_msgs/Odometry.
    let hash = "RIHS01_3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0";
    assert_eq!(String::from_utf8(writer.user_data).unwrap(), format!("typehash={hash};"));
    assert!(node.ends());
    let reason = until("its leave", || match events.try_recv_status()? {
        DomainParticipantStatusEvent::ParticipantLost { id, reason } if id == writer.guid.prefix => {
            Some(reason)
        }
        _ => None,
    });
    assert!(matches!(reason, LostReason::Disposed), "without a leave its lease runs out: {reason:?}");
}

/// Forged participants, each of which every implementation would have to remember.
const FORGED: u32 = 20_000;

// feature(ros2): a flood of forged participants costs neither memory nor, afterwards, time; peers that are there stay
#[test]
fn a_flood_of_forged_participants_leaves_the_node_as_it_was() {
    let (folder, domain) = (Folder::new("flood"), domain(9));
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
    let mut heard = || odometry.take_next_sample().ok().flatten().map(drop);
    until("odometry", &mut heard);
    let before = node.memory();
    let sent = forge_participants(domain, FORGED);
    until("odometry after the flood", &mut heard);
    let grown = node.memory().saturating_sub(before);
    assert!(grown < sent / 4, "grown by {grown} bytes, {sent} were sent");
    // Used to be a whole CPU, for good.
    until("rest", || {
        let (start, ticks) = (Instant::now(), node.ticks());
        std::thread::sleep(Duration::from_secs(1));
        let used = (node.ticks() - ticks) as f64 / rustix::param::clock_ticks_per_second() as f64;
        (used < start.elapsed().as_secs_f64() / 4.0).then_some(())
    });
    assert!(node.ends());
}

/// A peer that sends nonsense can make RustDDS grow without bound: that must not cost the cycle its memory.
// feature(ros2): bounded in memory, and the first to go
#[test]
fn the_node_is_bounded_in_memory_and_the_first_to_go() {
    let folder = Folder::new("memory");
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain(2));
    node.says("attached to `base`", 1);
    let limits = node.about("limits");
    let data = limits.lines().find(|line| line.starts_with("Max data size")).unwrap();
    assert_eq!(data.split_whitespace().nth(3), Some("1073741824"), "{data}");
    assert_eq!(node.about("oom_score_adj").trim(), "1000");
}

#[test]
fn wrong_options_are_told_and_not_tried() {
    let run = |arguments: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_onbeat-ros2")).args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run(&["--node-name", "a b"]).contains("node name `a b`"));
    assert!(run(&["--param", "odom_rate:=-1"]).contains("expected 0.1 to 1000"));
    assert!(run(&["--param", "no:=1"]).contains("there are autostart, base_frame"));
    assert!(run(&["--domain", "300"]).contains("300"));
}

/// Command lines that the launch file makes of these arguments.
fn launched(folder: &Folder, arguments: &[&str]) -> Vec<Vec<String>> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = std::process::Command::new("python3");
    python
        .arg(here.join("tests/support/launch.py"))
        .arg(here.join("../../packaging/launch/onbeat.launch.py"));
    let output = python.arg(&folder.0).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

// feature(ros2): a launch file: robot file, namespace, parameters
#[test]
fn the_launch_file_starts_the_cycle_and_the_node() {
    let (folder, domain) = (Folder::new("launch"), domain(12));
    let robot = launched(&folder, &["robot:=/etc/onbeat/cell.toml", "iface:=enp3s0", "network:=10.0.0.5"]);
    let [cycle, node] = robot.as_slice() else { panic!("{robot:?}") };
    let expected = ["onbeat", "run", "/etc/onbeat/cell.toml", "--ipc", "cell", "--iface", "enp3s0"];
    assert_eq!(*cycle, expected);
    let expected =
        ["onbeat-ros2", "--ipc", "cell", "--network", "10.0.0.5", "--ros-args", "--log-level", "info"];
    assert_eq!(node[..8], expected);
    assert_eq!(node[8..10], ["-r", "__node:=onbeat"]);

    // The node's own line starts one that attaches, and has what the arguments say.
    let cycle = Cycle::start(&folder.0);
    let file = folder.0.join("cell.yaml");
    std::fs::write(&file, "/**:\n  ros__parameters: {base_frame: cell_base, autostart: true}\n").unwrap();
    let [ipc, file] = [cycle.path(), &file].map(|path| path.to_str().unwrap());
    let given = [
        format!("ipc:={ipc}"),
        format!("params_file:={file}"),
        "namespace:=cell".into(),
        "autostart:=false".into(),
    ];
    let made = launched(&folder, &given.each_ref().map(String::as_str));
    let [line] = made.as_slice() else { panic!("{made:?}") };
    let line: Vec<&str> = line[1..].iter().map(String::as_str).collect();
    assert_eq!(line[..2], ["--ipc", ipc]);
    let mut node = Node::with(&folder.0, cycle.path(), domain, &line[2..]);
    node.says("attached to `base`", 1);
    let peer = Peer::join(domain);
    let asks = peer.writer::<(Header, u8)>(
        "rq/cell/onbeat/get_stateRequest",
        "lifecycle_msgs::srv::dds_::GetState_Request_",
    );
    let mut told = peer.reader::<(Header, LifecycleState)>(
        "rr/cell/onbeat/get_stateReply",
        "lifecycle_msgs::srv::dds_::GetState_Response_",
    );
    let state = until("its state", || {
        asks.write(((7, 1), 0), None).unwrap();
        told.take_next_sample().ok().flatten()
    });
    assert_eq!(state.into_value().1, (1, "unconfigured".to_owned()));
}
