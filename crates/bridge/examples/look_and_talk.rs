//! Reads the state of the one running cycle and, if it has a port of that name, exchanges messages with it:
//!
//! `cargo run -p onbeat-bridge --example look_and_talk [PORT [WORDS]]`

use std::io::Write;
use std::time::Duration;

use onbeat_bridge::attach::Attachment;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seam = Attachment::find()?;
    let (description, states) = (seam.description(), seam.state());
    println!("{} (process {}), {} axes", seam.name(), seam.process(), description.axes.len());
    for _ in 0..5 {
        let state = states.read()?;
        for (axis, now) in description.axes.iter().zip(&state.axes) {
            println!(
                "beat {:8}  {:12} {:9.4} rad {:9.4} rad/s",
                state.beat, axis.name, now.position, now.velocity
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut words = std::env::args().skip(1);
    let Some(name) = words.next() else { return Ok(()) };
    let mut port = seam.port(&name)?;
    if let Some(words) = words.next() {
        port.write_all(words.as_bytes())?;
    }
    let mut buffer = vec![0; 65_536];
    while let Some(length) = port.recv_timeout(&mut buffer, Duration::from_secs(1))? {
        println!("{name}: {}", buffer[..length].escape_ascii());
    }
    Ok(())
}
