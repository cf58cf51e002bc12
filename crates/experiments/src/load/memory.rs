//! Memory bandwidth load: copies far larger than the caches, so that every one goes to memory and back.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Done;

/// Size of each of the two buffers, bytes.
const SIZE: usize = 64 << 20;

/// Bytes copied between two checks of the flag.
const PIECE: usize = 1 << 20;

/// Copies there and back until `stop` is set.
pub fn run(stop: &AtomicBool) -> Done {
    let (mut from, mut to) = (vec![1_u8; SIZE], vec![2_u8; SIZE]);
    let mut count = 0;
    'all: loop {
        for start in (0..SIZE).step_by(PIECE) {
            // Relaxed: the flag carries no other data.
            if stop.load(Ordering::Relaxed) {
                break 'all;
            }
            let piece = start..start + PIECE;
            to[piece.clone()].copy_from_slice(black_box(&from[piece]));
            count += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    black_box((&from, &to));
    Done { count, what: "MiB copied" }
}
