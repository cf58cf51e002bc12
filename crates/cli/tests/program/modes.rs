//! Position, velocity and torque of an axis, whatever the mode it is moved in.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ipc::client::Client;
use ipc::command::{AxisTarget, Command};
use motion::NewtonMetres;
use record::{Recording, process_data};

use crate::common::{Running, await_cycles, file, finished, folder, onbeat, shared};
use crate::serve::Served;
use crate::signals::interrupt;

/// A drive that maps all supported targets and actual values.
const ROBOT: &str = r#"
name = "modes"

[cycle]
period = "1ms"
outage_time = "2s"                 # of a machine that is busy with other tests
after_outage = "resume"

[device.drive]
identity = { vendor_id = 0xFFFF_0B01, product_code = 0x0000_0403 }

[device.drive.pdos]
outputs = [{ index = 0x1600, entries = [
    { index = 0x6040, bits = 16, name = "controlword" },
    { index = 0x607A, bits = 32, name = "target position" },
    { index = 0x60FF, bits = 32, name = "target velocity" },
    { index = 0x6071, bits = 16, name = "target torque" },
] }]
inputs = [{ index = 0x1A00, entries = [
    { index = 0x6041, bits = 16, name = "statusword" },
    { index = 0x6064, bits = 32, name = "position actual value" },
    { index = 0x606C, bits = 32, name = "velocity actual value" },
    { index = 0x6077, bits = 16, name = "torque actual value" },
] }]

[device.drive.simulate]
kind = "servo_drive"
encoder_counts = 131_072
viscous_friction = 0.02
rated_torque = 1.3
"#;

/// An axis in this mode, and what moves it.
fn robot(mode: &str) -> String {
    let controller = match mode {
        "cst" => "kind = \"joint_effort\"\n",
        _ => "kind = \"sinusoid\"\namplitude = 0.5\nfrequency = 1.0\n",
    };
    format!(
        "{ROBOT}\n[[bus.sub_device]]\nname = \"one\"\ndevice = \"drive\"\n\n[[axis]]\nname = \"shaft\"\nsub_device = \"one\"\n\
         mode = \"{mode}\"\ncounts_per_revolution = 131_072\nrated_torque = 1.3\n\
         limits = {{ velocity = 60.0, acceleration = 100.0, jerk = 1000.0, torque = 2.0 }}\n\n[controller]\n{controller}"
    )
}

// feature(program): position, velocity and torque of an axis in CSP, CSV and CST: in recordings, `serve`, `top --json`
#[test]
fn an_axis_reports_position_velocity_and_torque_in_each_mode() {
    let _shared = shared();
    for mode in ["csp", "csv", "cst"] {
        let name = format!("modes-{mode}");
        let path = file(&format!("{name}.toml"), &robot(mode));
        let recording = folder(&name).join("run.mcap");
        let sockets = std::env::temp_dir().join(format!("onbeat-{name}-{}", std::process::id()));
        let socket = sockets.join("robot.sock");
        let mut command = onbeat();
        command.arg("run").arg(&path).args(["--for", "300s", "--json", "--ipc"]).arg(&socket);
        command.arg("--record").arg(&recording);
        let running = Running::start(command);
        await_cycles(running.id(), 1);

        let cycle = Client::open(&socket).expect("an IPC to attach to");
        let mut writer = (mode == "cst").then(|| cycle.command().expect("the lease"));
        // A torque command is valid for a moment; after a long host stall the cycle holds its axes
        // for a moment.
        let mut push = || {
            let Some(writer) = &mut writer else { return };
            let axes = vec![Some(AxisTarget::Effort(NewtonMetres(0.2)))];
            let push = Command { time_to_live_ns: 500_000_000, axes, ..Command::default() };
            writer.send(&push).expect("one axis");
        };
        eventually(mode, "moves", || {
            push();
            let axis = cycle.state().read().ok()?.axes[0];
            let moves = axis.position != 0.0 && axis.velocity.abs() > 0.05 && axis.effort != 0.0;
            (axis.fresh && moves).then_some(())
        });
        eventually(mode, "moves in top", || {
            push();
            let mut top = onbeat();
            top.args(["top", "--json"]).env("ONBEAT_IPC", &socket);
            let told = finished(top).json();
            let axis = &told["axes"][0];
            assert_eq!(axis["mode"], mode);
            let moves = |key: &str| axis[key].as_f64().is_some_and(|it| it != 0.0);
            ["position", "velocity", "effort"].into_iter().all(moves).then_some(())
        });

        let served = Served::start(&["--ipc", socket.to_str().expect("a path")]);
        let mut page = served.socket();
        let attached = page.until(|it| it["state"] == "attached");
        let channels = attached["channels"].as_array().expect("channels");
        for channel in ["shaft position", "shaft velocity", "shaft effort"] {
            assert!(channels.iter().any(|it| it[0] == channel), "{mode}: {channel}: {channels:?}");
        }
        eventually(mode, "moves on the page", || {
            push();
            let shown = page.until(|it| it["kind"] == "picture");
            let moves = |place: usize| shown["axes"][0][place].as_f64().is_some_and(|it| it != 0.0);
            (5..8).all(moves).then_some(())
        });
        drop((page, served, writer));

        interrupt(running).json();
        let _ = fs::remove_dir_all(&sockets);
        recorded(&recording, mode);
    }
}

/// Looks until there is something; a minute at most.
fn eventually<T>(mode: &str, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "an axis in {mode}: nothing that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Each quantity has a value in most rows, and they are not all the same.
fn recorded(path: &Path, mode: &str) {
    let recording = Recording::read(&fs::read(path).expect("the recording")[..]).expect("a recording");
    for (quantity, _) in &process_data::OF_AXIS[..3] {
        let name = format!("axis:shaft.{quantity}");
        let values: Vec<f64> =
            recording.process_data(&name).expect(&name).filter(|value| !value.is_nan()).collect();
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        let (found, all) = (values.len(), recording.len());
        assert!(found * 2 > all && high > low, "{mode}: {name}: {found} of {all}, from {low} to {high}");
    }
}
