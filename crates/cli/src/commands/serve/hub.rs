//! Open pages, and a bounded queue to each. A message that does not fit is counted; its sender
//! never waits.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::ws::{Message, Utf8Bytes};
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender, error::TrySendError};

use super::requests::Wish;

/// Pages at once.
pub(super) const PAGES: usize = 8;

/// Channels on one page's scope.
pub(super) const CHANNELS: usize = 64;

/// Messages on their way to one page.
const QUEUE: usize = 32;

/// Rows in one message: a page that draws thirty times a second gets more of them at cycles of less
/// than 125 us only.
const ROWS: usize = 256;

/// Events kept for a page that comes later.
const EVENTS: usize = 256;

/// Documents of which only the newest counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// The cycle, or that there is none.
    State,
    /// SubDevices as they were found.
    Tree,
    /// The same, as they are.
    Bus,
    Timing,
    Picture,
}

const SLOTS: usize = Slot::Picture as usize + 1;

/// Pages, and what they get.
#[derive(Default)]
pub(super) struct Hub(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    pages: Vec<Page>,
    /// Number that the next page gets.
    next: u64,
    slots: [Document; SLOTS],
    /// The newest events, with the number of the first.
    events: VecDeque<Utf8Bytes>,
    first_event: u64,
    /// Number of the cycle that is attached to, 0 for none so far, and of its channels.
    attached: u64,
    channels: usize,
}

#[derive(Default)]
struct Document {
    version: u64,
    text: Utf8Bytes,
}

/// One page.
struct Page {
    number: u64,
    queue: Sender<Message>,
    /// Channels on its scope.
    selected: Vec<u16>,
    /// Number of its wish for them.
    wish: u64,
    batch: Vec<f64>,
    rows: usize,
    /// Versions of the documents it has.
    has: [u64; SLOTS],
    next_event: u64,
    /// Rows that found no room.
    dropped: u64,
}

/// A page's wish that cannot be.
pub(super) type Refused = String;

impl Hub {
    /// One page more; none if there are enough. [`Hub::leave`] ends it.
    pub(super) fn join(&self) -> Option<(u64, Receiver<Message>)> {
        let mut it = self.lock();
        if it.pages.len() >= PAGES {
            return None;
        }
        it.next += 1;
        let (queue, messages) = mpsc::channel(QUEUE);
        let (number, next_event) = (it.next, it.first_event);
        it.pages.push(Page {
            number,
            queue,
            selected: Vec::new(),
            wish: 0,
            batch: Vec::new(),
            rows: 0,
            has: [0; SLOTS],
            next_event,
            dropped: 0,
        });
        Some((number, messages))
    }

    pub(super) fn leave(&self, number: u64) {
        self.lock().pages.retain(|page| page.number != number);
    }

    /// True once a cycle was attached to.
    pub(super) fn has_attached(&self) -> bool {
        self.lock().attached > 0
    }

    /// True if a page is open.
    pub(super) fn is_watched(&self) -> bool {
        !self.lock().pages.is_empty()
    }

    /// Puts these channels on a page's scope. Channels of a cycle that has ended are dropped.
    ///
    /// # Errors
    /// Too many, or one that the cycle does not have.
    pub(super) fn select(&self, number: u64, wish: Wish) -> Result<(), Refused> {
        let Wish { attached, wish, scope: channels } = wish;
        let mut it = self.lock();
        if channels.len() > CHANNELS {
            return Err(format!("scope: expected {CHANNELS} channels at most, found {}", channels.len()));
        }
        if attached != it.attached {
            return Ok(());
        }
        if let Some(unknown) = channels.iter().find(|&&channel| usize::from(channel) >= it.channels) {
            return Err(format!("scope: expected channels below {}, found {unknown}", it.channels));
        }
        if let Some(page) = it.pages.iter_mut().find(|page| page.number == number) {
            page.send_rows(attached, 0);
            page.selected = channels;
            page.wish = wish;
        }
        Ok(())
    }

