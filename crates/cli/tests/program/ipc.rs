//! `onbeat run` and the programs that attach to it: each of them another process, any of them
//! killed.
#![allow(
    clippy::unwrap_used,
    reason = "another process of this test is a test itself: it fails where it cannot go on"
)]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onbeat::ipc::client::Client;
use onbeat::ipc::diagnostics::Diagnostics;
use onbeat::ipc::state::State;

use crate::common::{Ran, Running, await_cycles, file, finished, onbeat, run, shared, until};

/// A run with its IPC in a separate folder.
struct Opened {
    running: Running,
    socket: PathBuf,
}

impl Opened {
    fn start(test: &str, arguments: &[&str]) -> Self {
        let socket = folder(test).join("robot.sock");
        let mut command = onbeat();
        command.args(["run", "--json", "--ipc", socket.to_str().expect("a path")]).args(arguments);
        let running = Running::start(command);
        await_cycles(running.id(), 1);
        Self { running, socket }
    }

    fn attach(&self) -> Client {
        Client::open(&self.socket).expect("an IPC to attach to")
    }

    fn interrupt(self) -> serde_json::Value {
        self.end().json()
    }

    fn end(self) -> Ran {
        let number = self.running.id().to_string();
        assert!(Command::new("kill").args(["-INT", &number]).status().expect("kill").success());
        self.running.finish()
    }
}

/// A folder for sockets: paths of sockets are short.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("onbeat-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

const ENABLED: u8 = 5;

fn all_enabled(state: &State) -> bool {
    state.bus.phase == 7 && state.axes.iter().all(|axis| axis.drive_state == ENABLED)
}

