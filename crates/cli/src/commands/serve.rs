//! `onbeat serve`: a page of a running cycle for a browser.
//!
//! | module | part |
//! |---|---|
//! | [`follow`] | a thread that reads the state of every cycle while a page is open |
//! | [`bus`] | threads that ask the bus for its state and its events |
//! | [`channels`] | values of a state that the scope shows, by number |
//! | [`picture`] | documents that the page gets |
//! | [`hub`] | open pages, and a bounded queue to each |
//! | [`session`] | the WebSocket of a page |
//! | [`http`] | the page, the metrics, and access checks |
//! | [`metrics`] | metrics for Prometheus, as [`exposition`] writes them |
//! | [`requests`] | which requests are answered, and the messages of a page |
//! | [`places`] | bounded number of connections; the oldest incomplete request gives way |
//!
//! Nothing here reaches the cycle but the reads of the shared-memory interface, and requests for
//! the state of the bus.

mod bus;
mod channels;
mod exposition;
mod follow;
mod http;
mod hub;
mod metrics;
mod picture;
mod places;
mod requests;
mod session;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use clap::Args;

use self::hub::Hub;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;

/// Reads the running cycle without root. The page cannot command the cycle, and does not affect its
/// timing. Without a cycle, and after its end, the page waits for the next one. Ctrl-C ends it.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(long, visible_alias = "cycle", value_name = "NAME|SOCKET")]
    ipc: Option<String>,

    /// Address and port to listen at; port 0 takes a free port. Every computer that reaches it can
    /// read the page
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8460")]
    listen: SocketAddr,

    /// Host name that browsers use for the page, other than localhost and addresses; repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
}

impl Serve {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let cannot = |error| {
            Failure::new(format!(
                "--listen {}: {error}; expected an address of this machine with a free port, as 127.0.0.1:8460",
                self.listen
            ))
        };
        let listener = TcpListener::bind(self.listen).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let hub = Arc::new(Hub::default());
        follow::start(Arc::clone(&hub), self.ipc.clone())?;
        output::say(format_args!("http://{address}/ shows the running cycle (Ctrl-C ends it)"));
        if !address.ip().is_loopback() {
            output::say(
                "every computer that reaches this address can read the page; the page cannot \
                 command anything",
            );
        }
        http::serve(listener, (self.host, self.ipc), &hub, &stop).map_err(cannot)
    }
}
