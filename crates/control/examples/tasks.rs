//! Two real-time tasks, a ring between them, and a channel to an ordinary thread; both tasks under
//! watch.

use std::error::Error;
use std::time::Duration;

use diagnose::disturbance::{Detail, Watch};
use ipc::channel::Kind;
use ipc::client::Client;
use ipc::description::Description;
use ipc::ring;
use ipc::server::Builder;
use rt::task::Settings;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("onbeat-tasks-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let mut ipc = Builder::new("tasks", &Description::default());
    ipc.folder(&folder);
    let mut port = ipc.port("distance", Kind::Message { size: 8, depth: 16 })?;
    let (_ends, server) = ipc.open()?;
    let (mut to_actuator, mut from_sensor) = ring::bounded(4);

    let settings = Settings::every("sensor", Duration::from_millis(5)).with_priority(60);
    let (sensor, _) = settings.create_loop(move |periods| {
        port.bind();
        while let Some(release) = periods.wait_period() {
            let distance = (release.cycle as f64 / 50.0).sin().abs();
            to_actuator.send(distance);
            // Full, because no client reads: refused and counted.
            let _ = port.send(&distance.to_le_bytes());
        }
    })?;
    let settings = Settings::every("actuator", Duration::from_millis(2)).with_priority(70);
    let (actuator, _) = settings.create(move |_job| {
        std::hint::black_box(from_sensor.by_ref().last());
    })?;

    let watch = Watch::start(Detail::Backtraces)?;
    [sensor.subject(), actuator.subject()].into_iter().for_each(|subject| watch.add(subject));
    sensor.start();
    actuator.start();
    let channel = Client::open(server.path())?.port("distance")?;
    let mut message = [0; 8];
    for _ in 0..200 {
        channel.recv_timeout(&mut message, Duration::from_secs(1))?;
    }
    println!("the last distance: {:.3} m", f64::from_le_bytes(message));
    for (task, disturbed) in [sensor, actuator].into_iter().zip(watch.read()) {
        println!("{}: {}", task.name(), task.grants());
        println!("  {:?}\n  {:?}", task.join()?.live.response, disturbed.counts);
        disturbed.firsts.iter().for_each(|first| println!("  first {first}"));
    }
    drop(server);
    Ok(std::fs::remove_dir(&folder)?)
}
