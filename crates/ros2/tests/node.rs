//! `onbeat-ros2` beside a cycle, as its user sees it.
#![allow(clippy::unwrap_used, reason = "a test says where it fails")]
#![allow(missing_docs, unreachable_pub, reason = "tests and what they share")]

mod support;

use serde::{Deserialize, Serialize};
use support::{Cycle, Folder, Node, Peer, until};

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
    for nonsense in [f64::NAN, f64::INFINITY, 1.5] {
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
    assert_eq!(got.values[1].1, [1.0, -2.0, 300.0, 0.25, 0.5, -0.75]);
    let mut wrenches =
        peer.reader::<Wrench>("rt/left_foot/wrench", "geometry_msgs::msg::dds_::WrenchStamped_");
    let got = until("a wrench", || wrenches.take_next_sample().ok().flatten()).into_value();
    assert_eq!((got.frame.as_str(), got.wrench), ("sole", [1.0, -2.0, 300.0, 0.25, 0.5, -0.75]));
    assert!(got.stamp.0 > 1_700_000_000, "{got:?}");
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
    assert!(run(&["--param", "no:=1"]).contains("there are base_frame"));
    assert!(run(&["--domain", "300"]).contains("300"));
}
