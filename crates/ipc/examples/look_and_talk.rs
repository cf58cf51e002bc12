//! Reads the state of the one running cycle and, if it has a port of that name, exchanges messages
//! with it:
//!
//! `cargo run -p onbeat-ipc --example look_and_talk [PORT [WORDS]]`

use std::io::Write;
use std::time::Duration;

use onbeat_ipc::client::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ipc = Client::find()?;
    let (description, states) = (ipc.description(), ipc.state());
    println!("{} (process {}), {} axes", ipc.name(), ipc.process(), description.axes.len());
    for _ in 0..5 {
        let state = states.read()?;
        for (axis, now) in description.axes.iter().zip(&state.axes) {
            println!(
                "cycle {:8}  {:12} {:9.4} rad {:9.4} rad/s",
                state.cycle, axis.name, now.position, now.velocity
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut words = std::env::args().skip(1);
    let Some(name) = words.next() else { return Ok(()) };
    let mut port = ipc.port(&name)?;
    if let Some(words) = words.next() {
        port.write_all(words.as_bytes())?;
    }
    let mut buffer = vec![0; 65_536];
    while let Some(length) = port.recv_timeout(&mut buffer, Duration::from_secs(1))? {
        println!("{name}: {}", buffer[..length].escape_ascii());
    }
    Ok(())
}
