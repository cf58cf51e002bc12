//! Allocation test of the real-time ends: a counting allocator sees that publishing, reading
//! commands, sending and receiving ask for no memory.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::io::Write;
use std::time::Duration;

use onbeat_ipc::channel::Kind;
use onbeat_ipc::client::Client;
use onbeat_ipc::command::{AxisTarget, Command, Read};
use onbeat_ipc::units::Radians;
use support::{Folder, state};
use testkit::CountingAllocator;
use testkit::allocations::{self, calls_of};
use types::Value;

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

// feature(ipc): the real-time ends ask for no memory, and make no system call
#[test]
fn the_real_time_ends_ask_for_no_memory() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    let mut messages = builder.port("messages", Kind::Message { size: 32, depth: 4 }).unwrap();
    let mut stream = builder.port("stream", Kind::Stream { size: 64 }).unwrap();
    messages.bind();
    stream.bind();
    let (mut ends, _door) = builder.open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    let mut channel = ipc.port("messages").unwrap();
    let mut command = ends.command.blank();
    let mut now = state(0);
    let (mut heard, mut forced) = (0, 0);
    for cycle in 0..200 {
        // Each holder has a separate region: the transition from one to the next is watched too.
        let mut writer = ipc.command().unwrap();
        let axes = vec![Some(AxisTarget::Position(Radians(1.0))), None];
        let signals = vec![Some(Value::Bool(true)), Some(Value::Signed(-1))];
        writer.send(&Command { axes, signals, ..Command::default() }).unwrap();
        ipc.force(1, Value::Bool(true), Duration::from_secs(1)).unwrap();
        channel.write_all(b"request").unwrap();
        let asked = calls_of(|| {
            let mut buffer = [0; 32];
            heard += u64::from(ends.command.newest(&mut command) == Read::New);
            forced += u64::from(ends.forces.poll().is_some());
            while messages.receive(&mut buffer).is_some() {}
            for _ in 0..8 {
                let _ = (messages.send(b"reply"), stream.send(b"bytes"), stream.receive(&mut buffer));
            }
            now.cycle = cycle;
            ends.state.publish(&now);
        });
        assert_eq!(asked, 0, "in cycle {cycle}");
    }
    assert_eq!((heard, forced), (200, 200));
    assert!(
        calls_of(|| drop(std::hint::black_box(Box::new(1)))) > 0,
        "the allocator sees what there is to see"
    );
}
