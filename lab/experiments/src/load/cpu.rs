//! CPU load: a floating-point loop that never enters the kernel by itself.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

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
