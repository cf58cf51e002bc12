//! A browser without a window, steered over the DevTools protocol.
//!
//! The page of `onbeat serve` in a browser, with a simulated robot.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::common::{Running, await_cycles, onbeat, shared};
use crate::serve::Served;

/// A page in a dedicated browser; dropping it ends both.
pub(crate) struct Page {
    browser: Child,
    folder: PathBuf,
    socket: WebSocket<TcpStream>,
    next: u64,
    /// Complaints of the page's script.
    pub(crate) complaints: Vec<String>,
}

/// Time for the browser to start, and for anything on a page to come true.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Page {
    /// An empty page; `None` without Chromium, which is printed.
    pub(crate) fn open(name: &str) -> Option<Self> {
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|program| {
            let mut version = Command::new(program);
            version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            version.status().is_ok_and(|status| status.success())
        });
        let Some(program) = program else {
            testkit::skip!("needs a browser (Debian: chromium)");
            return None;
        };
        let folder = crate::common::folder(name);
        let mut command = Command::new(program);
        testkit::end_with_parent(&mut command);
        // Its sandbox needs a user other than root; it opens pages of this test only.
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]);
        command.args(["--remote-debugging-port=0", "--remote-allow-origins=*", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", folder.display())).arg("about:blank");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let browser = command.spawn().expect("the browser");
        let port = folder.join("DevToolsActivePort");
        let port: u16 =
            wait("its port", || std::fs::read_to_string(&port).ok()?.lines().next()?.parse().ok());
        let path = wait("a page", || {
            let all: Vec<Value> = serde_json::from_str(&get(port, "/json/list")?).ok()?;
            let page = all.iter().find(|it| it["type"] == "page")?;
            Some(page["webSocketDebuggerUrl"].as_str()?.to_owned())
        });
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the browser listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
        let (socket, _) = tungstenite::client(path, stream).expect("the page's socket");
        let mut page = Self { browser, folder, socket, next: 0, complaints: Vec::new() };
        for domain in ["Page", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        Some(page)
    }

    /// Goes to an address.
    pub(crate) fn goto(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
    }

    /// A screen of so many points, of a phone or of a desk, in one of the two themes.
    pub(crate) fn screen(&mut self, width: u32, height: u32, dark: bool) {
        let mobile = width < 600;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Value of an expression on the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        self.evaluated(expression).unwrap_or_else(|why| panic!("{expression}: {why}"))
    }

    /// The same; an exception in words.
    fn evaluated(&mut self, expression: &str) -> Result<Value, String> {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", asked);
        if answer["exceptionDetails"].is_null() {
            Ok(answer["result"]["value"].take())
        } else {
            Err(answer["exceptionDetails"]["exception"]["description"].to_string())
        }
    }

    /// Waits until an expression on the page is true; one that cannot be evaluated yet is not.
    pub(crate) fn until(&mut self, expression: &str) {
        let started = Instant::now();
        loop {
            let found = self.evaluated(&format!("!!({expression})"));
            if found == Ok(Value::Bool(true)) {
                return;
            }
            if started.elapsed() > TIMEOUT {
                panic!("not {expression}: {found:?}: {}", self.value("document.body.innerText"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A picture of the screen, as a PNG file.
    pub(crate) fn screenshot(&mut self, path: &Path) {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = from_base64(picture["data"].as_str().expect("a picture"));
        assert!(bytes.starts_with(b"\x89PNG"), "a PNG");
        std::fs::write(path, bytes).expect("a file");
    }

    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let request = json!({ "id": self.next, "method": method, "params": parameters });
        self.socket.send(Message::text(request.to_string())).expect("the browser listens");
        loop {
            let message = self.socket.read().expect("the browser answers");
            let Ok(text) = message.to_text() else { continue };
            let Ok(mut said) = serde_json::from_str::<Value>(text) else { continue };
            if said["id"] == self.next {
                assert!(said["error"].is_null(), "{method}: {said}");
                return said["result"].take();
            }
            let trouble = match said["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Log.entryAdded") => said["params"]["entry"]["level"] == "error",
                Some("Runtime.consoleAPICalled") => said["params"]["type"] == "error",
                _ => false,
            };
            if trouble {
                self.complaints.push(said["params"].to_string());
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn wait<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(it) = found() {
            return it;
        }
        assert!(started.elapsed() < TIMEOUT, "the browser has not told {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The body of a reply.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n").ok()?;
    let mut reply = Vec::new();
    // A server that keeps the connection open has said all by then.
    let _ = stream.read_to_end(&mut reply);
    Some(String::from_utf8(reply).ok()?.split_once("\r\n\r\n")?.1.to_owned())
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = four
            .iter()
            .enumerate()
            .fold(0_u32, |word, (place, &it)| word | u32::from(digit(it)) << (18 - 6 * place));
        bytes.extend(&word.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Screenshots of the page are kept for a person to look at.
fn picture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A robot that moves its axes, with a unique name.
fn robot(name: &str, arguments: &[&str]) -> Running {
    let mut command = onbeat();
    command.args(["run", "--json", "--profile", "none", "--ipc", name]).args(arguments);
    let running = Running::start(command);
    await_cycles(running.id(), 50);
    running
}

// feature(program): the page of `serve` in a browser: axes, bus, live curves, trigger, cursors and CSV; the end of the cycle and the next one
#[test]
fn the_page_shows_axes_curves_and_follows_to_the_next_cycle() {
    let Some(mut page) = Page::open("serve-browser") else { return };
    let _shared = shared();
    let served = Served::start(&["--ipc", "serve-page"]);
    page.screen(1280, 800, false);
    page.goto(&format!("http://{}/", served.address));
    page.until("$('standing').textContent === 'waiting for a cycle'");
    let mut run = robot("serve-page", &["--period", "2ms"]);
    page.until("$('standing').textContent === 'Op'");
    page.until("document.querySelectorAll('#axes tbody tr').length === 6");
    page.until("$('axes').textContent.includes('Operation enabled')");
    // Every row has come; a curve that moves is drawn in its colour.
    page.value("scope.choose(['axis-1 position', 'axis-2 position', 'axis-1 following error', 'cycle wake-up latency'])");
    page.until("scope.store.length > 500 && scope.drawn.store.channels.length === 4");
    page.until("Math.max(...scope.store.columns[0].slice(0, scope.store.length)) - Math.min(...scope.store.columns[0].slice(0, scope.store.length)) > 0.01");
    let drawn = "(() => { const it = $('plot'), all = it.getContext('2d').getImageData(0, 0, it.width, it.height).data; \
                 const seen = new Set(); for (let at = 0; at < all.length; at += 4) seen.add(all[at] << 16 | all[at + 1] << 8 | all[at + 2]); return seen.size })()";
    page.until(&format!("{drawn} > 20"));
    page.screenshot(&picture("serve-1280-roll.png"));

    // A trigger in the middle of the axis's range: the picture freezes, with that value at its
    // instant.
    let middle = "(() => { const all = scope.store.columns[0].slice(0, scope.store.length); return (Math.max(...all) + Math.min(...all)) / 2 })()";
    page.value(&format!(
        "$('mode').value = 'single'; $('mode').onchange(); $('window').value = '0.5'; $('window').onchange(); \
         $('source').value = 'axis-1 position'; $('source').onchange(); $('level').value = {middle}; $('level').onchange()"
    ));
    page.until("$('status').textContent === 'triggered, stopped'");
    let crossing = "(() => { const { store, at } = scope.capture, row = store.first(at); \
                    return [store.columns[0][row - 1], scope.trigger.level, store.columns[0][row], at - store.time[0], store.newest - at] })()";
    let crossing = page.value(crossing);
    let of = |place: usize| crossing[place].as_f64().expect("a number");
    assert!(of(0) < of(1) && of(2) >= of(1), "it rises through the level at the trigger: {crossing}");
    assert!(
        (of(3) - 0.125).abs() < 0.01 && (of(4) - 0.375).abs() < 0.01,
        "a quarter before it: {crossing}"
    );
    page.value("$('cursors').click()");
    page.until("$('deltas').textContent.includes('Δt')");
    page.screenshot(&picture("serve-1280-trigger.png"));
    let csv = page.value("scope.csv()");
    let csv: Vec<&str> = csv.as_str().expect("text").lines().collect();
    assert_eq!(
        csv[0],
        r#"time [s],cycle,"axis-1 position [rad]","axis-2 position [rad]","axis-1 following error [rad]","cycle wake-up latency [us]""#
    );
    assert!(
        csv.len() > 100 && csv[1..].iter().all(|line| line.split(',').count() == 6),
        "{} rows",
        csv.len()
    );

    // The bus, in the dark.
    page.screen(1280, 800, true);
    page.value("$('tab-bus').click()");
    page.until("document.querySelectorAll('#bus tbody tr').length >= 7");
    page.until("$('bus').textContent.includes('link')");
    page.value("$('tabs').scrollIntoView()");
    page.screenshot(&picture("serve-1280-bus-dark.png"));
    page.value("$('tab-timing').click()");
    page.until("$('timing').textContent.includes('99.9 %')");
    page.value("$('tabs').scrollIntoView()");
    page.screenshot(&picture("serve-1280-timing-dark.png"));

    // A phone.
    page.screen(390, 844, false);
    let before = page.value("scope.store.newest").as_f64().expect("a time");
    page.value("$('tab-axes').click(); $('mode').value = 'roll'; $('mode').onchange(); $('cursors').click(); scrollTo(0, 0)");
    page.until("scope.drawn.store === scope.store && $('status').textContent === 'rolling'");
    page.until(&format!("scope.store.newest - scope.store.time[scope.store.first({before} + 1e-6)] > 0.6"));
    page.screenshot(&picture("serve-390.png"));
    page.value("$('axes').scrollIntoView()");
    page.screenshot(&picture("serve-390-axes.png"));
    assert_eq!(page.value("document.documentElement.scrollWidth <= 390"), true, "nothing sticks out");

    run.kill();
    page.until("$('standing').textContent === 'ended'");
    page.until("$('notice').textContent.includes('serve-page')");
    let before = page.value("link.attached").as_u64().expect("a number");
    let _next = robot("serve-page", &["--period", "2ms"]);
    page.until(&format!("link.attached > {before} && $('standing').textContent === 'Op'"));
    page.until("scope.chosen.includes('axis-2 position') && scope.store.newest > 0");
    assert!(page.complaints.is_empty(), "{:?}", page.complaints);
}

// feature(program): late cycles stand with their causes on the scope's axis in the page of `serve`, where the run explains them; 64 channels of the humanoid are drawn
#[test]
fn late_cycles_are_marked_next_to_64_curves() {
    let Some(mut page) = Page::open("serve-humanoid") else { return };
    let _shared = shared();
    let file = "examples/humanoid-59.toml";
    // Every cycle is late by a nanosecond.
    let _run = robot("serve-humanoid", &[file, "--period", "4ms", "--explain", "--late-above", "1ns"]);
    let served = Served::start(&["--ipc", "serve-humanoid"]);
    page.screen(1280, 800, false);
    page.goto(&format!("http://{}/#channels=*%20position", served.address));
    page.until("$('standing').textContent === 'Op'");
    page.until("scope.chosen.length === 64 && scope.chosen.every((it) => it.endsWith(' position'))");
    page.until("scope.store.length > 200");
    page.value("$('tab-timing').click()");
    page.until(
        "scope.marks.some((it) => it.late && /^cycle [\\d ]+ (started|ended) .* late: ./.test(it.text))",
    );
    page.until("$('timing').textContent.includes('cycles were late by more than 0.0 us')");
    // More are late between two looks of the page than a document holds.
    page.until("/, and [\\d ]+ more are not/.test($('timing').textContent)");
    // Each mark is at its own cycle on the time axis of the curves.
    let off = "(() => { const { store, marks } = scope; const all = marks.filter((it) => it.late).flatMap((it) => { \
               const cycle = +/^cycle ([\\d ]+)/.exec(it.text)[1].replaceAll(' ', ''), row = store.cycle.subarray(0, store.length).indexOf(cycle); \
               return row < 0 ? [] : [Math.abs(store.time[row] - it.time)] }); return all.length ? Math.max(...all) : null })()";
    page.until(&format!("{off} !== null"));
    assert!(page.value(off).as_f64().expect("a time") < 1e-6);
    page.screenshot(&picture("serve-1280-humanoid.png"));
    page.screen(390, 844, true);
    page.until("scope.drawn.right < 400");
    page.screenshot(&picture("serve-390-humanoid-dark.png"));
    assert_eq!(page.value("document.documentElement.scrollWidth <= 390"), true, "nothing sticks out");
    assert!(page.complaints.is_empty(), "{:?}", page.complaints);
}