    /// Goes over to another cycle: the channels of the one before are on no scope any more.
    pub(super) fn attach(&self, attached: u64, channels: usize) {
        let mut it = self.lock();
        (it.attached, it.channels) = (attached, channels);
        for page in &mut it.pages {
            page.clear();
            page.selected.clear();
        }
        for slot in [Slot::Tree, Slot::Bus, Slot::Timing, Slot::Picture] {
            it.slots[slot as usize] = Document::default();
        }
        it.pages.iter_mut().for_each(|page| page.has = [0; SLOTS]);
    }

    /// The newest of a kind of documents of this cycle.
    pub(super) fn set(&self, attached: u64, slot: Slot, document: &Value) {
        let text = document.to_string().into();
        let mut it = self.lock();
        if it.attached == attached {
            let slot = &mut it.slots[slot as usize];
            *slot = Document { version: slot.version + 1, text };
        }
    }

    /// An event more.
    pub(super) fn event(&self, event: &Value) {
        let text = event.to_string().into();
        let mut it = self.lock();
        if it.events.len() == EVENTS {
            it.events.pop_front();
            it.first_event += 1;
        }
        it.events.push_back(text);
    }

    /// Sends the state of a cycle to the pages with channels on their scopes.
    pub(super) fn row(&self, cycle: u64, time: f64, missed: u64, value: impl Fn(u16) -> f64) {
        let mut it = self.lock();
        let attached = it.attached;
        for page in it.pages.iter_mut().filter(|page| !page.selected.is_empty()) {
            page.batch.extend([cycle as f64, time]);
            page.batch.extend(page.selected.iter().map(|&channel| value(channel)));
            page.rows += 1;
            if page.rows == ROWS {
                page.send_rows(attached, missed);
            }
        }
    }

    /// Sends to each page what it does not have yet, as far as there is room; `missed`: cycles that
    /// were not read.
    pub(super) fn send(&self, missed: u64) {
        let Inner { pages, slots, events, first_event, attached, .. } = &mut *self.lock();
        for page in pages {
            page.send_documents(slots);
            page.send_events(events, *first_event);
            page.send_rows(*attached, missed);
        }
    }

    /// No thread panics with it held.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Page {
    fn send_documents(&mut self, slots: &[Document; SLOTS]) {
        for (has, newest) in self.has.iter_mut().zip(slots) {
            if *has != newest.version && newest.version > 0 {
                // A row that does not fit is sent with the next look, or replaced by a newer one.
                match self.queue.try_send(Message::Text(newest.text.clone())) {
                    Ok(()) => *has = newest.version,
                    Err(TrySendError::Full(_) | TrySendError::Closed(_)) => return,
                }
            }
        }
    }

    fn send_events(&mut self, events: &VecDeque<Utf8Bytes>, first: u64) {
        let lost = first.saturating_sub(self.next_event);
        if lost > 0 {
            let told = serde_json::json!({ "kind": "events_missed", "count": lost }).to_string();
            if self.queue.try_send(Message::Text(told.into())).is_err() {
                return;
            }
            self.next_event = first;
        }
        for event in events.iter().skip((self.next_event - first) as usize) {
            // Room is left for the rows.
            if self.queue.capacity() <= QUEUE / 4
                || self.queue.try_send(Message::Text(event.clone())).is_err()
            {
                return;
            }
            self.next_event += 1;
        }
    }

    /// Rows as little-endian doubles: a head of eight, then for each cycle its number, its time and
    /// the channels.
    fn send_rows(&mut self, attached: u64, missed: u64) {
        if self.rows == 0 {
            return;
        }
        let head = [
            attached as f64,
            self.wish as f64,
            self.rows as f64,
            (2 + self.selected.len()) as f64,
            missed as f64,
            self.dropped as f64,
            0.0,
            0.0,
        ];
        let mut bytes = Vec::with_capacity(8 * (head.len() + self.batch.len()));
        for number in head.iter().chain(&self.batch) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        if self.queue.try_send(Message::Binary(bytes.into())).is_err() {
            self.dropped += self.rows as u64;
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.rows = 0;
    }
}

#[cfg(test)]
mod tests;
