//! The node `controller_manager`.

use super::support::{Cycle, Folder, Node, Peer, until};
use super::{Header, Twist, domain};

/// controller_manager_msgs/ControllerManagerActivity: names with the numbers and labels of their
/// states.
type Activity = (((i32, u32), String), Vec<(String, (u8, String))>, Vec<(String, (u8, String))>);

/// controller_manager_msgs/SwitchController: activate, deactivate, strictness, as soon as possible,
/// time-out.
type SwitchController = (Vec<String>, Vec<String>, i32, bool, (i32, u32));

// feature(ros2): the node `controller_manager`: services of controller_manager_msgs, and its activity for late subscribers
#[test]
fn a_controller_is_deactivated_unloaded_and_spawned_by_services() {
    let (folder, domain) = (Folder::new("manager"), domain(10));
    let cycle = Cycle::start(&folder.0);
    let node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |name: &str| format!("controller_manager_msgs::srv::dds_::{name}_");
    let service = |name: &str| ["rq", "rr"].map(|it| format!("{it}/controller_manager/{name}"));
    let [request, reply] = service("switch_controller");
    let switches = peer.client::<(Header, SwitchController)>(
        &format!("{request}Request"),
        &kind("SwitchController_Request"),
    );
    let mut switched =
        peer.reader::<(Header, bool, String)>(&format!("{reply}Reply"), &kind("SwitchController_Response"));
    let mut number = 0;
    let mut switch = |on: &[&str], off: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect();
        number += 1;
        switches.write(((7, number), (names(on), names(off), 2, false, (5, 0))), None).unwrap();
        let (header, ok, why) =
            until("an answer", || switched.take_next_sample().ok().flatten()).into_value();
        assert_eq!(header, (7, number));
        (ok, why)
    };
    assert!(switch(&[], &["drive"]).0);
    let (ok, why) = switch(&[], &["drive"]);
    assert_eq!((ok, why.as_str()), (false, "controller `drive` is not active"));
    let mut activity = peer.latched_reader::<Activity>(
        "rt/controller_manager/activity",
        "controller_manager_msgs::msg::dds_::ControllerManagerActivity_",
    );
    let mut comes_to = |wanted: &[(&str, u8)]| {
        let wanted = [wanted, &[("joint_state_broadcaster", 3), ("left_foot", 3)]].concat();
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
            peer.client::<(Header, String)>(
                &format!("{request}Request"),
                &kind(&format!("{class}_Request")),
            ),
            peer.reader::<(Header, bool)>(&format!("{reply}Reply"), &kind(&format!("{class}_Response"))),
        )
    });
    let mut call = |place: usize, name: &str| {
        let (requests, replies) = &mut calls[place];
        requests.write(((7, 1), name.to_owned()), None).unwrap();
        until("an answer", || replies.take_next_sample().ok().flatten()).into_value().1
    };
    assert!(call(0, "drive"));
    comes_to(&[]);
    assert!(!call(0, "nobody"));
    assert!(call(1, "drive"));
    comes_to(&[("drive", 1)]);
    assert!(!switch(&["drive"], &[]).0, "it is not configured");
    assert!(call(2, "drive"));
    let (ok, why) = switch(&["drive"], &[]);
    assert!(ok, "{why}");
    comes_to(&[("drive", 3)]);
}
