//! `onbeat-ros2` with a cycle, from the user's point of view.
#![allow(clippy::unwrap_used, reason = "a test says where it fails")]
#![allow(missing_docs, unreachable_pub, reason = "tests and what they share")]

mod arguments;
mod fence;
mod lifecycle;
mod manager;
mod services;
mod support;

use std::time::{Duration, Instant};

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

/// control_msgs/DynamicInterfaceGroupValues.
type SetValues = ((i32, u32), String, Vec<String>, Vec<(Vec<String>, Vec<f64>)>);

/// Client and number of a request, as rmw_cyclonedds has them before the message.
type Header = (u64, u64);

/// lifecycle_msgs/State and Transition, and a request for one.
type LifecycleState = (u8, String);

/// Odometry messages, 50 a second, during which the base must rest.
const RESTING: u32 = 75;

/// A domain that is probably unique to this test: `offset` separates the tests of one process.
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
    // On a loaded machine a command may still be in transit: the base rests when it has rested for
    // a while.
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

// feature(ros2): a node that was suspended (Ctrl-Z, a sleeping machine) is found by new peers, and obeys them
#[test]
fn a_suspended_node_is_found_by_new_peers_and_obeys_them() {
    let (folder, domain) = (Folder::new("suspended"), domain(15));
    let cycle = Cycle::start(&folder.0);
    let node = Node::start(&folder.0, cycle.path(), domain);
    let drives = |times: u32| {
        let peer = Peer::join(domain);
        let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
        let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
        until(&format!("the base drives, {times} times suspended"), || {
            velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
            odometry.take_next_sample().ok().flatten().filter(|it| it.value().twist[0] > 0.0)
        });
    };
    drives(0);
    for times in 1..=3 {
        node.is_suspended();
        drives(times);
    }
}

// feature(ros2): after a flood and a suspension of 5 s the node is there again by itself; its command has gone stale, the base rests
#[test]
fn a_node_that_was_flooded_and_suspended_comes_back_by_itself() {
    let (folder, domain) = (Folder::new("deaf"), domain(17));
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain);
    let drive = |peer: &Peer| {
        let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
        let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
        let mut speed = || Some(odometry.take_next_sample().ok().flatten()?.value().twist[0]);
        // Read before a command: the node may need longer to find the reader than the writer.
        let first = until("odometry", &mut speed);
        until("the base drives", || {
            velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
            speed().filter(|&speed| speed > 0.0)
        });
        first
    };
    drive(&Peer::join(domain));
    forge_participants(domain, FORGED);
    node.is_suspended_for(Duration::from_secs(5));
    let resumed = Instant::now();
    node.says("of DDS has ended: starts again", 1);
    node.says("attached to `base`", 2);
    println!("attached again {:?} after the suspension", resumed.elapsed());
    let first = drive(&Peer::join(domain));
    assert!(first.abs() < 1e-6, "the first speed after the suspension is {first}");
    node.stops();
    node.goes_on();
    assert!(node.ends(), "told to end while it was about to start again");
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
fn signals_are_published_and_a_sensor_as_a_wrench() {
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
fn a_message_sets_an_output_and_an_input_is_refused_by_name() {
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
fn the_node_publishes_type_hashes_and_leaves_cleanly() {
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
    // RustDDS hands it out with the length before it, and filled up to a multiple of four.
    let user_data = String::from_utf8(writer.user_data[4..].to_vec()).unwrap();
    assert_eq!(user_data.trim_end_matches('\0'), format!("typehash={hash};"));
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

// feature(ros2): a flood of forged participants costs twice its bytes of memory, and afterwards no time; peers that are there stay
#[test]
fn a_flood_of_forged_participants_leaves_the_node_at_work() {
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
    // RustDDS keeps them. The watchdog and the memory limit are the bound.
    assert!(grown < sent * 4, "grown by {grown} bytes, {sent} were sent");
    println!("grown by {grown} bytes, {sent} were sent");
    // Used to be a whole CPU, for good.
    until("rest", || {
        let (start, ticks) = (Instant::now(), node.ticks());
        std::thread::sleep(Duration::from_secs(1));
        let used = (node.ticks() - ticks) as f64 / rustix::param::clock_ticks_per_second() as f64;
        (used < start.elapsed().as_secs_f64() / 4.0).then_some(())
    });
    assert!(node.ends());
}

/// A peer that sends nonsense can make RustDDS grow without bound: that must not cost the cycle its
/// memory.
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
