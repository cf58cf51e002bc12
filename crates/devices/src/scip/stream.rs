//! Replies from a stream of bytes, resynchronising after garbage.

use super::command::Echo;
use super::reply::{Reply, ReplyError, status};

/// Splits a stream of bytes into replies. Bytes that belong to no reply are dropped and counted,
/// and the next complete reply is found again, also after a reply without its end.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    buffer: Vec<u8>,
    /// Number of bytes already searched for an end.
    searched: usize,
    lost: u64,
}

impl Replies {
    /// Creates an empty stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        // Longer than any reply: no end can follow.
        if self.buffer.len() > LONGEST_REPLY && end_of_block(&self.buffer, self.searched).is_none() {
            let keep = self.buffer.len() - LONGEST_REPLY / 2;
            self.lost += keep as u64;
            self.buffer.drain(..keep);
            self.searched = 0;
        }
    }

    /// Next reply; `None` until more bytes arrive.
    pub fn next_reply(&mut self) -> Option<Result<Reply, ReplyError>> {
        loop {
            let Some(end) = end_of_block(&self.buffer, self.searched) else {
                self.searched = self.buffer.len().saturating_sub(1);
                return None;
            };
            let block = &self.buffer[..end];
            let (read, lost) = best_of(block);
            self.lost += lost as u64;
            let nothing = block.iter().all(|&byte| byte == b'\n');
            self.buffer.drain(..end + 2);
            self.searched = 0;
            // Line feeds between replies are neither a reply nor an error.
            if !nothing {
                return Some(read);
            }
        }
    }

    /// Number of bytes that belonged to no reply.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Discards bytes that were received and not taken.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.searched = 0;
    }
}

/// Position of the first two consecutive line feeds, from `from` on.
fn end_of_block(bytes: &[u8], from: usize) -> Option<usize> {
    let from = from.min(bytes.len());
    bytes[from..].windows(2).position(|pair| pair == b"\n\n").map(|place| from + place)
}

/// Whole reply at the end of a block, and the number of bytes before it. It does not start at the
/// block's first byte if bytes in front of it, or the end of an earlier reply, were lost. Without
/// one, the error of the first candidate.
fn best_of(block: &[u8]) -> (Result<Reply, ReplyError>, usize) {
    let mut first_error = None;
    for start in starts(block) {
        match Reply::parse(&block[start..]) {
            Ok(reply) => return (Ok(reply), start),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    let error = first_error.or_else(|| Reply::parse(block).err());
    // `starts` yields every position at which a reply could begin, including the block's first
    // byte.
    (Err(error.unwrap_or(ReplyError::Echo { found: Vec::new() })), block.len())
}

/// Positions at which a reply may begin: an echo up to the end of a line, with a status in the next
/// line.
fn starts(block: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let ends = block.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(place, _)| place);
    ends.flat_map(move |end| {
        let begin = block[..end].iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
        let begin = begin.max(end.saturating_sub(LONGEST_ECHO));
        let next = block[end + 1..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        let echo = move |&start: &usize| {
            Echo::parse(&block[start..end]).is_some_and(|echo| status(next, echo.symbol).is_some())
        };
        // A status has three bytes or one: checked first because it is cheaper than the search for
        // echoes.
        let possible = matches!(next.len(), 1 | 3);
        (begin..end).filter(move |start| possible && echo(start))
    })
}

/// Length of an MD with a tag of sixteen characters.
const LONGEST_ECHO: usize = 2 + 13 + 1 + 16;

/// 10 000 steps of three characters, with sums, line feeds and a margin.
const LONGEST_REPLY: usize = 32_768;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scip::command::Symbol;
    use crate::scip::reply::{Content, recorded};

    const GD: &[u8] = recorded(0);

    fn all(bytes: &[u8]) -> (Vec<Result<Reply, ReplyError>>, u64) {
        let mut replies = Replies::new();
        replies.push(bytes);
        let found = std::iter::from_fn(|| replies.next_reply()).collect();
        (found, replies.lost())
    }

    fn is_the_scan(reply: &Result<Reply, ReplyError>) -> bool {
        reply
            .as_ref()
            .is_ok_and(|it| matches!(&it.content, Content::Scan { ranges, .. } if ranges.len() == 682))
    }

    #[test]
    fn replies_come_out_whole_however_they_come_in() {
        for piece in [1, 2, 3, 7, 64, 1_000, 10_000] {
            let mut replies = Replies::new();
            let mut found = 0;
            for bytes in [GD, GD, b"BM\n00P\n\n"].concat().chunks(piece) {
                replies.push(bytes);
                while let Some(reply) = replies.next_reply() {
                    found += 1;
                    assert!(reply.is_ok());
                }
            }
            assert_eq!((found, replies.lost()), (3, 0), "in pieces of {piece}");
        }
    }

    #[test]
    fn garbage_before_a_reply_is_dropped_and_counted() {
        let (found, lost) = all(&[b"\xff\x00rubbish\n12", GD].concat());
        assert_eq!((found.len(), lost), (1, 12));
        assert!(is_the_scan(&found[0]));
    }

    #[test]
    fn reply_without_end_does_not_spoil_the_next() {
        for cut in (1..GD.len() - 2).step_by(13) {
            let (found, _) = all(&[&GD[..cut], GD].concat());
            assert!(found.iter().any(is_the_scan), "the first cut at {cut}");
            // If the beginning of the second is lost, too, the third is found.
            let (found, _) = all(&[&GD[..cut], &GD[cut + 1..], GD].concat());
            assert!(is_the_scan(found.last().unwrap()), "a byte missing at {cut}");
        }
    }

    #[test]
    fn wrong_reply_is_one_error_and_the_next_is_read() {
        let mut wrong = GD.to_vec();
        wrong[100] ^= 1;
        let (found, lost) = all(&[wrong.as_slice(), b"QT\n00P\n\n"].concat());
        assert!(matches!(found[0], Err(ReplyError::Sum { line: 5, .. })), "{:?}", found[0]);
        assert_eq!(found[1].as_ref().unwrap().echo.symbol, Symbol::LaserOff);
        assert_eq!(lost, GD.len() as u64 - 2);
    }

    #[test]
    fn garbage_without_an_end_does_not_grow_for_ever() {
        let mut replies = Replies::new();
        for _ in 0..1_000 {
            replies.push(&[b'x'; 1_000]);
            assert!(replies.buffer.len() <= LONGEST_REPLY + 1_000);
            assert!(replies.next_reply().is_none());
        }
        replies.push(&[b"\n", GD].concat());
        assert!(is_the_scan(&replies.next_reply().unwrap()));
    }
}
