//! Messages in a ring of bytes: each takes a record of fixed length, so that exactly the requested
//! number fits.

use rtrb::{Consumer, Producer};

/// Bytes before a message in its record: its length.
pub(super) const HEADER: usize = 4;

/// Puts in a message of 1 to `size` bytes; true if there was space.
#[inline]
pub(super) fn put(ring: &mut Producer<u8>, size: usize, message: &[u8]) -> bool {
    let Ok(mut chunk) = ring.write_chunk(HEADER + size) else { return false };
    let (first, second) = chunk.as_mut_slices();
    let length = (message.len() as u32).to_le_bytes();
    for (at, bytes) in [(0, &length[..]), (HEADER, message)] {
        let (here, there) = bytes.split_at(bytes.len().min(first.len().saturating_sub(at)));
        if let Some(to) = first.get_mut(at..at + here.len()) {
            to.copy_from_slice(here);
        }
        let at = (at + here.len()).saturating_sub(first.len());
        if let Some(to) = second.get_mut(at..at + there.len()) {
            to.copy_from_slice(there);
        }
    }
    chunk.commit_all();
    true
}

/// Copies the oldest message, cut to `buffer`, and removes it if `used` accepts the copy; returns
/// its length then.
#[inline]
pub(super) fn take(
    ring: &mut Consumer<u8>,
    size: usize,
    buffer: &mut [u8],
    used: impl FnOnce(&[u8]) -> bool,
) -> Option<usize> {
    let chunk = ring.read_chunk(HEADER + size).ok()?;
    let (first, second) = chunk.as_slices();
    let mut header = [0; HEADER];
    copy(first, second, 0, &mut header);
    let length = (u32::from_le_bytes(header) as usize).min(size).min(buffer.len());
    let buffer = &mut buffer[..length];
    copy(first, second, HEADER, buffer);
    used(buffer).then(|| {
        chunk.commit_all();
        length
    })
}

/// Copies from offset `at` on out of two consecutive slices, which must be long enough.
#[inline]
fn copy(first: &[u8], second: &[u8], at: usize, to: &mut [u8]) {
    let here = to.len().min(first.len().saturating_sub(at));
    let (to_here, to_there) = to.split_at_mut(here);
    if let Some(from) = first.get(at..at + here) {
        to_here.copy_from_slice(from);
    }
    let at = (at + here).saturating_sub(first.len());
    if let Some(from) = second.get(at..at + to_there.len()) {
        to_there.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_any_length_survive_a_ring_wrap() {
        let rounds = if cfg!(miri) { 100 } else { 20_000 };
        let (size, depth) = (13, 3);
        let (mut in_end, mut out_end) = rtrb::RingBuffer::new((HEADER + size) * depth);
        // The ring starts at a random offset.
        let mut random = fastrand::Rng::with_seed(3);
        let mut waiting = std::collections::VecDeque::new();
        for _ in 0..rounds {
            if random.bool() {
                let message: Vec<u8> = (0..random.usize(1..=size)).map(|_| random.u8(..)).collect();
                let fits = waiting.len() < depth;
                assert_eq!(put(&mut in_end, size, &message), fits);
                if fits {
                    waiting.push_back(message);
                }
            } else {
                let mut buffer = [0xEE; 13];
                let kept = random.bool();
                let taken = take(&mut out_end, size, &mut buffer, |copy| {
                    assert_eq!(Some(copy), waiting.front().map(Vec::as_slice));
                    !kept
                });
                match (waiting.front(), kept) {
                    (Some(message), false) => {
                        assert_eq!(taken, Some(message.len()));
                        waiting.pop_front();
                    }
                    _ => assert_eq!(taken, None),
                }
            }
        }
    }

    #[test]
    fn a_message_longer_than_the_buffer_is_cut() {
        let (mut in_end, mut out_end) = rtrb::RingBuffer::new((HEADER + 8) * 2);
        assert!(put(&mut in_end, 8, b"12345678"));
        assert!(put(&mut in_end, 8, b"next"));
        let mut buffer = [0; 3];
        assert_eq!(take(&mut out_end, 8, &mut buffer, |_| true), Some(3));
        assert_eq!(&buffer, b"123");
        let mut buffer = [0; 8];
        assert_eq!(take(&mut out_end, 8, &mut buffer, |_| true), Some(4));
        assert_eq!(&buffer[..4], b"next");
    }

    #[test]
    fn bytes_across_the_end_of_the_ring_are_put_together() {
        // Records of 7 bytes in a ring of 14, started at 5: a record begins at every offset in
        // turn.
        let (mut in_end, mut out_end) = rtrb::RingBuffer::new(14);
        for shift in 0..14 {
            assert!(put(&mut in_end, 3, b"abc"));
            let mut buffer = [0; 3];
            assert_eq!(take(&mut out_end, 3, &mut buffer, |_| true), Some(3), "shift {shift}");
            assert_eq!(&buffer, b"abc");
            in_end.push(0).unwrap();
            out_end.pop().unwrap();
        }
    }
}
