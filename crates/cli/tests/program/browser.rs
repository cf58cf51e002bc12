//! A browser without a window, steered over the DevTools protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

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
