//! Any head of a request to `onbeat serve`, and any message of a page: no panic; a host that is
//! answered is this machine by a name that no foreign page can give it, fits the content security
//! policy, and no foreign page asks.
//!
//! A first byte `{` makes it a message; otherwise it is a head, a header a line.
#![no_main]
#![allow(dead_code, reason = "of the included file only a part is called")]

#[path = "../../crates/cli/src/commands/serve/requests.rs"]
mod requests;

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use libfuzzer_sys::fuzz_target;

const NAME: &str = "robot.example";

fuzz_target!(|bytes: &[u8]| {
    match bytes {
        [b'{', ..] => {
            let Ok(text) = core::str::from_utf8(bytes) else { return };
            let _ = requests::wish(text);
        }
        head => asked(&headers(head)),
    }
});

fn asked(headers: &HeaderMap) {
    let Ok(host) = requests::allowed(headers, &[NAME.to_owned()]) else { return };
    let fits = |letter: char| letter.is_ascii_graphic() && !";,'\"".contains(letter);
    assert!(host.chars().all(fits), "{host:?} does not fit a policy");
    let name = host.rsplit_once('@').map_or(host.as_str(), |(_, name)| name);
    let name = match name.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => name.split(':').next().unwrap_or_default(),
    };
    let known = ["localhost", NAME].iter().any(|it| name.eq_ignore_ascii_case(it));
    assert!(known || name.parse::<IpAddr>().is_ok(), "{host:?} was answered");
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().expect("text");
        let from = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
        assert!(from.is_some_and(|from| from.eq_ignore_ascii_case(&host)), "{origin:?} may ask {host:?}");
    }
}

fn headers(head: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in head.split(|&byte| byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}
