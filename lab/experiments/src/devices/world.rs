//! Client that reads the ports of all devices and drives the wheels, as a ROS node would.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ::devices::{Kind, Peripheral};
use ipc::channel::Channel;
use ipc::client::Client;
use ipc::sensor::WheelRequest;

/// Reading threads, one for each device.
pub(super) struct World {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<[u64; 2]>>,
}

impl World {
    pub(super) fn listen(
        peripherals: &[Peripheral],
        ipc: &Path,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let client = Client::open(ipc)?;
        let mut world = Self { stop: Arc::default(), threads: Vec::new() };
        for it in peripherals {
            let channel = client.port(&it.port)?;
            let stop = Arc::clone(&world.stop);
            let drives = matches!(it.kind, Kind::Actuators { .. });
            let thread = thread::Builder::new().name(format!("{} world", it.name));
            world.threads.push(thread.spawn(move || receive(&channel, drives, &stop))?);
        }
        Ok(world)
    }

    /// Ends the threads; returns messages and stale ones, by device.
    pub(super) fn end(mut self) -> Vec<[u64; 2]> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).map(|thread| thread.join().unwrap_or_default()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn receive(channel: &Channel, drives: bool, stop: &AtomicBool) -> [u64; 2] {
    let mut bytes = vec![0; 65_536];
    let (mut count, mut turn) = ([0; 2], 0.0_f64);
    while !stop.load(Ordering::Relaxed) {
        match channel.recv_timeout(&mut bytes, Duration::from_millis(50)) {
            Ok(Some(_)) => {
                count[0] += 1;
                // The flags are in the third byte of every message.
                count[1] += u64::from(bytes[2] & 1);
            }
            Ok(None) => {}
            Err(_) => break,
        }
        // Every fifth message of 10 ms: the planner's 50 ms.
        if drives && count[0] % 5 == 1 {
            turn += 0.05;
            let velocities = [3.0 + turn.sin(), 3.0 - turn.sin()];
            let mut request = [0; WheelRequest::SIZE];
            let request_made = WheelRequest { velocities, holds_ms: 200 }.encode(&mut request);
            if request_made.is_some() {
                let _ = channel.send_timeout(&request, Duration::from_millis(10));
            }
        }
    }
    count
}
