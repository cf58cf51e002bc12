//! Logs and figures of a run: `--events`, `/metrics` of `serve`, and the journal.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Running, await_cycles, file, finished, onbeat, run, shared};
use crate::serve::Served;

/// The lines of a file of events.
fn events(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file of events");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

// feature(program): `run --events` keeps what happens as JSON lines with UTC, cycle, severity and sentence, from the begin to the exit code
#[test]
fn the_log_file_has_a_run_from_start_to_exit_code() {
    let path = file("log-events.jsonl", "");
    let script = file("log-faults.txt", "1200ms drive fault drive-3 0x7500\n");
    let arguments = ["run", "--for", "3s", "--period", "2ms", "--no-ipc", "--json", "--profile", "none"];
    let options = ["--events", path.to_str().unwrap(), "--faults", script.to_str().unwrap()];
    let ran = run(&[&arguments[..], &options].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let events = events(&path);
    let (first, last) = (&events[0], events.last().unwrap());
    assert_eq!((&first["event"], &first["robot"]), (&"run_began".into(), &"six-axis".into()), "{first}");
    assert_eq!((&last["event"], &last["exit_code"]), (&"run_ended".into(), &3.into()), "{last}");
    assert!(last["sentence"].as_str().unwrap().contains("\"axis-3\" ended in Fault"), "{last}");
    let fault = of(&events, "drive_fault");
    assert_eq!(
        (fault.len(), &fault[0]["axis"], &fault[0]["error_code"]),
        (1, &2.into(), &0x7500.into()),
        "{fault:?}"
    );
    assert_eq!(fault[0]["severity"], "error");
    assert!(of(&events, "axis_stopped").iter().any(|it| it["axis"] == 2), "{events:?}");
    let injected = of(&events, "notice").into_iter().filter(|it| it["severity"] == "warning");
    assert_eq!(injected.count(), 1, "{events:?}");
    assert_eq!(of(&events, "stopping").len(), 1);
    for event in &events {
        let time = event["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{event}");
        assert!(
            event["cycle"].is_u64() && event["at_ns"].is_u64() && event["severity"].is_string(),
            "{event}"
        );
    }
    let again = run(&[&arguments[..], &options[..2]].concat());
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(of(&self::events(&path), "run_began").len(), 2, "it goes on behind what is there");
}

#[test]
fn an_unusable_event_file_is_refused_before_the_bus_is_touched() {
    let missing = run(&["run", "--events", "/nonexistent/x.jsonl"]);
    assert!(
        missing.sentence().starts_with("onbeat: --events /nonexistent/x.jsonl: "),
        "{}",
        missing.stderr
    );
    let folder = run(&["run", "--events", "/tmp"]);
    assert!(folder.sentence().contains("expected a file"), "{}", folder.stderr);
}

#[test]
fn an_incomplete_event_file_is_reported_at_the_end() {
    let path = file("log-limited.jsonl", "");
    let mut command = std::process::Command::new("sh");
    testkit::end_with_parent(&mut command);
    let onbeat = env!("CARGO_BIN_EXE_onbeat");
    // 512 bytes, as a disk that is full then.
    let line = format!(
        "ulimit -f 1; exec {onbeat} run --cycles 100 --period 5ms --no-ipc --json --profile none --events {}",
        path.display()
    );
    command.args(["-c", &line]).stdin(Stdio::null());
    let _shared = shared();
    let ran = finished(command);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("events are missing in it"), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"cycles\""), "what was measured is printed: {}", ran.stdout);
}

/// A run, and the program that serves its metrics.
struct Metrics {
    running: Running,
    served: Served,
}

