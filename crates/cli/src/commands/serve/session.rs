//! The WebSocket of a page: takes wishes for the scope, and sends what its queue holds.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use tokio::time::{Instant, interval, timeout};

use super::hub::{Hub, PAGES};
use super::requests::wish;

/// Longest message of a page: a wish for all channels it may have is far shorter.
pub(super) const LONGEST: usize = 4096;

/// Time for a message to be taken; a page that takes longer is gone.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time from one question whether the page is still there to the next.
const PING: Duration = Duration::from_secs(10);

/// Time without a word, not even an answer to a ping, after which it is not.
const SILENCE: Duration = Duration::from_secs(30);

/// Leaves the hub at its end.
struct Seat<'h>(&'h Hub, u64);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// Serves a page until it goes, or takes nothing any more.
pub(super) async fn serve(mut socket: WebSocket, hub: Arc<Hub>) {
    let Some((number, mut queue)) = hub.join() else {
        let why = format!("{PAGES} pages look already: close one of them");
        return close(&mut socket, close_code::AGAIN, why).await;
    };
    let _seat = Seat(&hub, number);
    let mut pings = interval(PING);
    let mut heard = Instant::now();
    loop {
        let message = tokio::select! {
            queued = queue.recv() => match queued {
                Some(message) => message,
                None => return,
            },
            _ = pings.tick() => {
                if heard.elapsed() > SILENCE {
                    return;
                }
                Message::Ping(Bytes::new())
            }
            received = socket.recv() => {
                heard = Instant::now();
                match received {
                    Some(Ok(Message::Text(text))) => match wish(&text).and_then(|wish| hub.select(number, wish)) {
                        Ok(()) => continue,
                        Err(why) => return close(&mut socket, close_code::POLICY, why).await,
                    },
                    Some(Ok(Message::Binary(bytes))) => {
                        let why = format!("expected a JSON object as text, found {} bytes", bytes.len());
                        return close(&mut socket, close_code::UNSUPPORTED, why).await;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    // Gone, or no WebSocket any more: the library has answered what can be
                    // answered.
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                }
            }
        };
        if !matches!(timeout(TIMEOUT, socket.send(message)).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// Ends the connection, with the reason for its other end.
async fn close(socket: &mut WebSocket, code: u16, why: String) {
    // A control frame has room for 125 bytes, two of them for the code (RFC 6455, 5.5).
    let mut length = why.len().min(123);
    while !why.is_char_boundary(length) {
        length -= 1;
    }
    let frame = CloseFrame { code, reason: why[..length].into() };
    let _ = timeout(TIMEOUT, socket.send(Message::Close(Some(frame)))).await;
    // The other end answers before the connection ends, or its system would throw the reason away.
    let _ = timeout(TIMEOUT, async { while let Some(Ok(_)) = socket.recv().await {} }).await;
}
