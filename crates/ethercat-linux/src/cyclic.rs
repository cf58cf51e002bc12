//! One cycle's frames: out, and back.

use std::io;
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{BringUpPhase, MainDevice};
use ethercat::time::Instant;
use rt::clock::Clock;

use crate::link::Link;

/// Frames taken from the link in one cycle: several times the frames of a cycle, so that a flood of
/// foreign frames takes a bounded time.
const FRAMES_A_CYCLE: usize = 256;

/// Time beyond the end of a cycle to wait for its replies before Op is requested: a busy machine
/// answers late, and ten consecutive cycles must be complete. Below half of a usual watchdog's
/// time, so that outputs keep coming.
const BEFORE_OP: Duration = Duration::from_millis(40);

/// Passes the received frames to the MainDevice, and waits for process data until `end`, a little
/// longer before Op is requested, when nothing moves. `now` is the clock as the caller has read it
/// last: it is read again for a wait only, and `waited` is called with the time after it. `buffer`
/// holds a frame if the link has no memory for it.
///
/// # Errors
/// The link's error; the frames are then still out.
#[inline]
pub fn receive<L: Link + ?Sized, C: Clock>(
    main_device: &mut MainDevice,
    link: &mut L,
    clock: &C,
    mut now: Instant,
    buffer: &mut [u8],
    end: Instant,
    mut waited: impl FnMut(Instant),
) -> io::Result<()> {
    let mut last = None;
    for _ in 0..FRAMES_A_CYCLE {
        if main_device.in_flight() == 0 {
            break;
        }
        let mut take = |frame: &[u8]| {
            main_device.handle_frame(now, frame);
        };
        if link.receive_in_place(buffer, &mut take)? {
            continue;
        }
        let end = *last.get_or_insert_with(|| latest(main_device, now, end));
        // Mailbox replies are taken if they are there, process data is waited for.
        let timeout = if main_device.awaiting() > 0 { end.since(clock.now()) } else { Duration::ZERO };
        if timeout.is_zero() {
            break;
        }
        let came = link.receive(buffer, timeout);
        now = clock.now();
        waited(now);
        if let Some(length) = came? {
            main_device.handle_frame(now, &buffer[..length]);
        }
    }
    Ok(())
}

/// End of the wait for replies in a cycle that ends then.
#[cold]
fn latest(main_device: &MainDevice, now: Instant, end: Instant) -> Instant {
    let is_before_op =
        main_device.phase() <= BringUpPhase::SafeOp && main_device.configuration().target == AlState::Op;
    if is_before_op { end.max(now + BEFORE_OP) } else { end }
}

/// Sends all frames due at `now`; `sent` gets each frame's outcome: a frame that the link refused
/// counts as lost.
pub fn transmit<L: Link + ?Sized>(
    main_device: &mut MainDevice,
    link: &mut L,
    now: Instant,
    mut sent: impl FnMut(io::Result<()>),
) {
    while let Some(frame) = main_device.next_frame(now) {
        sent(link.transmit(frame));
    }
}
