//! A managed node.

use ipc::client::Client;
use ipc::state::{Axis, DriveState};

use super::support::{Cycle, Folder, Node, Peer, until};
use super::{Header, LifecycleState, Odometry, Twist, domain};

// feature(ros2): a managed node: `~/change_state`, `~/get_state`, `~/transition_event`; a stop works in every state
#[test]
fn a_node_that_is_deactivated_moves_nothing_and_still_stops() {
    let (folder, domain) = (Folder::new("lifecycle"), domain(11));
    let cycle = Cycle::start(&folder.0);
    let mut node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |part: &str| format!("lifecycle_msgs::srv::dds_::{part}_");
    let asks = peer
        .client::<(Header, LifecycleState)>("rq/onbeat/change_stateRequest", &kind("ChangeState_Request"));
    let mut told =
        peer.reader::<(Header, bool)>("rr/onbeat/change_stateReply", &kind("ChangeState_Response"));
    let mut events = peer.reader::<(u64, LifecycleState, LifecycleState, LifecycleState)>(
        "rt/onbeat/transition_event",
        "lifecycle_msgs::msg::dds_::TransitionEvent_",
    );
    let trigger = |part: &str| format!("std_srvs::srv::dds_::Trigger_{part}_");
    let stops = peer.client::<(Header, u8)>("rq/onbeat/stopRequest", &trigger("Request"));
    let mut stopped = peer.reader::<(Header, bool, String)>("rr/onbeat/stopReply", &trigger("Response"));
    let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
    let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
    let mut drives = || {
        velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
        odometry.take_next_sample().ok().flatten().filter(|it| it.value().twist[0] > 0.4).map(drop)
    };
    until("the base drives", &mut drives);
    let mut number = 0;
    let mut change = |label: &str| {
        number += 1;
        asks.write(((7, number), (0, label.to_owned())), None).unwrap();
        let answer = until(label, || told.take_next_sample().ok().flatten()).into_value();
        assert_eq!(answer.0.1, number);
        answer.1
    };
    assert!(!change("dance"));
    assert!(change("deactivate"));
    let mut labels = Vec::new();
    until("its transitions", || {
        let event = events.take_next_sample().ok().flatten()?.into_value();
        labels.push(event.3.1);
        // The first transitions belong to the start.
        labels.ends_with(&["deactivating".to_owned(), "inactive".to_owned()]).then_some(())
    });
    node.says("the node is inactive", 1);
    for _ in 0..20 {
        velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
    }
    node.says("cmd_vel: refused: the node is inactive, expected active", 1);
    stops.write(((7, 99), 0), None).unwrap();
    let answer = until("a stop", || stopped.take_next_sample().ok().flatten());
    assert!(answer.into_value().1);
    assert!(!change("configure"), "there is no such transition");
    assert!(change("cleanup"));
    stops.write(((7, 100), 0), None).unwrap();
    let answer = until("a stop without states", || stopped.take_next_sample().ok().flatten()).into_value();
    assert!(answer.0.1 == 100 && answer.1);
    assert!(change("configure") && change("activate"));
    until("the base drives again", &mut drives);
}

// feature(ros2): an activation that fails disables the drives that it has enabled
#[test]
fn a_failed_activation_leaves_no_drive_enabled() {
    let fault = Axis { drive_state: DriveState::Fault as u8, error_code: 0x7305, ..Axis::default() };
    let (folder, domain) = (Folder::new("activation"), domain(22));
    let cycle = Cycle::with_axis(&folder.0, fault);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |part: &str| format!("lifecycle_msgs::srv::dds_::{part}_");
    let asks = peer
        .client::<(Header, LifecycleState)>("rq/onbeat/change_stateRequest", &kind("ChangeState_Request"));
    let mut answers =
        peer.reader::<(Header, bool)>("rr/onbeat/change_stateReply", &kind("ChangeState_Response"));
    let mut change = |number: u64, label: &str| {
        asks.write(((7, number), (0, label.to_owned())), None).unwrap();
        until(label, || answers.take_next_sample().ok().flatten()).into_value().1
    };
    assert!(change(1, "deactivate"));
    assert!(!change(2, "activate"), "its drive is in fault");
    let client = Client::open(cycle.path()).unwrap();
    let enabled = || client.state().read().unwrap().control.enabled;
    until("the drives are disabled", || (!enabled()).then_some(()));
}
