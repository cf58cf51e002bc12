//! Requests of browsers: which ones may be answered, and the wishes of a page.

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode, header};

/// The host that was asked, if it is this machine by a name that a foreign page cannot give it, and
/// no foreign page asks.
pub(super) fn allowed(headers: &HeaderMap, names: &[String]) -> Result<String, (StatusCode, String)> {
    let one = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        let first = values.next().and_then(|it| it.to_str().ok());
        (first, values.next().is_some())
    };
    let (Some(host), false) = one(header::HOST) else {
        return Err((
            StatusCode::BAD_REQUEST,
            "Host: expected one header, found none or several".to_owned(),
        ));
    };
    // It goes into the content security policy, where other letters have a meaning.
    let is_plain = host.bytes().all(|it| it.is_ascii_alphanumeric() || b".-_:[]".contains(&it));
    let authority = host.parse::<Authority>().ok().filter(|_| is_plain);
    let name = authority.map(|it| it.host().to_ascii_lowercase()).unwrap_or_default();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    if !address && name != "localhost" && !names.iter().any(|it| it.eq_ignore_ascii_case(&name)) {
        let why =
            format!("Host: expected localhost, an address or a name given with --host, found {host:?}");
        return Err((StatusCode::FORBIDDEN, why));
    }
    if headers.contains_key(header::ORIGIN) {
        let (origin, several) = one(header::ORIGIN);
        let of_this_page = |origin: &str| {
            origin.split_once("://").is_some_and(|(scheme, from)| {
                ["http", "https"].contains(&scheme) && from.eq_ignore_ascii_case(host)
            })
        };
        if several || !origin.is_some_and(of_this_page) {
            let found = origin.unwrap_or("no text");
            let why =
                format!("Origin: expected http://{host}, found {found:?}: pages of others may not look");
            return Err((StatusCode::FORBIDDEN, why));
        }
    }
    Ok(host.to_owned())
}

/// Channels that a page wants on its scope, of the cycle with this number.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    pub(super) attached: u64,
    /// Number of the wish: rows repeat it.
    pub(super) wish: u64,
    pub(super) scope: Vec<u16>,
}

/// Reads a message of a page.
///
/// # Errors
/// Text that is no wish.
pub(super) fn wish(text: &str) -> Result<Wish, String> {
    serde_json::from_str(text).map_err(|error| {
        format!(r#"expected {{"attached":1,"wish":1,"scope":[0]}}, found what is none: {error}"#)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(HeaderName, &str)]) -> Result<String, StatusCode> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        allowed(&headers, &["robot.example".to_owned()]).map_err(|(status, _)| status)
    }

    // feature(program): `serve` answers no page of another origin, and none that calls this machine by a foreign name (DNS rebinding)
    #[test]
    fn only_this_machine_by_its_own_names_and_only_its_own_page() {
        use header::{HOST, ORIGIN};
        for host in [
            "127.0.0.1:8460",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8460",
            "192.0.2.7:80",
            "robot.example:8460",
        ] {
            assert_eq!(asked(&[(HOST, host)]), Ok(host.to_owned()));
            assert_eq!(asked(&[(HOST, host), (ORIGIN, &format!("http://{host}"))]), Ok(host.to_owned()));
        }
        for host in [
            "evil.example",
            "evil.example:8460",
            "127.0.0.1.evil.example",
            "localhost.",
            "a@127.0.0.1@b",
            "",
            "x y",
        ] {
            assert_eq!(asked(&[(HOST, host)]), Err(StatusCode::FORBIDDEN), "{host}");
        }
        let host = (HOST, "localhost:8460");
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost",
            "http://localhost:84600",
            "file://",
            "x://localhost:8460",
        ] {
            assert_eq!(asked(&[host.clone(), (ORIGIN, origin)]), Err(StatusCode::FORBIDDEN), "{origin}");
        }
        let twice = [host.clone(), (ORIGIN, "http://localhost:8460"), (ORIGIN, "http://evil.example")];
        let mut headers = HeaderMap::new();
        for (name, value) in twice {
            headers.append(name, value.parse().unwrap());
        }
        assert!(allowed(&headers, &[]).is_err());
        assert_eq!(asked(&[]), Err(StatusCode::BAD_REQUEST));
    }
}