impl Metrics {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-metrics-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let socket = folder.join("run.sock");
        let mut command = onbeat();
        command.args(["run", "examples/io-station.toml", "--period", "2ms", "--json", "--profile", "none"]);
        command.arg("--ipc").arg(&socket);
        let running = Running::start(command);
        await_cycles(running.id(), 10);
        let served = Served::start(&["--ipc", socket.to_str().expect("UTF-8")]);
        Self { running, served }
    }

    /// Requests until this line is on the page.
    fn until(&self, line: &str) -> String {
        let started = Instant::now();
        loop {
            let reply = self.served.get("/metrics", "");
            let (head, page) = reply.split_once("\r\n\r\n").expect("a head and a body");
            if head.starts_with("HTTP/1.1 200 OK\r\n") && page.lines().any(|it| it == line) {
                assert!(head.contains("text/plain; version=0.0.4"), "{head}");
                return page.to_owned();
            }
            assert!(started.elapsed() < Duration::from_secs(60), "no {line} in {reply}");
        }
    }

    fn interrupt(self) -> Value {
        let number = self.running.id().to_string();
        assert!(
            std::process::Command::new("kill").args(["-INT", &number]).status().expect("kill").success()
        );
        self.running.finish().json()
    }
}

// feature(program): `/metrics` of `serve` answers Prometheus: cycles, times, bus, clocks, SubDevices, axes, signals, events
#[test]
fn metrics_are_the_figures_of_the_cycle() {
    let _shared = shared();
    let asked = Metrics::start();
    asked.until("onbeat_axis_state{axis=\"spindle\",state=\"Operation enabled\"} 1");
    asked.until("onbeat_signal_fresh{signal=\"door closed\"} 1");
    let value = |page: &str, name: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
    };
    let cycles = |page: &str| value(page, "onbeat_cycles_total");
    // The figures are published some times a second, the state in every cycle.
    let page = || asked.until("onbeat_bus_phase{phase=\"Op\"} 1");
    let one = std::iter::repeat_with(page).find(|page| cycles(page) > 0.0).expect("endless");
    assert!(one.contains("onbeat_sub_device_al_state{sub_device=\"coupler\",position=\"0\"} 8\n"), "{one}");
    let other = page();
    assert!(cycles(&other) >= cycles(&one));
    assert_eq!(value(&one, "onbeat_response_time_seconds_count"), cycles(&one));
    assert_eq!(value(&one, "onbeat_period_seconds"), 0.002);
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring.md")).unwrap();
    let families = one.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for family in families {
        assert!(docs.contains(&format!("`{family}`")), "{family} is not in docs/monitoring.md");
    }
    let end = asked.interrupt();
    assert!(end["cycles"].as_f64().unwrap() >= cycles(&other), "{end}");
}

#[test]
fn metrics_without_a_cycle_are_unavailable_with_the_reason() {
    let nowhere = file("log-no-cycle.socket", "");
    let served = Served::start(&["--ipc", nowhere.to_str().expect("UTF-8")]);
    let reply = served.get("/metrics", "");
    assert!(reply.starts_with("HTTP/1.1 503 ") && reply.contains("log-no-cycle.socket"), "{reply}");
    let ran = run(&["run", "--metrics", "127.0.0.1:9464"]);
    assert!(ran.sentence().contains("`onbeat serve --listen 127.0.0.1:9464`"), "{}", ran.stderr);
}

