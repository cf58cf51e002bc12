//! Places of connections. If all are taken, a new connection replaces the one that has waited
//! longest for the head of a request, first a connection that never sent a complete head.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// A bounded number of places.
pub(super) struct Places {
    most: usize,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Default)]
struct Held {
    /// Number of the next place, or of the next wait for a head.
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

struct Connection {
    /// Order of the waits for heads; `None` while a request is answered.
    waits_since: Option<u64>,
    /// Complete heads of requests.
    heads: u64,
    /// Ends the task that serves it.
    task: Option<AbortHandle>,
}

/// A place that is taken; dropping it frees it.
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
}

impl Places {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::default(), freed: Notify::new() })
    }

    /// Waits for a free place, and ends a connection if one waits for a head.
    pub(super) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            if self.has_room() || self.end_oldest() {
                return;
            }
            freed.await;
        }
    }

    fn has_room(&self) -> bool {
        self.held().connections.len() < self.most
    }

    /// Ends the connection that has waited longest for a head; false if none waits for one.
    fn end_oldest(&self) -> bool {
        let mut held = self.held();
        let waiting = held.connections.iter();
        let waiting = waiting.filter_map(|(number, it)| Some(((it.heads > 0, it.waits_since?), *number)));
        let Some((_, number)) = waiting.min() else { return false };
        if let Some(task) = held.connections.remove(&number).and_then(|it| it.task) {
            task.abort();
        }
        true
    }

    /// Takes a place for a connection that waits for its first head.
    pub(super) fn take(self: &Arc<Self>) -> Place {
        let mut held = self.held();
        let number = held.number();
        held.connections.insert(number, Connection { waits_since: Some(number), heads: 0, task: None });
        Place { places: Arc::clone(self), number }
    }

    /// Names the task that serves the connection in this place.
    pub(super) fn ended_by(&self, number: u64, task: AbortHandle) {
        if let Some(connection) = self.held().connections.get_mut(&number) {
            connection.task = Some(task);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Place {
    /// Number of the place, for [`Places::ended_by`].
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Notes a complete head: until its answer the connection is not replaced.
    pub(super) fn begin(&self) {
        self.change(|it, _| {
            it.waits_since = None;
            it.heads += 1;
        });
    }

    /// Notes that the answer is there, and that the connection waits for its next head.
    pub(super) fn end(&self) {
        self.change(|it, now| it.waits_since = Some(now));
    }

    fn change(&self, change: impl FnOnce(&mut Connection, u64)) {
        {
            let mut held = self.places.held();
            let now = held.number();
            // An evicted connection is not in the list any more.
            if let Some(connection) = held.connections.get_mut(&self.number) {
                change(connection, now);
            }
        }
        self.places.freed.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.held().connections.remove(&self.number);
        self.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_wait_for_a_head_gives_way_and_answers_do_not() {
        let places = Places::new(3);
        let [first, second, third] = [(); 3].map(|()| places.take());
        assert!(!places.has_room());
        // The first is answered, the second has been, the third never sent a head.
        first.begin();
        second.begin();
        second.end();
        let is_held = |place: &Place| places.held().connections.contains_key(&place.number);
        let all = || [&first, &second, &third].map(is_held);
        assert!(places.end_oldest());
        assert_eq!(all(), [true, true, false]);
        assert!(places.has_room() && places.end_oldest());
        assert_eq!(all(), [true, false, false]);
        assert!(!places.end_oldest(), "an answer does not give way");
        // What has given way changes nothing any more.
        third.begin();
        drop(third);
        assert_eq!(places.held().connections.len(), 1);
        drop(first);
        assert_eq!(places.held().connections.len(), 0);
    }
}
