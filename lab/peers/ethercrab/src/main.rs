//! ethercrab as a MainDevice: `ethercrab-peer judge INTERFACE ONBEAT SIMULATOR` of the six-axis robot, or measured in
//! `ethercrab-peer wire INTERFACE SUB_DEVICES BYTES_EACH`, a conversation with `cargo xtask bench wire`.

mod bus;
mod judge;
#[path = "../../wire/src/rounds.rs"]
mod rounds;
mod six_axis;
mod wire;

use std::process::ExitCode;

/// Groups for 1024 SubDevices lie on the stack, several at once in an unoptimised build.
const STACK: usize = 1 << 28;

fn main() -> ExitCode {
    let peer = std::thread::Builder::new().name("main-device".to_owned()).stack_size(STACK).spawn(peer);
    peer.ok().and_then(|peer| peer.join().ok()).unwrap_or(ExitCode::FAILURE)
}

fn peer() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["judge", interface, onbeat, name] => {
            let simulator = six_axis::Simulator { onbeat: (*onbeat).to_owned(), name: (*name).to_owned() };
            bus::run(interface, async move |main_device| judge::judge(main_device, &simulator).await)
        }
        ["wire", interface, sub_devices, bytes_each] => wire::measure(interface, sub_devices, bytes_each),
        _ => Err("usage: ethercrab-peer judge INTERFACE ONBEAT SIMULATOR | wire INTERFACE SUB_DEVICES BYTES_EACH".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ethercrab: {error}");
            ExitCode::FAILURE
        }
    }
}
