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

/// Reads the running cycle as any program may, without root: the page cannot command it, and the cycle cannot notice it. Without a cycle it
/// waits for one, and for the next when it ends. Ctrl-C ends it.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(long, visible_alias = "cycle", value_name = "NAME|SOCKET")]
    ipc: Option<String>,

    /// Address and port of this machine to listen at; port 0 takes a free one. All that reach it may look
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8460")]
    listen: SocketAddr,

    /// Name under which browsers reach the page, beside localhost and addresses; may be given several times
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
            output::say("anybody who reaches this address may look; nothing can be commanded there");
        }
        http::serve(listener, (self.host, self.ipc), &hub, &stop).map_err(cannot)
    }
}
