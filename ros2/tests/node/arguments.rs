//! Arguments of ROS, options, and the launch file.

use super::support::{Cycle, Folder, Node, Peer, until};
use super::{Header, LifecycleState, Odometry, domain};

/// tf2_msgs/TFMessage.
type Transforms = Vec<(((i32, u32), String), String, [f64; 7])>;

// feature(ros2): `--ros-args` from end to end, and `/tf_static` for late subscribers
#[test]
fn names_and_parameters_come_from_the_ros_arguments() {
    let (folder, domain) = (Folder::new("ros-args"), domain(14));
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

#[test]
fn wrong_options_are_reported_and_not_tried() {
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
        .arg(here.join("tests/node/support/launch.py"))
        .arg(here.join("../packaging/launch/onbeat.launch.py"));
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
    let asks = peer.client::<(Header, u8)>(
        "rq/cell/onbeat/get_stateRequest",
        "lifecycle_msgs::srv::dds_::GetState_Request_",
    );
    let mut told = peer.reader::<(Header, LifecycleState)>(
        "rr/cell/onbeat/get_stateReply",
        "lifecycle_msgs::srv::dds_::GetState_Response_",
    );
    asks.write(((7, 1), 0), None).unwrap();
    let state = until("its state", || told.take_next_sample().ok().flatten());
    assert_eq!(state.into_value().1, (1, "unconfigured".to_owned()));
}
