//! `onbeat serve`, over HTTP and WebSockets, with a cycle simulated by this test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ipc::description::{AxisDescription, Description};
use ipc::server::{Builder, Endpoints, Server};
use ipc::state::{Axis, Bus, State};
use serde_json::Value;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{ClientRequestBuilder, Error, Message, WebSocket};
use types::CyclicMode;

use crate::common::{finished, onbeat, run};

/// The program, until it is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Served {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = onbeat();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().expect("standard error"));
        said.read_line(&mut line).expect("a line");
        let address = line.strip_prefix("http://").and_then(|it| it.split('/').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("an address in {line}"));
        Self { child, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
        stream
    }

    /// Reply to these bytes.
    fn asked(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("taken");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("a reply and its end");
        String::from_utf8(reply).expect("text")
    }

    pub(crate) fn get(&self, path: &str, headers: &str) -> String {
        let host = self.address;
        self.asked(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"))
    }

    pub(crate) fn socket(&self) -> Socket {
        self.socket_from(&format!("http://{}", self.address)).expect("a WebSocket")
    }

    fn socket_from(&self, origin: &str) -> Result<Socket, String> {
        let uri = format!("ws://{}/socket", self.address).parse().expect("an address");
        let request = ClientRequestBuilder::new(uri).with_header("Origin", origin);
        tungstenite::client(request, self.connect()).map(|(it, _)| Socket(it)).map_err(
            |error| match error {
                tungstenite::HandshakeError::Failure(Error::Http(reply)) => reply.status().to_string(),
                other => other.to_string(),
            },
        )
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A page's end.
pub(crate) struct Socket(WebSocket<TcpStream>);

impl Socket {
    fn say(&mut self, message: Message) {
        self.0.send(message).expect("it listens");
    }

    fn wish(&mut self, attached: u64, wish: u64, scope: &[u16]) {
        let wish = serde_json::json!({ "attached": attached, "wish": wish, "scope": scope });
        self.say(Message::text(wish.to_string()));
    }

    /// The next document that is so; half a minute at most.
    pub(crate) fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            if let Message::Text(text) = self.0.read().expect("a message") {
                let document = serde_json::from_str(&text).expect("JSON");
                if is(&document) {
                    return document;
                }
            }
        }
        panic!("it does not come");
    }

    /// The next rows: head and rest.
    fn rows(&mut self) -> ([f64; 8], Vec<f64>) {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < Duration::from_secs(30), "no rows come");
            if let Message::Binary(bytes) = self.0.read().expect("a message") {
                let numbers =
                    bytes.chunks_exact(8).map(|word| f64::from_le_bytes(word.try_into().expect("8")));
                let mut numbers: Vec<f64> = numbers.collect();
                let rest = numbers.split_off(8);
                return (numbers.try_into().expect("8 numbers"), rest);
            }
        }
    }

    /// Reads until the connection is closed.
    fn gone(mut self) {
        let started = Instant::now();
        while self.0.read().is_ok() {
            assert!(started.elapsed() < Duration::from_secs(30), "the connection is not ended");
        }
    }

    /// Code and reason with which the program ends the connection.
    fn end(mut self) -> (CloseCode, String) {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < Duration::from_secs(30), "the connection is not ended");
            match self.0.read() {
                Ok(Message::Close(Some(frame))) => return (frame.code, frame.reason.to_string()),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A cycle of one axis in a separate folder.
struct Played {
    folder: PathBuf,
    ends: Endpoints,
    server: Option<Server>,
    state: State,
}

impl Played {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-serve-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self::within(folder)
    }

    fn within(folder: PathBuf) -> Self {
        let axis = AxisDescription {
            measures_effort: false,
            ..AxisDescription::new("left \u{1f44b}<script>", CyclicMode::Position, 1.0, 1.0)
        };
        let description = Description {
            robot: "played".into(),
            period_ns: 1_000_000,
            axes: vec![axis],
            ..Description::default()
        };
        let mut ipc = Builder::new("played", &description);
        ipc.folder(&folder);
        let (ends, server) = ipc.open().expect("an IPC");
        let bus = Bus { phase: 7, all_fresh: true, ..Bus::default() };
        let state = State { bus, axes: vec![Axis::default()], ..State::default() };
        Self { folder, ends, server: Some(server), state }
    }

    /// Publishes so many cycles at once; axis 0 is at the number of its cycle.
    fn cycles(&mut self, count: u64) {
        for _ in 0..count {
            self.state.cycle += 1;
            self.state.release_ns += 1_000_000;
            self.state.axes[0].position = self.state.cycle as f64;
            self.ends.state.publish(&self.state);
        }
    }

    fn serve(&self) -> Served {
        let path = self.server.as_ref().expect("it has not ended").path();
        Served::start(&["--ipc", path.to_str().expect("a path")])
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Incomplete requests stay open until their time ends or a new connection needs their place.
// feature(program): `serve` opens a page at once while other connections send half requests
#[test]
fn half_requests_give_way_to_a_page() {
    let served = Served::start(&[]);
    let half = |_| {
        let mut stream = served.connect();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").expect("taken");
        stream
    };
    let mut halves: Vec<TcpStream> = (0..100).map(half).collect();
    let page = served.get("/", "");
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    // After their 5 s all would have ended together; here the newest ones are open still.
    halves.iter_mut().for_each(|it| it.set_nonblocking(true).expect("not blocking"));
    let is_open = |it: &mut TcpStream| {
        it.read(&mut [0; 16]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open: Vec<usize> = (0..halves.len()).filter(|&index| is_open(&mut halves[index])).collect();
    assert!(open.len() <= 32 && (69..100).all(|index| open.contains(&index)), "{open:?}");
}

// feature(program): `serve` answers no page of another origin, and none that calls this machine by a foreign name (DNS rebinding)
#[test]
fn the_page_has_headers_that_restrict_it_to_its_origin() {
    let served = Served::start(&["--ipc", "nobody-has-this-name", "--host", "robot.example"]);
    let page = served.get("/", "");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    let (head, body) = page.split_once("\r\n\r\n").expect("a head");
    let head = head.to_ascii_lowercase();
    for header in [
        "content-type: text/html; charset=utf-8",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "cache-control: no-store",
        "content-security-policy: default-src 'none'; script-src 'nonce-",
    ] {
        assert!(head.contains(header), "{header} in {head}");
    }
    let nonce =
        head.split("script-src 'nonce-").nth(1).and_then(|it| it.split('\'').next()).expect("a nonce");
    assert!(body.contains(&format!("<script nonce=\"{nonce}\">")), "the nonce of the policy is the page's");
    assert!(!served.get("/", "").contains(nonce), "each page has another one");

    assert!(served.get("/other", "").starts_with("HTTP/1.1 404 "));
    assert!(served.get("/socket", "").starts_with("HTTP/1.1 400 "), "no upgrade asked for");
    let post = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        served.address
    );
    assert!(served.asked(&post).starts_with("HTTP/1.1 405 "));
    assert!(served.asked("no HTTP at all\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = served.get("/", &format!("X: {}\r\n", "x".repeat(40_000)));
    assert!(long.starts_with("HTTP/1.1 431 "), "{long}");

    let host =
        |host: &str| served.asked(&format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    assert!(host("robot.example:8460").starts_with("HTTP/1.1 200 "));
    let foreign = host("evil.example");
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    assert!(
        foreign
            .contains("expected localhost, an address or a name given with --host, found \"evil.example\"")
    );
    assert!(served.get("/", "Origin: http://evil.example\r\n").starts_with("HTTP/1.1 403 "));
    assert_eq!(served.socket_from("http://evil.example").err().as_deref(), Some("403 Forbidden"));
    assert_eq!(served.socket_from("null").err().as_deref(), Some("403 Forbidden"));
    assert_eq!(served.socket().until(|_| true)["state"], "waiting");
}

// feature(program): `serve` sends every cycle of the chosen channels, and counts cycles that it could not read
#[test]
fn a_page_gets_every_cycle_or_the_number_of_missing_ones() {
    let mut played = Played::new("rows");
    let served = played.serve();
    let mut page = served.socket();
    let cycle = page.until(|it| it["state"] == "attached");
    let channels: Vec<&str> =
        cycle["channels"].as_array().expect("channels").iter().filter_map(|it| it[0].as_str()).collect();
    assert_eq!((cycle["robot"].as_str(), channels[0]), (Some("played"), "left \u{1f44b}<script> position"));
    assert!(!channels.iter().any(|it| it.ends_with(" effort") && !it.contains("target")), "{channels:?}");
    let attached = cycle["attached"].as_u64().expect("a number");
    let error = channels.iter().position(|it| it.ends_with("following error")).expect("one") as u16;
    page.wish(attached, 5, &[0, error]);
    let mut next = None;
    let mut missed_before = None;
    let mut seen = 0;
    while seen < 400 {
        // Fewer at once than the queue keeps: none may be missing without a host stall.
        played.cycles(3);
        std::thread::sleep(Duration::from_millis(8));
        let waiting = page.0.get_ref().peek(&mut [0; 2]).is_ok();
        if !waiting {
            continue;
        }
        let (head, rows) = page.rows();
        let [of, wish, count, columns, missed, dropped, ..] = head;
        assert_eq!((of, wish, columns, dropped), (attached as f64, 5.0, 4.0, 0.0));
        assert_eq!(rows.len(), (count * columns) as usize);
        for row in rows.chunks_exact(4) {
            let expected = next.unwrap_or(row[0]);
            let lost = missed - missed_before.unwrap_or(missed);
            assert!(
                row[0] == expected || row[0] - expected <= lost,
                "{row:?} after {expected}, {lost} missed"
            );
            assert_eq!(row[2..], [row[0], -row[0]], "the values of that cycle");
            next = Some(row[0] + 1.0);
            seen += 1;
        }
        missed_before = Some(missed);
    }
    // More at once than are kept: the difference is counted.
    let before = missed_before.expect("rows");
    played.cycles(500);
    loop {
        let (head, rows) = page.rows();
        let newest = rows[rows.len() - 4];
        if newest == played.state.cycle as f64 {
            assert!(head[4] - before >= 400.0, "{} missed", head[4] - before);
            break;
        }
    }
    let picture = page.until(|it| it["kind"] == "picture" && it["cycle"] == played.state.cycle);
    assert_eq!(picture["axes"][0][5], played.state.cycle as f64);
}

// feature(program): `serve` waits for a cycle, reports its end, and attaches to the next
#[test]
fn the_end_of_a_cycle_is_reported_and_the_next_one_found() {
    let mut played = Played::new("next");
    let served = played.serve();
    let mut page = served.socket();
    page.until(|it| it["state"] == "attached");
    played.cycles(3);
    page.until(|it| it["kind"] == "picture" && it["cycle"] == 3);
    page.until(|it| it["kind"] == "tree" || it["kind"] == "timing");
    let folder = played.folder.clone();
    played.server = None;
    let ended = page.until(|it| it["state"] == "ended");
    assert_eq!(ended["name"], "played");
    assert!(ended["why"].as_str().is_some_and(|it| it.contains("has ended or closed its IPC")), "{ended}");
    let mut next = Played::within(folder);
    let attached = page.until(|it| it["state"] == "attached");
    assert!(attached["attached"].as_u64() > ended["attached"].as_u64(), "{attached} after {ended}");
    // A wish for the ended cycle is ignored.
    page.wish(ended["attached"].as_u64().expect("a number"), 1, &[999]);
    next.cycles(7);
    page.until(|it| it["kind"] == "picture" && it["cycle"] == 7);
}

// feature(program): `serve` continues whatever a page sends or does not read, and reports the reason for each closed connection
#[test]
fn bad_messages_close_only_their_own_connection() {
    let mut played = Played::new("bad");
    let served = played.serve();
    let attached =
        |page: &mut Socket| page.until(|it| it["state"] == "attached")["attached"].as_u64().expect("it");
    let mut kept = served.socket();
    attached(&mut kept);
    for (message, code, why) in [
        (Message::text("hello"), CloseCode::Policy, "expected {\"attached\":1,\"wish\":1,\"scope\":[0]}"),
        (
            Message::text("{\"attached\":1,\"wish\":1,\"scope\":[0],\"enable\":true}"),
            CloseCode::Policy,
            "expected {",
        ),
        (Message::text("{\"attached\":1,\"wish\":1,\"scope\":[-1]}"), CloseCode::Policy, "expected {"),
        (
            Message::text("{\"attached\":1,\"wish\":1,\"scope\":[60000]}"),
            CloseCode::Policy,
            "scope: expected channels below",
        ),
        (
            Message::binary(vec![0; 64]),
            CloseCode::Unsupported,
            "expected a JSON object as text, found 64 bytes",
        ),
    ] {
        let mut page = served.socket();
        attached(&mut page);
        page.say(message.clone());
        let (found, reason) = page.end();
        assert!(found == code && reason.starts_with(why), "{message:?}: {found:?} {reason}");
    }
    // Too long, no UTF-8, no frame at all, gone without a word.
    let mut long = served.socket();
    long.say(Message::text("x".repeat(10_000)));
    long.gone();
    for bytes in [&b"\x81\x82\0\0\0\0\xff\xff"[..], b"\xff\xff\xff\xff\xff\xff", b"\x81"] {
        let mut page = served.socket();
        attached(&mut page);
        page.0.get_mut().write_all(bytes).expect("taken");
        let _ = page.0.get_mut().shutdown(std::net::Shutdown::Write);
        page.gone();
    }
    played.cycles(4);
    kept.until(|it| it["kind"] == "picture" && it["cycle"] == 4);
}

// feature(program): `serve` has a bounded number of pages; one more is refused, and admitted when another closes
#[test]
fn a_ninth_page_is_refused_and_idle_connections_give_way() {
    let played = Played::new("many");
    let served = played.serve();
    let mut pages: Vec<Socket> = (0..8).map(|_| served.socket()).collect();
    for page in &mut pages {
        page.until(|it| it["state"] == "attached");
    }
    let (code, reason) = served.socket().end();
    assert!(code == CloseCode::Again && reason.starts_with("8 pages look already"), "{code:?} {reason}");
    // More connections that say nothing than there is room for: each is ended after its time for a
    // request.
    let idle: Vec<TcpStream> = (0..40).map(|_| served.connect()).collect();
    assert!(served.get("/", "").starts_with("HTTP/1.1 200 "));
    drop(idle);
    pages.pop();
    let started = Instant::now();
    loop {
        let mut page = served.socket();
        if matches!(page.0.read(), Ok(Message::Text(_))) {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "no room for an eighth");
    }
}

/// Memory that a process uses, in KiB.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

// feature(program): pages that do not read, floods of wishes and of requests take a bounded part of the memory of `serve`
#[test]
fn floods_at_serve_take_bounded_memory() {
    const MORE: u64 = 64 * 1024;
    let mut played = Played::new("floods");
    let served = played.serve();
    assert!(served.get("/", "").starts_with("HTTP/1.1 200 "));
    let before = memory(served.child.id());
    for path in ["/../../etc/passwd", "/%2e%2e/etc/passwd", "/socket/../"] {
        let page = served.get(path, "");
        assert!(!page.starts_with("HTTP/1.1 200 ") && !page.contains("root:"), "{path}: {page}");
    }
    // The connection may be ended before the last of them.
    let pipelined = format!("GET /x HTTP/1.1\r\nHost: {}\r\n\r\n", served.address).repeat(5_000);
    let _ = served.connect().write_all(pipelined.as_bytes());
    let mut deaf: Vec<Socket> = (0..6).map(|_| served.socket()).collect();
    for page in &mut deaf {
        let attached = page.until(|it| it["state"] == "attached")["attached"].as_u64().expect("a number");
        page.wish(attached, 1, &[0; 8]);
    }
    for _ in 0..300 {
        played.cycles(50);
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut flood = served.socket();
    let attached = flood.until(|it| it["state"] == "attached")["attached"].as_u64().expect("a number");
    flood.0.get_ref().set_write_timeout(Some(Duration::from_secs(1))).expect("a time limit");
    let wish = serde_json::json!({ "attached": attached, "wish": 1, "scope": [0] }).to_string();
    let sent = (0..20_000).take_while(|_| flood.0.send(Message::text(wish.clone())).is_ok()).count();
    // Another page still gets its rows.
    let mut page = served.socket();
    let attached = page.until(|it| it["state"] == "attached")["attached"].as_u64().expect("a number");
    page.wish(attached, 7, &[0]);
    page.until(|it| it["kind"] == "picture" || it["state"] == "attached");
    played.cycles(3);
    assert_eq!(page.rows().0[1], 7.0, "after {sent} wishes of another page");
    let after = memory(served.child.id());
    assert!(after < before + MORE, "{before} KiB before, {after} after {sent} wishes");
}

#[test]
fn an_unusable_port_is_reported_and_a_stop_ends_serve() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let refused = run(&["serve", "--listen", &address]);
    let expected = format!(
        "onbeat: --listen {address}: Address already in use (os error 98); expected an address of this machine"
    );
    assert!(refused.sentence().starts_with(&expected), "{}", refused.stderr);
    let foreign = run(&["serve", "--listen", "192.0.2.7:8460"]);
    assert!(foreign.sentence().starts_with("onbeat: --listen 192.0.2.7:8460: "), "{}", foreign.stderr);
    let mut command = onbeat();
    command.args(["serve", "--listen", "no address"]);
    assert_eq!(finished(command).code, Some(2));

    let mut served = Served::start(&["--ipc", "nobody-has-this-name"]);
    let _page = served.socket();
    let process = rustix::process::Pid::from_child(&served.child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("it runs");
    let status = served.child.wait().expect("its end");
    assert_eq!(status.code(), Some(0));
}
