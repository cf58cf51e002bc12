//! Our own ways from the cycle to the rest of the program: they wake nobody and wait for nobody.

use std::hint::black_box;
use std::io;

use rtrb::RingBuffer;
use runtime::status::{Status, status_cell};
use timing::CycleRecord;

/// Calls one of them so often.
pub(super) type Calls = Box<dyn FnMut(u32) -> io::Result<()> + Send>;

/// All of them: the seqlock of the newest status, the cycle's side alone and with the reading side, and the ring of
/// cycle records.
pub(super) fn ours() -> Vec<(&'static str, Calls)> {
    let status = Status::initial(AXES);
    let (mut alone, _) = status_cell(AXES);
    let (mut writer, reader) = status_cell(AXES);
    let (mut producer, mut consumer) = RingBuffer::new(64);
    let record = CycleRecord::begin(1, 2, 3);
    let published = status.clone();
    vec![
        (
            "our seqlock: publish a status of six axes",
            Box::new(move |times| {
                for _ in 0..times {
                    alone.publish(black_box(&published));
                }
                Ok(())
            }),
        ),
        (
            "our seqlock: publish it and read it",
            Box::new(move |times| {
                for _ in 0..times {
                    writer.publish(black_box(&status));
                    black_box(reader.read());
                }
                Ok(())
            }),
        ),
        (
            "our ring: push and pop a cycle record",
            Box::new(move |times| {
                for _ in 0..times {
                    let there = producer.push(black_box(record));
                    let back = consumer.pop();
                    if there.is_err() || back != Ok(record) {
                        return Err(io::Error::other("the ring lost a record that nobody else could take"));
                    }
                }
                Ok(())
            }),
        ),
    ]
}

/// Axes of the status: as many as the built-in robot has.
const AXES: usize = 6;
