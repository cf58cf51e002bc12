//! CPU and memory load: a floating-point loop that never enters the kernel by itself, and copies
//! far larger than the caches.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Done;

/// Iterations between two checks of the flag: well below a millisecond.
const TURNS: u64 = 10_000;

/// Computes until `stop` is set.
pub fn run(stop: &AtomicBool) -> Done {
    let (mut value, mut count) = (1.0_f64, 0);
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            // A division and a root keep the floating-point unit busy, and the value near 1.
            value = black_box((value * 1.000_000_1 + 1.0 / value).sqrt());
        }
        count += TURNS;
    }
    black_box(value);
    Done { count, what: "floating-point turns" }
}

/// Size of each of the two buffers, bytes.
const SIZE: usize = 64 << 20;

/// Bytes copied between two checks of the flag.
const PIECE: usize = 1 << 20;

/// Interval within which it copies for its part of the time, and then sleeps.
const INTERVAL: Duration = Duration::from_millis(10);

/// Memory bandwidth load: copies far larger than the caches, so that every one goes to memory and
/// back, for `part` hundredths of the time until `stop` is set. The bandwidth used is that part of
/// the machine's: within each interval it is all there is.
pub fn copy(part: u8, stop: &AtomicBool) -> Done {
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
