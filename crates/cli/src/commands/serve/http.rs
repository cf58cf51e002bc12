//! HTTP: the page, its WebSocket, and access checks.
//!
//! A page of another origin must not read a robot through the browser of an authorised user. Names
//! that a foreign server resolves to this machine (DNS rebinding) are refused by their `Host`, and
//! pages of other origins by their `Origin`.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{interval, sleep, timeout};

use super::hub::Hub;
use super::places::{Place, Places};
use super::requests::allowed;
use super::session;
use super::{exposition, metrics};
use crate::stop::Stop;

/// Connections with requests at once; WebSockets are counted by the hub.
const CONNECTIONS: usize = 32;

/// Time for the head of a request to come, also of the next on the same connection.
const HEAD: Duration = Duration::from_secs(5);

/// Time for all requests of a connection.
const CONNECTION: Duration = Duration::from_secs(30);

/// Longest head of a request, bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// Time from one look for a stop to the next.
const STOP: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct Server {
    hub: Arc<Hub>,
    /// Names that a browser may know this machine by.
    names: Arc<[String]>,
    /// Cycle to read metrics of; without it, the running cycle.
    which: Option<Arc<str>>,
    /// One page of metrics is made at a time.
    turn: Arc<Mutex<()>>,
}

/// Serves until a stop is requested.
pub(super) fn serve(
    listener: TcpListener,
    (names, which): (Vec<String>, Option<String>),
    hub: &Arc<Hub>,
    stop: &Stop,
) -> io::Result<()> {
    let turn = Arc::new(Mutex::new(()));
    let server = Server { hub: Arc::clone(hub), names: names.into(), which: which.map(Into::into), turn };
    let router = Router::new()
        .route("/", get(page))
        .route("/socket", get(socket))
        .route("/metrics", get(figures))
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(server.clone(), guarded))
        .with_state(server);
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let places = Places::new(CONNECTIONS);
        let mut looks = interval(STOP);
        let mut waiting = None;
        while !stop.is_requested() {
            tokio::select! {
                _ = looks.tick() => {}
                accepted = listener.accept(), if waiting.is_none() => match accepted {
                    Ok((stream, _)) => waiting = Some(stream),
                    // Out of descriptors, or gone before it was accepted.
                    Err(_) => sleep(STOP).await,
                },
                () = places.room(), if waiting.is_some() => {
                    let Some(stream) = waiting.take() else { continue };
                    let place = places.take();
                    let number = place.number();
                    let task = tokio::spawn(answer(stream, place, router.clone()));
                    places.ended_by(number, task.abort_handle());
                    // Its head is read, if it is there, before further connections are accepted.
                    yield_now().await;
                }
            }
        }
        Ok(())
    });
    // A page of metrics may wait for a cycle that is suspended.
    runtime.shutdown_timeout(STOP);
    served
}

async fn answer(stream: TcpStream, place: Place, router: Router) {
    // Rows are to leave at once.
    let _ = stream.set_nodelay(true);
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LONGEST_HEAD);
    let (place, router) = (Arc::new(place), TowerToHyperService::new(router));
    let service = service_fn(move |request| {
        place.begin();
        let (place, answered) = (Arc::clone(&place), router.call(request));
        async move {
            let response = answered.await;
            place.end();
            response
        }
    });
    let served = connection.serve_connection(TokioIo::new(stream), service);
    // The connection is gone: an error cannot be reported to the client.
    let _ = timeout(CONNECTION, served.with_upgrades()).await;
}

/// Answers authorised requests, with headers that let the page load nothing but itself.
async fn guarded(State(server): State<Server>, request: Request, next: Next) -> Response {
    let host = match allowed(request.headers(), &server.names) {
        Ok(host) => host,
        Err((status, why)) => return (status, why + "\n").into_response(),
    };
    let nonce = nonce();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         connect-src 'self' ws://{host} wss://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let mut request = request;
    request.extensions_mut().insert(Nonce(nonce));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// Word that a page's own parts carry: another one for each page.
#[derive(Clone)]
struct Nonce(String);

/// 128 bits that cannot be guessed: keys from the system's random numbers are what a hash of
/// nothing depends on.
fn nonce() -> String {
    (0..2).fold(String::new(), |mut word, _| {
        let _ = write!(word, "{:016x}", RandomState::new().hash_one(()));
        word
    })
}

async fn page(request: Request) -> Response {
    let nonce = request.extensions().get::<Nonce>().map_or("", |it| &it.0);
    let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    ([kind], PAGE.replace("@NONCE@", nonce)).into_response()
}

/// The page in one document. `@NONCE@` marks where its own scripts and styles carry the nonce.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    include_str!("page/page.html").replace("@STYLE@", include_str!("page/page.css")).replace(
        "@SCRIPT@",
        concat!(
            include_str!("page/basics.js"),
            include_str!("page/store.js"),
            include_str!("page/trigger.js"),
            include_str!("page/plot.js"),
            include_str!("page/scope.js"),
            include_str!("page/panels.js"),
            include_str!("page/bus.js"),
            include_str!("page/page.js"),
        ),
    )
});

/// Metrics of the cycle as they are now; it is attached to for each page.
async fn figures(State(server): State<Server>) -> Response {
    let turn = server.turn.lock_owned().await;
    let made = spawn_blocking(move || {
        // Also held if the client has gone meanwhile.
        let _turn = turn;
        metrics::page(server.which.as_deref())
    })
    .await;
    match made.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(text) => ([(header::CONTENT_TYPE, exposition::MEDIA_TYPE)], text).into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n").into_response(),
    }
}

async fn socket(State(server): State<Server>, upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .max_message_size(session::LONGEST)
        .max_frame_size(session::LONGEST)
        .on_upgrade(move |socket| session::serve(socket, server.hub))
}

async fn nothing(request: Request) -> Response {
    let why = format!("{}: expected / or /metrics\n", request.uri().path());
    (StatusCode::NOT_FOUND, why).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_loads_nothing() {
        assert!(!PAGE.contains("@STYLE@") && !PAGE.contains("@SCRIPT@") && PAGE.contains("@NONCE@"));
        for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
            let inside = PAGE.replace("data:,", "").replace("http://www.w3.org", "");
            assert!(!inside.contains(elsewhere), "{elsewhere}");
        }
        assert_ne!(nonce(), nonce());
        assert_eq!(nonce().len(), 32);
    }
}