/// Starts `onbeat` with standard error in this journal, `run` as `/run`, and nothing else there.
///
/// `None` where no mount namespace is available, which is printed.
fn with_run(journal: &File, run: &str) -> Option<std::process::Command> {
    let root = rustix::process::geteuid().is_root();
    let namespace = if root { "--mount" } else { "--mount --map-root-user" };
    let unshare = || {
        let mut command = std::process::Command::new("unshare");
        command.args(namespace.split(' ')).stdin(Stdio::null());
        testkit::end_with_parent(&mut command);
        command
    };
    let possible = unshare().args(["mount", "-t", "tmpfs", "run", "/run"]).output();
    if !possible.as_ref().is_ok_and(|it| it.status.success()) {
        testkit::skip!("it needs a namespace of mounts: {possible:?}");
        return None;
    }
    let script = file("log-journal-faults.txt", "1200ms drive fault drive-3 0x7500\n");
    let mut command = unshare();
    command.args(["sh", "-c", &format!("mount -t tmpfs run /run && {run} exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_onbeat"));
    command.args(["run", "--for", "2s", "--period", "2ms", "--no-ipc", "--json", "--profile", "none"]);
    command.args(["--faults", script.to_str().expect("UTF-8")]);
    let of = journal.metadata().expect("its numbers");
    command.env("JOURNAL_STREAM", format!("{}:{}", of.dev(), of.ino()));
    command.stdout(Stdio::null()).stderr(journal.try_clone().expect("the file twice"));
    Some(command)
}

// feature(program): where standard error is the journal's, lines have their priority, and the live line stays away
#[test]
fn a_plain_journal_stream_gets_lines_with_priorities() {
    let path = file("log-journal.txt", "");
    let journal = File::options().append(true).open(&path).unwrap();
    let _shared = shared();
    let Some(mut command) = with_run(&journal, "") else { return };
    assert_eq!(command.status().expect("the program").code(), Some(3));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().all(|line| ["<3>", "<4>", "<6>"].iter().any(|it| line.starts_with(it))), "{text}");
    let has = |start: &str, part: &str| text.lines().any(|it| it.starts_with(start) && it.contains(part));
    assert!(has("<3>", "is in fault: 0x7500"), "{text}");
    assert!(has("<3>onbeat: axis \"axis-3\" ended in Fault", ""), "{text}");
    assert!(!text.contains("WKC errors"), "{text}");
}

// feature(program): where a journal takes entries, events are entries with fields, and what has none is a line with its priority
#[test]
fn a_journal_gets_events_with_fields_and_no_live_line() {
    let path = file("log-journal-lines.txt", "");
    let journal = File::options().append(true).open(&path).unwrap();
    // The path of a socket has a hundred letters at most.
    let folder = std::env::temp_dir().join(format!("onbeat-journal-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let socket = UnixDatagram::bind(folder.join("socket")).expect("a socket");
    let _shared = shared();
    let its = format!(
        "mkdir -p /run/systemd/journal && mount --bind '{}' /run/systemd/journal &&",
        folder.display()
    );
    let Some(mut command) = with_run(&journal, &its) else { return };
    let mut running = command.spawn().expect("the program");
    // A queue of datagrams is short: the sender waits for the reader.
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a time limit");
    let (mut entries, mut ended, mut bytes) = (Vec::new(), None, vec![0; 1 << 16]);
    loop {
        match socket.recv(&mut bytes) {
            Ok(length) => entries.push(String::from_utf8(bytes[..length].to_vec()).expect("UTF-8")),
            Err(_) if ended.is_some() => break,
            Err(_) => ended = running.try_wait().expect("the program"),
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(ended.and_then(|it| it.code()), Some(3));
    let has = |entry: &String, line: &str| entry.lines().any(|it| it == line);
    let fault = entries.iter().find(|it| has(it, "ONBEAT_EVENT=drive_fault"));
    let fault = fault.unwrap_or_else(|| panic!("no fault in {entries:#?}"));
    for line in ["PRIORITY=3", "SYSLOG_IDENTIFIER=onbeat", "ONBEAT_AXIS=2", "ONBEAT_ERROR_CODE=29952"] {
        assert!(has(fault, line), "no {line} in {fault}");
    }
    let message = fault.lines().find(|line| line.starts_with("MESSAGE=")).expect("a message");
    assert!(message.contains("is in fault: 0x7500"), "{message}");
    let lines = std::fs::read_to_string(&path).unwrap();
    assert!(
        lines.lines().all(|line| ["<3>", "<4>", "<6>"].iter().any(|it| line.starts_with(it))),
        "{lines}"
    );
    assert!(!lines.contains("is in fault"), "told once: {lines}");
    let told = |part: &str| lines.contains(part) || entries.iter().any(|it| it.contains(part));
    assert!(told("axis \"axis-3\" ended in Fault") && !told("WKC errors"), "{lines}{entries:#?}");
}
