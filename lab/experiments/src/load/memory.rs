//! Memory bandwidth load: copies far larger than the caches, so that every one goes to memory and
//! back.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Done;

/// Size of each of the two buffers, bytes.
const SIZE: usize = 64 << 20;

/// Bytes copied between two checks of the flag.
const PIECE: usize = 1 << 20;

/// Interval within which it copies for its part of the time, and then sleeps.
const INTERVAL: Duration = Duration::from_millis(10);

/// Copies there and back for `part` hundredths of the time until `stop` is set. The bandwidth used
/// is that part of the machine's: within each interval it is all there is.
pub fn run(part: u8, stop: &AtomicBool) -> Done {
    let (mut from, mut to) = (vec![1_u8; SIZE], vec![2_u8; SIZE]);
    let mut count = 0;
    let mut begin = Instant::now();
    'all: loop {
        for start in (0..SIZE).step_by(PIECE) {
            // Relaxed: the flag carries no other data.
            if stop.load(Ordering::Relaxed) {
                break 'all;
            }
            let piece = start..start + PIECE;
            to[piece.clone()].copy_from_slice(black_box(&from[piece]));
            count += 1;
            if part < 100 && begin.elapsed() >= INTERVAL * part.into() / 100 {
                thread::sleep(INTERVAL.saturating_sub(begin.elapsed()));
                begin = Instant::now();
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    black_box((&from, &to));
    Done { count, what: "MiB copied" }
}
