//! Pages of the kernel's trace ring buffer, as read from `trace_pipe_raw`.
//!
//! Layout: `include/linux/ring_buffer.h` and `events/header_page`. A page starts with the time of
//! its first record and the number of bytes used; each record has five bits of type or length and
//! 27 bits of time since the last one.

use super::format::EventFormat;

/// Layout of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    commit_offset: usize,
    commit_size: usize,
    data_offset: usize,
    data_size: usize,
}

impl PageLayout {
    /// Parses `events/header_page`; `None` if a field is missing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // The file is a list of fields without a name and an ID.
        let format = EventFormat::parse(&format!(
            "name: header_page\nID: 0\n{}",
            text.replace("field: ", "field:")
        ))?;
        let (commit, data) = (format.field("commit")?, format.field("data")?);
        let layout = Self {
            commit_offset: commit.offset,
            commit_size: commit.size,
            data_offset: data.offset,
            data_size: data.size,
        };
        let sound = matches!(commit.size, 4 | 8) && data.offset >= 8 && (16..1 << 20).contains(&data.size);
        sound.then_some(layout)
    }

    /// Size of a whole page, bytes.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.data_offset + self.data_size
    }
}

/// Page, whole or truncated: with any content, reading ends and stays within it.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    data: &'a [u8],
    end: usize,
    start_ns: u64,
    missed: bool,
}

/// Records before this page were overwritten (`RB_MISSED_EVENTS`).
const MISSED_EVENTS: u64 = 1 << 31;

/// Bits of the commit field that hold the length; the bits above are flags.
const LENGTH: u64 = (1 << 20) - 1;

impl<'a> Page<'a> {
    /// Parses a page's header; `None` if the bytes are too short for it.
    #[must_use]
    pub fn new(layout: &PageLayout, bytes: &'a [u8]) -> Option<Self> {
        let start_ns = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let commit = bytes.get(layout.commit_offset..layout.commit_offset + layout.commit_size)?;
        let mut wide = [0; 8];
        wide[..commit.len()].copy_from_slice(commit);
        let commit = u64::from_le_bytes(wide);
        let data = bytes.get(layout.data_offset..)?;
        let length = usize::try_from(commit & LENGTH).unwrap_or(usize::MAX).min(data.len());
        Some(Self {
            data: &data[..length],
            end: layout.data_offset + length,
            start_ns,
            missed: commit & MISSED_EVENTS != 0,
        })
    }

    /// Time of the first record.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// True if records just before this page were lost.
    #[must_use]
    pub fn missed(&self) -> bool {
        self.missed
    }

    /// Bytes in use, from the page's start; the rest may be cut off.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Records with their times, the oldest first.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records { rest: self.data, now: self.start_ns }
    }
}

/// Iterator over the records of a page.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    now: u64,
}

/// `enum ring_buffer_type`: lengths up to 28 words are in the type itself.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of time in a record's head.
const DELTA_BITS: u32 = 27;

/// Bits of absolute times; the bits above 59 come from the time so far.
const ABSOLUTE: u64 = (1 << 59) - 1;

impl<'a> Iterator for Records<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let head = self.word()?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                PADDING if delta == 0 => {
                    self.rest = &[];
                    return None;
                }
                PADDING => {
                    let length = self.word()? as usize;
                    // The length includes its own word; a discarded record still advances the time.
                    self.take(length.saturating_sub(4))?;
                    self.now = self.now.wrapping_add(delta);
                }
                TIME_EXTEND => {
                    let extend = u64::from(self.word()?) << DELTA_BITS;
                    self.now = self.now.wrapping_add(extend | delta);
                }
                TIME_STAMP => {
                    let stamp = u64::from(self.word()?) << DELTA_BITS | delta;
                    self.now = self.now & !ABSOLUTE | stamp & ABSOLUTE;
                }
                words => {
                    let length = match words {
                        0 => (self.word()? as usize).saturating_sub(4).next_multiple_of(4),
                        words => words as usize * 4,
                    };
                    self.now = self.now.wrapping_add(delta);
                    let record = self.take(length)?;
                    return Some((self.now, record));
                }
            }
        }
    }
}

impl<'a> Records<'a> {
    fn word(&mut self) -> Option<u32> {
        let word = self.take(4)?;
        Some(u32::from_le_bytes(word.try_into().ok()?))
    }

    /// Takes bytes; the iteration ends if they exceed the page.
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.rest.get(..length);
        self.rest = self.rest.get(length..).unwrap_or_default();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(commit_flags: u64, words: &[u32]) -> Vec<u8> {
        let mut page = 1_000_u64.to_le_bytes().to_vec();
        page.extend(((words.len() as u64 * 4) | commit_flags).to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page
    }

    #[test]
    fn the_layout_is_read_from_the_kernels_own_words() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap();
        assert_eq!(layout.page_size(), 4096);
        // 32-bit kernels have a local_t of four bytes.
        let narrow = HEADER_PAGE
            .replace("offset:8;\tsize:8", "offset:8;\tsize:4")
            .replace("offset:16;\tsize:4080", "offset:12;\tsize:4084");
        assert_eq!(PageLayout::parse(&narrow).unwrap().page_size(), 4096);
        assert_eq!(PageLayout::parse("nothing"), None);
    }

    #[test]
    fn every_kind_of_record_moves_time_on() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap();
        let bytes = page(
            MISSED_EVENTS,
            &[
                5 << 5 | 1,
                0xAAAA, // one word at 1005
                1 << 5 | TIME_EXTEND,
                2, // 2^28 + 1 later
                3 << 5,
                12,
                0xBBBB,
                0xCCCC, // a long record of two words, 3 later
                7 << 5 | PADDING,
                8,
                0, // discarded, 7 later
                9 << 5 | TIME_STAMP,
                1, // absolute: 2^27 + 9
                1,
                0xDDDD,
                PADDING, // the end
                1,
                0xEEEE,
            ],
        );
        let page = Page::new(&layout, &bytes).unwrap();
        assert!(page.missed() && page.start_ns() == 1_000);
        let records: Vec<(u64, usize)> =
            page.records().map(|(time, record)| (time, record.len())).collect();
        let extended = 1_005 + (1 << 28) + 1;
        assert_eq!(records, [(1_005, 4), (extended + 3, 8), ((1 << 27) + 9, 4)]);
    }

    #[test]
    fn a_page_cut_off_anywhere_ends_there() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap();
        let bytes = page(0, &[5 << 5 | 2, 1, 2, 6 << 5 | 1, 3]);
        assert!(Page::new(&layout, &bytes[..12]).is_none());
        for length in 16..bytes.len() {
            let count = Page::new(&layout, &bytes[..length]).unwrap().records().count();
            assert_eq!(count, usize::from(length >= 28), "{length}");
        }
    }
}
