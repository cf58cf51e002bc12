//! Wires between GPIO lines of the emulated board, and a sonar on two of them.
//!
//! The board's chip (PL061) has nothing at its lines. qemu's test protocol (`-qtest`, lines of text
//! on a Unix socket) reports each change of an output and sets inputs: the kernel's driver sees
//! edges as on a wire, with its interrupts.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::qmp::Monitor;

/// Outputs, and the inputs wired to them. qemu reports changes of the chip's interrupt as changes
/// of line 0, and line 3 is the power button's.
const WIRES: [(u32, u32); 2] = [(1, 2), (6, 7)];

/// Trigger and echo of the sonar.
const SONAR: (u32, u32) = (4, 5);

/// Number of pings after which the reflecting object is farther away.
const NEAR_PINGS: u32 = 150;

/// Time to the nearer wall and back, then to the farther one.
const ECHOES: [Duration; 2] = [Duration::from_millis(3), Duration::from_millis(15)];

/// From the end of the trigger's pulse to the rising edge of the echo line.
const BURST: Duration = Duration::from_micros(450);

/// Lines with what hangs on them, until they are dropped.
#[derive(Debug)]
pub(super) struct Lines {
    socket: UnixStream,
    playing: Option<JoinHandle<()>>,
}

impl Lines {
    /// Finds the chip by qemu's monitor, and plays its lines over the test protocol, both on a Unix
    /// socket.
    ///
    /// # Errors
    /// A socket has no listener, or there is no such chip.
    pub(super) fn play(monitor: &Path, test: &Path) -> Result<Self, String> {
        let chip = Monitor::connect(monitor)?.device("pl061")?;
        let socket = UnixStream::connect(test).map_err(|error| format!("{}: {error}", test.display()))?;
        let mut lines = BufReader::new(socket.try_clone().map_err(failed)?);
        say(&socket, &format!("irq_intercept_out {chip}"))?;
        let mut answer = String::new();
        lines.read_line(&mut answer).map_err(failed)?;
        if answer.trim() != "OK" {
            return Err(failed(format_args!("expected OK to irq_intercept_out {chip}, found {answer:?}")));
        }
        let inputs = socket.try_clone().map_err(failed)?;
        let playing = thread::spawn(move || {
            let mut board = Board::default();
            for line in lines.lines().map_while(Result::ok) {
                for Change { after, line, up } in board.react(&line) {
                    thread::sleep(after);
                    let set = format!("set_irq_in {chip} unnamed-gpio-in {line} {}", u8::from(up));
                    // The thread that waits for qemu reports its end.
                    let _ = say(&inputs, &set);
                }
            }
        });
        Ok(Self { socket, playing: Some(playing) })
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        if let Some(playing) = self.playing.take() {
            let _ = playing.join();
        }
    }
}

fn say(mut socket: &UnixStream, words: &str) -> Result<(), String> {
    socket.write_all(format!("{words}\n").as_bytes()).map_err(failed)
}

fn failed(error: impl fmt::Display) -> String {
    format!("qemu's test protocol: {error}")
}

/// Change of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    after: Duration,
    line: u32,
    up: bool,
}

/// Far ends of the lines.
#[derive(Debug, Default)]
struct Board {
    pings: u32,
}

impl Board {
    /// Changes of inputs that follow a line of qemu's.
    fn react(&mut self, told: &str) -> Vec<Change> {
        let words: Vec<&str> = told.split_whitespace().collect();
        let ["IRQ", level, line] = words[..] else { return Vec::new() };
        let (up, Ok(line)) = (level == "raise", line.parse::<u32>()) else { return Vec::new() };
        if let Some((_, input)) = WIRES.iter().find(|(output, _)| *output == line) {
            return vec![Change { after: Duration::ZERO, line: *input, up }];
        }
        if line != SONAR.0 || up {
            return Vec::new();
        }
        self.pings += 1;
        let echo = ECHOES[usize::from(self.pings > NEAR_PINGS)];
        [(BURST, true), (echo, false)].map(|(after, up)| Change { after, line: SONAR.1, up }).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wires_carry_levels_and_a_sonar_answers_its_trigger() {
        let mut board = Board::default();
        let wire = |line, up| vec![Change { after: Duration::ZERO, line, up }];
        assert_eq!(board.react("IRQ raise 1"), wire(2, true));
        assert_eq!(board.react("IRQ lower 6\n"), wire(7, false));
        for nothing in ["OK", "", "IRQ raise", "IRQ raise x", "IRQ raise 0", "IRQ raise 4", "IRQ raise 2"] {
            assert_eq!(board.react(nothing), [], "{nothing}");
        }
        let echo = |length| {
            [(BURST, true), (length, false)].map(|(after, up)| Change { after, line: 5, up }).to_vec()
        };
        for _ in 0..NEAR_PINGS {
            assert_eq!(board.react("IRQ lower 4"), echo(ECHOES[0]));
        }
        assert_eq!(board.react("IRQ lower 4"), echo(ECHOES[1]));
    }
}
