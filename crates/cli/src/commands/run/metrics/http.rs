//! HTTP of the metrics: one page, one request at a time, each within bounds of bytes and of time.
//!
//! Ours, though crates serve HTTP: the memory of this process is locked, so a thread or a buffer for each who connects would be taken from
//! the cycle's machine. Here it is one thread and 4 KiB for all clients.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use rt::output::OutputThread;

use super::Answer;
use super::page::MEDIA_TYPE;

/// Longest head of a request, bytes.
const LONGEST: usize = 4096;

/// Time for a request to come, and for its reply to be taken.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Time in which a running cycle's watch makes a page.
const MADE_WITHIN: Duration = Duration::from_secs(1);

/// Path of the page.
const PATH: &str = "/metrics";

/// Serves at this address until the process ends.
pub(super) fn serve(address: SocketAddr, ask: SyncSender<Answer>) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    OutputThread::start("metrics", move |_| {
        loop {
            match listener.accept() {
                // Who goes away meanwhile has nothing to be told.
                Ok((stream, _)) => drop(answer(stream, &ask)),
                // Out of descriptors: others may close theirs.
                Err(_) => thread::sleep(TIMEOUT),
            }
        }
    })
    .map(drop)
}

fn answer(mut stream: TcpStream, ask: &SyncSender<Answer>) -> io::Result<()> {
    let until = Instant::now() + TIMEOUT;
    let mut bytes = [0; LONGEST];
    let reply = match head(&mut stream, &mut bytes, until) {
        Ok(head) => reply(head, ask),
        Err(error) if error.kind() == ErrorKind::InvalidData => Reply::refused("400 Bad Request", error),
        Err(error) => return Err(error),
    };
    write_all(&mut stream, reply.bytes().as_slice(), Instant::now() + TIMEOUT)
}

/// Reads up to the empty line.
fn head<'b>(stream: &mut TcpStream, bytes: &'b mut [u8], until: Instant) -> io::Result<&'b str> {
    let wrong = |why| Err(io::Error::new(ErrorKind::InvalidData, why));
    let mut filled = 0;
    while !has_end(&bytes[..filled]) {
        if filled == bytes.len() {
            return wrong("the head of the request is longer than 4096 bytes");
        }
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut bytes[filled..])? {
            0 => return wrong("the request ends before its empty line"),
            more => filled += more,
        }
    }
    match std::str::from_utf8(&bytes[..filled]) {
        Ok(head) => Ok(head),
        Err(_) => wrong("the head of the request is no text"),
    }
}

/// True with the empty line.
fn has_end(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|four| four == b"\r\n\r\n" || four.ends_with(b"\n\n"))
}

/// Reply to a request with this head.
fn reply(head: &str, ask: &SyncSender<Answer>) -> Reply {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", PATH) => {
            let page = page(ask);
            let reply = page.map_or_else(
                || {
                    Reply::refused(
                        "503 Service Unavailable",
                        "the cycle does not run: it has ended, or the bus is being prepared",
                    )
                },
                |page| Reply { status: "200 OK", kind: MEDIA_TYPE, body: page, whole: true },
            );
            Reply { whole: method == "GET", ..reply }
        }
        ("GET" | "HEAD", _) => {
            Reply::refused("404 Not Found", format_args!("{path}: expected {PATH}, which is all there is"))
        }
        _ => Reply::refused("405 Method Not Allowed", format_args!("{method}: expected GET {PATH}")),
    }
}

/// The page as the watch of the cycle makes it; none where it does not.
fn page(ask: &SyncSender<Answer>) -> Option<String> {
    let (answer, page) = mpsc::sync_channel(1);
    ask.try_send(answer).ok()?;
    page.recv_timeout(MADE_WITHIN).ok()
}

struct Reply {
    status: &'static str,
    kind: &'static str,
    body: String,
    /// With its body.
    whole: bool,
}

impl Reply {
    fn refused(status: &'static str, why: impl std::fmt::Display) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{why}\n"), whole: true }
    }

    fn bytes(self) -> Vec<u8> {
        let Self { status, kind, body, whole } = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        if whole { (head + &body).into_bytes() } else { head.into_bytes() }
    }
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// Time left until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str, page: Option<&'static str>) -> String {
        let (ask, asked) = mpsc::sync_channel::<Answer>(1);
        let watch = thread::spawn(move || {
            if let (Some(page), Ok(answer)) = (page, asked.recv()) {
                let _ = answer.send(page.to_owned());
            }
        });
        let reply = String::from_utf8(reply(head, &ask).bytes()).unwrap();
        drop(ask);
        watch.join().unwrap();
        reply
    }

    #[test]
    fn the_page_is_at_its_path_and_everything_else_is_told_where() {
        let reply = asked("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Some("up 1\n"));
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{reply}");
        assert!(reply.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\nup 1\n"), "{reply}");
        let head = asked("HEAD /metrics?x=1 HTTP/1.1\r\n\r\n", Some("up 1\n"));
        assert!(head.contains("200 OK") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(asked("GET /metrics HTTP/1.1\r\n\r\n", None).contains("503 Service Unavailable"));
        assert!(asked("GET / HTTP/1.1\r\n\r\n", None).contains("404 Not Found"));
        assert!(asked("POST /metrics HTTP/1.1\r\n\r\n", None).contains("405 Method Not Allowed"));
        assert!(asked("\r\n\r\n", None).contains("405 Method Not Allowed"));
    }
}