#[test]
fn a_client_sees_cycles_axes_and_the_state_of_the_run() {
    let _shared = shared();
    let run = Opened::start("watch", &[]);
    let ipc = run.attach();
    let description = ipc.description();
    assert_eq!((description.robot.as_str(), description.axes.len()), ("six-axis", 6));
    assert_eq!(description.period_ns, 1_000_000);
    assert!(description.ports.iter().any(|port| port.name == "control"));
    let first = until(&ipc, "enabled", all_enabled);
    let later = until(&ipc, "later", |state| state.cycle > first.cycle + 500);
    assert!(later.release_ns > first.release_ns && later.timing.cycles > first.timing.cycles);
    let moved = first.axes.iter().zip(&later.axes).any(|(one, other)| one.position != other.position);
    assert!(moved, "{first:?} {later:?}");
    let started = Instant::now();
    let told = loop {
        let told = ipc.diagnostics().ok().and_then(|text| serde_json::from_str::<Diagnostics>(&text).ok());
        match told.filter(|told| told.number > 2 && told.watch.cycles > 0) {
            Some(told) => break told,
            None => assert!(started.elapsed() < Duration::from_secs(60), "nothing is told"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((told.process, told.tasks[0].name.as_str()), (run.running.id(), "cycle"));
    assert!(told.tasks[0].response_ns.maximum > 0 && told.conditions.profile_requested == "PM", "{told:?}");
    assert!(told.ports.iter().any(|port| port.name == "trajectory"));
    let socket = run.socket.clone();
    let end = run.interrupt();
    assert!(end["cycles"].as_u64().unwrap() > 500);
    assert!(ipc.has_ended() && !socket.exists());
}

// feature(ipc): `run --ipc`, `--no-ipc`, names
#[test]
fn a_run_without_an_ipc_has_none() {
    let ran = run(&["run", "--cycles", "50", "--no-ipc"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("ipc") && !ran.stderr.contains("attach"), "{}", ran.stderr);
}

#[test]
fn a_taken_name_is_refused_before_the_bus_is_touched() {
    let _shared = shared();
    let first = Opened::start("taken", &[]);
    let mut command = onbeat();
    command.args(["run", "--cycles", "50", "--ipc", first.socket.to_str().unwrap()]);
    let second = finished(command);
    let sentence = second.sentence();
    assert!(sentence.contains("robot.sock already") && sentence.contains("--ipc NAME"), "{sentence}");
    first.interrupt();
}

// feature(ipc): `run --ipc`, `--no-ipc`, names
#[test]
fn runs_print_their_ipc_and_same_robots_get_two_names() {
    let _shared = shared();
    let folder = folder("numbers");
    std::fs::create_dir(&folder).unwrap();
    let script = format!(
        "cd {root} && export XDG_RUNTIME_DIR={folder} && cd {folder} && \
         {{ {program} run --cycles 300 >table 2>first & {program} run --cycles 300 >other 2>second; wait; }}",
        root = concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
        folder = folder.display(),
        program = env!("CARGO_BIN_EXE_onbeat"),
    );
    if as_nobody(&folder, &script).is_none() {
        return testkit::skip!("needs runuser, and the user `nobody`");
    }
    let said = ["first", "second"].map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
    let ipcs = said.iter().flat_map(|said| said.lines()).filter(|line| line.starts_with("ipc "));
    let mut ipcs: Vec<&str> = ipcs.collect();
    ipcs.sort_unstable_by_key(|line| line.len());
    let expected =
        ["six-axis", "six-axis-2"].map(|name| format!("ipc {}/onbeat/{name}.sock", folder.display()));
    assert_eq!(ipcs, expected, "{said:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Any user may make the folder of another user's sockets below /tmp.
// feature(ipc): a folder that another user made leaves no cycle without its interface: clients find another
#[test]
fn clients_find_a_run_if_its_usual_folder_is_squatted() {
    use std::os::unix::fs::{MetadataExt, chown};
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let _shared = shared();
    let user = 2_000_000 + std::process::id();
    let programs = folder("squatted");
    std::fs::create_dir(&programs).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_onbeat"), programs.join("onbeat")).unwrap();
    let squatted = PathBuf::from(format!("/tmp/onbeat-{user}"));
    std::fs::create_dir(&squatted).unwrap();
    chown(&squatted, Some(user + 1), None).unwrap();
    let as_user = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}")]).arg("--clear-groups");
        command.arg(programs.join("onbeat")).args(arguments).current_dir(&programs);
        command.env_remove("XDG_RUNTIME_DIR").env_remove("RUNTIME_DIRECTORY").env_remove("ONBEAT_IPC");
        command
    };
    let robot = programs.join("robot.toml");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml"), &robot).unwrap();
    let robot = robot.to_str().unwrap();
    // As systemd does for the service: clients of this user find it as well.
    let services = PathBuf::from(format!("/run/onbeat/squatted-{user}"));
    std::fs::create_dir_all(&services).unwrap();
    chown(&services, Some(user), None).unwrap();
    // Root may run cycles, too.
    let name = format!("squatted-{user}");
    for service in [false, true] {
        let mut command = as_user(&["run", robot, "--profile", "none", "--ipc", &name]);
        if service {
            command.env("RUNTIME_DIRECTORY", &services);
        }
        let running = Running::start(command);
        await_cycles(running.id(), 1);
        let found = finished(as_user(&["control", "--cycle", &name, "stop"]));
        assert_eq!(found.code, Some(0), "{}", found.stderr);
        let end = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
        assert!(end.success());
        let ran = running.finish();
        let said = |words: &str| ran.stderr.lines().any(|line| line.contains(words));
        assert_eq!(said(&format!("belongs to user {}", user + 1)), !service, "{}", ran.stderr);
        assert!(!said("no other program can attach"), "{}", ran.stderr);
        let place =
            if service { services.display().to_string() } else { format!("{}.", squatted.display()) };
        assert!(said(&format!("ipc {place}")), "{}", ran.stderr);
    }
    assert_eq!(std::fs::metadata(&squatted).unwrap().uid(), user + 1);
    for folder in [programs, squatted, services] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Runs this script as a non-root user, the owner of `folder`; `None` where that is impossible.
fn as_nobody(folder: &std::path::Path, script: &str) -> Option<()> {
    if !rustix::process::geteuid().is_root() {
        return Command::new("sh").args(["-c", script]).status().ok().filter(|it| it.success()).map(drop);
    }
    let owned = Command::new("chown").arg("nobody").arg(folder).status().ok()?.success();
    let ran = owned
        && Command::new("runuser")
            .args(["-u", "nobody", "--", "sh", "-c", script])
            .status()
            .ok()?
            .success();
    ran.then_some(())
}

// feature(ipc): `run --ipc`, `--no-ipc`, names
#[test]
fn a_run_without_a_place_for_its_ipc_does_not_begin() {
    let _shared = shared();
    let path = file("no-folder", "a file where a folder should be");
    let open = folder("open-to-all");
    std::fs::create_dir_all(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    for (socket, sentence) in [
        (path.join("robot.sock"), "no-folder"),
        (
            open.join("robot.sock"),
            "not safe for the socket of a cycle: remove it, or choose another folder, by --ipc",
        ),
        (PathBuf::from("/proc/x.sock"), "/proc"),
        (folder(&"x".repeat(120)).join("robot.sock"), "xxx"),
    ] {
        let mut command = onbeat();
        command.args(["run", "--cycles", "50", "--ipc"]).arg(&socket);
        let ran = finished(command);
        assert!(ran.code == Some(1) && ran.stderr.contains(sentence), "{:?} {}", ran.code, ran.stderr);
    }
}

/// This test program again, as another process that does one of the parts below.
fn other_process(part: &str, socket: &std::path::Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("ipc::{part}"), "--ignored", "--nocapture"]);
    command.env("ONBEAT_IPC", socket).stdout(Stdio::piped()).spawn().unwrap()
}

/// Waits for a word of another process.
fn await_word(child: &mut Child, word: &str) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(word)), "it never said {word}");
}

// feature(ipc): a writer that is killed stops its axes, and the next one takes over
#[test]
fn a_killed_writer_stops_its_axes_and_the_next_takes_over() {
    use onbeat::ipc::state::{Freshness, StopReason};
    let _shared = shared();
    let text = include_str!("../../../../examples/six-axis.toml");
    let (bus, _) = text.split_once("[controller]").expect("the six-axis robot's controller");
    let path = file("commanded.toml", &format!("{bus}\n[controller]\nkind = \"joint_position\"\n"));
    let run = Opened::start("killed", &[path.to_str().unwrap()]);
    let ipc = run.attach();
    until(&ipc, "enabled", all_enabled);

    let mut writer = other_process("a_process_that_commands", &run.socket);
    await_word(&mut writer, "commanding");
    let moving = until(&ipc, "moving", |state| {
        state.command.freshness == Freshness::Fresh && state.axes[0].velocity.abs() > 0.05
    });
    let mut reader = other_process("a_process_that_reads", &run.socket);
    await_word(&mut reader, "reading");
    // SIGKILL.
    reader.kill().unwrap();
    writer.kill().unwrap();
    let _ = (reader.wait(), writer.wait());
    let stale = until(&ipc, "stale", |state| state.command.freshness == Freshness::Stale);
    assert!(stale.axes[0].stop == StopReason::Stale as u8, "{stale:?}");
    let rest = until(&ipc, "at rest", |state| state.axes.iter().all(|axis| axis.velocity.abs() < 0.01));
    assert!(rest.axes.iter().all(|axis| axis.drive_state == ENABLED), "they hold: {rest:?}");

    let mut next = other_process("a_process_that_commands", &run.socket);
    await_word(&mut next, "commanding");
    let again = until(&ipc, "moving again", |state| {
        state.command.freshness == Freshness::Fresh && state.axes[0].velocity.abs() > 0.05
    });
    assert!(again.axes[0].stop == 0 && again.command.accepted > moving.command.accepted);
    assert_eq!(again.bus.broken_cycles, moving.bus.broken_cycles, "the cycle did not notice");
    next.kill().unwrap();
    let _ = next.wait();
    let stale = until(&ipc, "stale", |state| state.command.freshness == Freshness::Stale);
    assert!(stale.axes[0].stop == StopReason::Stale as u8, "{stale:?}");
    // The axes got no command since then: the run counts as failed.
    let ran = run.end();
    let sentence = "onbeat: the command expired while axes followed it";
    assert!(ran.code == Some(3) && ran.stderr.contains(sentence), "{:?} {}", ran.code, ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(end["cycles"].as_u64().unwrap() > 0);
    assert_eq!(end["findings"][0]["code"], 3, "{end}");
}

/// Not a model of the cycle: the program itself, with its bus, while programs of every kind die
/// around it.
// feature(ipc): a thousand readers, writers and clients killed with SIGKILL
#[test]
fn a_thousand_killed_clients_do_not_disturb_a_run() {
    use onbeat::ipc::state::Refusal;
    use std::os::unix::process::ExitStatusExt;
    let _shared = shared();
    let text = include_str!("../../../../examples/six-axis.toml");
    let (bus, _) = text.split_once("[controller]").expect("the six-axis robot's controller");
    let path = file("besieged.toml", &format!("{bus}\n[controller]\nkind = \"joint_position\"\n"));
    let run = Opened::start("besieged", &[path.to_str().unwrap(), "--period", "4ms"]);
    let ipc = run.attach();
    let before = until(&ipc, "enabled", all_enabled);
    let reader = ipc.state();
    let started = Instant::now();
    let (mut killed, mut rounds, mut cycle) = (0, 0_u64, before.cycle);
    while killed < 1000 {
        assert!(started.elapsed() < Duration::from_secs(240), "{killed} killed only");
        let mut besiegers: Vec<_> =
            (0..8).map(|_| other_process("a_process_that_does_everything", &run.socket)).collect();
        // From before they have attached to in the midst of what they do: 10 to 50 ms, another
        // instant each time.
        std::thread::sleep(Duration::from_micros(10_000 + rounds * 7_919 % 40_000));
        for besieger in &mut besiegers {
            besieger.kill().unwrap();
            killed += usize::from(besieger.wait().unwrap().signal() == Some(9));
        }
        let state = reader.read().unwrap();
        assert!(state.cycle >= cycle, "went back from cycle {cycle} to {}", state.cycle);
        cycle = state.cycle;
        rounds += 1;
    }
    let after = until(&ipc, "further on", |state| state.cycle > cycle);
    assert!(after.command.accepted > before.command.accepted, "nobody ever commanded: {after:?}");
    assert_ne!(after.command.last_refusal, Refusal::Torn as u8, "half a command: {after:?}");
    until(&ipc, "at rest", |state| state.axes.iter().all(|axis| axis.velocity.abs() < 0.01));
    let mut writer = other_process("a_process_that_commands", &run.socket);
    await_word(&mut writer, "commanding");
    until(&ipc, "moving again", |state| state.axes[0].velocity.abs() > 0.05);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(matches!(run.end().code, Some(0 | 3)), "with the command that was killed, or once it is stale");
}

#[test]
#[ignore = "a part of the tests above, which start it as another process"]
fn a_process_that_does_everything() {
    use onbeat::ipc::command::{AxisTarget, Command};
    use onbeat::ipc::units::Radians;
    use std::io::Write;
    // Whatever is refused - the lease has one holder, a port one client - is tried again.
    let Ok(ipc) = Client::find() else { return };
    let reader = ipc.state();
    let (mut writer, mut port) = (None, None);
    for number in 0_u64.. {
        let _ = std::hint::black_box(reader.read());
        writer = writer.or_else(|| ipc.command().ok());
        if let Some(writer) = &mut writer {
            let mut axes = vec![None; writer.axes()];
            axes[0] = Some(AxisTarget::Position(Radians(if number / 64 % 2 == 0 { 1.0 } else { -1.0 })));
            let _ = writer.send(&Command { time_to_live_ns: 200_000_000, axes, ..Command::default() });
        }
        port = port.or_else(|| ipc.port("trajectory").ok());
        let nonsense = number.to_le_bytes();
        // A full channel blocks: then this is where it is killed.
        if let Some(Err(_)) = port.as_mut().map(|port| port.write(&nonsense)) {
            port = None;
        }
    }
}

#[test]
#[ignore = "a part of the tests above, which start it as another process"]
fn a_process_that_commands() {
    use onbeat::ipc::command::{AxisTarget, Command};
    use onbeat::ipc::units::Radians;
    let ipc = Client::find().unwrap();
    let mut writer = ipc.command().unwrap();
    println!("commanding");
    for number in 0_u64.. {
        // Farther than an axis gets while a command is valid: the writer is killed in motion.
        let there = if number / 200 % 2 == 0 { 100.0 } else { -100.0 };
        let mut axes = vec![None; writer.axes()];
        axes[0] = Some(AxisTarget::Position(Radians(there)));
        let command = Command { time_to_live_ns: 200_000_000, axes, ..Command::default() };
        writer.send(&command).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "a part of the tests above, which start it as another process"]
fn a_process_that_reads() {
    let ipc = Client::find().unwrap();
    let reader = ipc.state();
    reader.read().unwrap();
    println!("reading");
    loop {
        std::hint::black_box(reader.read().unwrap());
    }
}
