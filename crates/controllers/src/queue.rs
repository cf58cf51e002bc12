//! Short queue without allocation.

/// Up to `N` items, oldest first. When it is full the newest is dropped: its user empties it in
/// every cycle.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T, const N: usize> {
    items: [Option<T>; N],
    first: usize,
    length: usize,
}

impl<T: Copy, const N: usize> Queue<T, N> {
    pub(crate) const fn new() -> Self {
        Self { items: [None; N], first: 0, length: 0 }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.length < N {
            self.items[(self.first + self.length) % N] = Some(item);
            self.length += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.items[self.first].take()?;
        self.first = (self.first + 1) % N;
        self.length -= 1;
        Some(item)
    }
}
