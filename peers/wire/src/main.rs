//! Subjects of `cargo xtask bench wire`: the raw socket's floor, and Onbeat.
//!
//! `wire floor|riders|onbeat INTERFACE SUB_DEVICES BYTES_EACH` gets ready, prints `ready FRAME_BYTES`, and then
//! answers each line on standard input, a number of cycles, with one line: the CPU time those cycles took
//! together and each cycle's duration, all in nanoseconds.

mod floor;
mod onbeat;
mod rounds;

use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [kind @ ("floor" | "riders"), interface, sub_devices, bytes] => numbers(sub_devices, bytes)
            .and_then(|(sub_devices, bytes)| {
                floor::Floor::open(interface, sub_devices, bytes, *kind == "riders")
            })
            .and_then(|mut floor| serve(floor.frame_length(), || floor.exchange())),
        ["onbeat", interface, sub_devices, bytes] => numbers(sub_devices, bytes)
            .and_then(|(sub_devices, bytes)| onbeat::Onbeat::open(interface, sub_devices, bytes))
            .and_then(|mut onbeat| serve(onbeat.frame_length(), || onbeat.exchange())),
        _ => Err("usage: wire floor|riders|onbeat INTERFACE SUB_DEVICES BYTES_EACH".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn numbers(sub_devices: &str, bytes: &str) -> Result<(usize, usize), String> {
    let number = |word: &str| word.parse().map_err(|error| format!("`{word}` is no number: {error}"));
    Ok((number(sub_devices)?, number(bytes)?))
}

/// Serves rounds of a cycle that blocks: its future never waits, so one poll ends it.
fn serve(frame_length: usize, mut cycle: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let conversation = pin!(rounds::serve_async(frame_length, async || cycle()));
    match conversation.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err("a blocking cycle cannot be pending".into()),
    }
}
