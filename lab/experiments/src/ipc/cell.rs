//! Our own mechanisms from the cycle to the rest of the program: they wake no thread and never
//! wait.

use std::hint::black_box;
use std::io;

use control::status::{Status, status_cell};
use ipc::client::Client;
use ipc::state;
use record::CycleRecord;
use rtrb::RingBuffer;

use crate::ecci::{open_ipc, state_of};

/// Calls a mechanism this many times.
pub(super) type Calls = Box<dyn FnMut(u32) -> io::Result<()> + Send>;

/// All of them: the seqlock of the newest status, the cycle's side alone and with the reading side,
/// the ring of cycle records, and the shared-memory interface to other processes, as the status.
///
/// # Errors
/// The system refuses memory or a socket for the interface.
pub(super) fn ours() -> io::Result<Vec<(&'static str, Calls)>> {
    let status = Status::initial(0, AXES);
    let (mut alone, _) = status_cell(0, AXES);
    let (mut writer, reader) = status_cell(0, AXES);
    let (mut producer, mut consumer) = RingBuffer::new(64);
    let record = CycleRecord::begin(1, 2, 3);
    let published = status.clone();
    // Words of the axes, as a publication has them.
    let words = [0; AXES * state::AXIS];
    let (mut ipc, server, folder) = open_ipc(AXES)?;
    let seen = Client::open(server.path()).map_err(io::Error::other)?.state();
    let (mut unseen, unseen_door, unseen_folder) = open_ipc(AXES)?;
    let state = state_of(AXES);
    let (told, mut heard) = (state.clone(), state.clone());
    Ok(vec![
        (
            "our seqlock: publish a status of six axes",
            Box::new(move |times| {
                for _ in 0..times {
                    alone.publish(black_box(&published), black_box(&words));
                }
                Ok(())
            }),
        ),
        (
            "our seqlock: publish it and read it",
            Box::new(move |times| {
                for _ in 0..times {
                    writer.publish(black_box(&status), black_box(&words));
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
                        return Err(io::Error::other(
                            "the ring lost a record that no other thread could take",
                        ));
                    }
                }
                Ok(())
            }),
        ),
        (
            "our IPC: publish a state of six axes",
            Box::new(move |times| {
                let _open = (&unseen_door, &unseen_folder);
                for _ in 0..times {
                    unseen.state.publish(black_box(&told));
                }
                Ok(())
            }),
        ),
        (
            "our IPC: publish it and read it",
            Box::new(move |times| {
                let _open = (&server, &folder);
                for _ in 0..times {
                    ipc.state.publish(black_box(&state));
                    seen.read_into(&mut heard).map_err(io::Error::other)?;
                    black_box(&heard);
                }
                Ok(())
            }),
        ),
    ])
}

/// Axes of the status, as many as the built-in robot has.
const AXES: usize = 6;
