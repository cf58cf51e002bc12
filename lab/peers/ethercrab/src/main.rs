//! ethercrab as a MainDevice: `ethercrab-peer check INTERFACE ONBEAT SIMULATOR` of the six-axis robot, or measured in
//! `ethercrab-peer wire INTERFACE SUB_DEVICES BYTES_EACH`, a conversation with `cargo xtask bench wire`.

mod bus;
mod check;
#[path = "../../wire/src/rounds.rs"]
mod rounds;
mod six_axis;

use std::process::ExitCode;
use std::time::Duration;

use bus::Error;

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
        ["check", interface, onbeat, name] => {
            let simulator = six_axis::Simulator { onbeat: (*onbeat).to_owned(), name: (*name).to_owned() };
            bus::run(interface, async move |main_device| check::all(main_device, &simulator).await)
        }
        ["wire", interface, sub_devices, bytes_each] => measure(interface, sub_devices, bytes_each),
        _ => Err("usage: ethercrab-peer check INTERFACE ONBEAT SIMULATOR | wire INTERFACE SUB_DEVICES BYTES_EACH".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ethercrab: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Bytes around the data of a frame's first datagram: Ethernet, EtherCAT and datagram header, counter.
const OVERHEAD: usize = 14 + 2 + 12;
/// A whole FPRD datagram of an AL status, of which ethercrab adds one per SubDevice to every frame.
const STATE_CHECK: usize = 12 + 2;

/// Measures the process-data loop: reaches Op, then answers rounds.
fn measure(interface: &str, sub_devices: &str, bytes_each: &str) -> Result<(), Error> {
    let (sub_devices, bytes_each): (usize, usize) = (sub_devices.parse()?, bytes_each.parse()?);
    let frame_length = OVERHEAD + 2 * sub_devices * bytes_each + STATE_CHECK * sub_devices;
    bus::run(interface, async move |main_device| {
        let group = bus::scan(main_device, sub_devices).await?;
        let group = group.into_safe_op(main_device).await?;
        let group = group.request_into_op(main_device).await?;
        while !group.tx_rx(main_device).await?.all_op() {
            async_io::Timer::after(Duration::from_millis(1)).await;
        }
        let expected = 3 * sub_devices as u16;
        rounds::serve_async(frame_length, async |_| {
            let found = group.tx_rx(main_device).await.map_err(|error| error.to_string())?.working_counter;
            if found == expected {
                Ok(())
            } else {
                Err(format!("working counter {found}, expected {expected}"))
            }
        })
        .await
        .map_err(Error::from)
    })
}
