//! Links of the two cables of a ring, watched by a second thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ethercat::link::{End, Segment};

use crate::sys::packet_socket::PacketSocket;

/// Watches the carrier of both interfaces until it is dropped: an interface without one, or that is
/// down, has no link.
#[derive(Debug)]
pub(super) struct Cables {
    linked: Arc<[AtomicBool; 2]>,
    /// Links as the segment has them.
    known: [bool; 2],
}

/// Interval of the looks: a cycle of 1 ms is without a frame once or twice.
const LOOK_EVERY: Duration = Duration::from_micros(500);

impl Cables {
    /// Starts watching. The thread inherits the caller's priority, so call it before that gets a
    /// real-time one.
    ///
    /// # Errors
    /// The socket or the thread cannot be had.
    pub(super) fn watch(interfaces: [String; 2]) -> io::Result<Self> {
        let socket = PacketSocket::new()?;
        let is_linked =
            move |name: &String| socket.interface_state(name).is_ok_and(|state| state.up && state.carrier);
        let linked = Arc::new(interfaces.each_ref().map(|name| AtomicBool::new(is_linked(name))));
        let watched = Arc::downgrade(&linked);
        thread::Builder::new().name("cables".into()).spawn(move || {
            while let Some(linked) = watched.upgrade() {
                for (linked, name) in linked.iter().zip(&interfaces) {
                    // Relaxed: nothing but the flag itself is passed through it.
                    linked.store(is_linked(name), Ordering::Relaxed);
                }
                drop(linked);
                thread::sleep(LOOK_EVERY);
            }
        })?;
        Ok(Self { linked, known: [true; 2] })
    }

    /// Passes changes on to the segment.
    pub(super) fn tell<S: Segment + ?Sized>(&mut self, segment: &mut S) {
        for end in End::ALL {
            // Relaxed: as above.
            let linked = self.linked[end as usize].load(Ordering::Relaxed);
            if std::mem::replace(&mut self.known[end as usize], linked) != linked {
                segment.set_link(end, linked);
            }
        }
    }
}
