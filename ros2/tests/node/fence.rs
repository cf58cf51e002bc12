//! A node and a second computer at the other end of a cable.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, recv, socket};
use testkit::{Side, Testbed};

use super::support::{Cycle, Folder, Node, Peer, until};
use super::{Odometry, Twist, domain};

const NEAR: [u8; 4] = [10, 93, 8, 1];
const FAR: [u8; 4] = [10, 93, 8, 2];

/// Time for which the second computer listens, and commands: discovery takes some 0.1 s where there
/// is no fence.
const LISTENED: Duration = Duration::from_secs(4);

/// Gives both ends of the cable their addresses.
fn addressed(testbed: &Testbed) {
    for (side, [a, b, c, d]) in [(Side::Near, NEAR), (Side::Far, FAR)] {
        let mut ip = Command::new("ip");
        ip.args(["address", "add", &format!("{a}.{b}.{c}.{d}/24"), "dev", side.interface()]);
        assert!(testbed.run_in(side, ip).status().unwrap().success());
    }
}

/// Packets that the second computer receives from the first, by the number of their IP protocol.
struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<u8>>,
}

/// Protocols of IP. With IGMP the kernel reports multicast groups to routers.
const UDP: u8 = 17;
const IGMP: u8 = 2;

impl Capture {
    fn start(testbed: &Testbed) -> Self {
        let every = Protocol::from_raw(u32::from(0x0003_u16.to_be()).try_into().unwrap());
        let open = || socket(AddressFamily::PACKET, SocketType::RAW, Some(every)).unwrap();
        let socket = testbed.inside(Side::Far, open);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut found, mut frame) = (Vec::new(), [0; 64]);
            loop {
                match recv(&socket, frame.as_mut_slice(), RecvFlags::DONTWAIT) {
                    Ok(_) if frame[12..14] == [8, 0] && frame[26..30] == NEAR => found.push(frame[23]),
                    Ok(_) => (),
                    Err(_) if stopped.load(Ordering::Relaxed) => return found,
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Self { stop, thread }
    }

    fn end(self) -> Vec<u8> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Commands from the second computer for some time; true if the node received one, or the computer
/// discovered the node.
fn reaches(testbed: &Testbed, domain: u16) -> bool {
    testbed.inside(Side::Far, || {
        let peer = Peer::join_over(domain, FAR);
        let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
        let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
        let until = std::time::Instant::now() + LISTENED;
        let mut heard = false;
        while std::time::Instant::now() < until {
            velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
            heard |= odometry.take_next_sample().ok().flatten().is_some();
            std::thread::sleep(Duration::from_millis(20));
        }
        heard
    })
}

/// The base's speed, as a program of the node's computer sees it over the cable's interface.
fn speed_over_the_interface(testbed: &Testbed, domain: u16) -> f64 {
    testbed.inside(Side::Near, || {
        let peer = Peer::join_over(domain, NEAR);
        let mut odometry = peer.reader::<Odometry>("rt/odom", "nav_msgs::msg::dds_::Odometry_");
        let velocity = peer.writer::<Twist>("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
        until("the base follows a program of its own computer", || {
            velocity.write(Twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]), None).unwrap();
            let speed = odometry.take_next_sample().ok().flatten()?.value().twist[0];
            (speed > 0.0).then_some(speed)
        })
    })
}

// feature(ros2): closed to other computers without options: no datagram leaves, none is taken; its own programs reach it over any interface
#[test]
fn without_options_no_datagram_leaves_and_none_is_taken() {
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return println!("skipped: {skip}"),
    };
    addressed(&testbed);
    let (folder, domain) = (Folder::new("fence"), domain(21));
    let cycle = Cycle::start(&folder.0);
    let start = |more: &[&str]| {
        let command = testbed.run_in(Side::Near, Node::command(cycle.path(), domain, more));
        let mut node = Node::from_command(&folder.0, command);
        node.says("attached to `base`", 1);
        node
    };
    let capture = Capture::start(&testbed);
    let mut node = start(&[]);
    assert!(!reaches(&testbed, domain), "the second computer heard the node");
    let left = capture.end();
    assert!(left.iter().all(|&protocol| protocol == IGMP), "protocols of what left: {left:?}");
    assert!(speed_over_the_interface(&testbed, domain) > 0.0);
    assert!(node.ends());
    let capture = Capture::start(&testbed);
    let mut node = start(&["--network", "10.93.8.1"]);
    assert!(reaches(&testbed, domain), "the second computer hears a node that is open");
    assert!(node.ends() && capture.end().contains(&UDP));
}
