//! A laser range finder that speaks SCIP 2.0 behind a pty, with all the bad habits of a real one.

mod sensor;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::pty::Pty;
use super::scene::Scene;
use crate::clock::now_ns;

pub use sensor::Sensor;

/// What a sensor is, and does wrong.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it sees.
    pub scene: Scene,
    /// How far before the robot's middle it sits, m.
    pub ahead: f64,
    /// Time of a turn.
    pub turn: Duration,
    /// Steps of a turn.
    pub steps: u16,
    /// First and last step it measures, and the one that looks ahead.
    pub sector: [u16; 3],
    /// Shortest and longest range, mm.
    pub reach: [u32; 2],
    /// How far ranges are off at random, mm.
    pub noise: u32,
    /// Bad habits.
    pub faults: Faults,
}

impl Default for Settings {
    /// Something like a URG-04LX.
    fn default() -> Self {
        Self {
            scene: Scene::default(),
            ahead: 0.0,
            turn: Duration::from_millis(100),
            steps: 1_024,
            sector: [44, 725, 384],
            reach: [20, 5_600],
            noise: 5,
            faults: Faults::default(),
        }
    }
}

/// Bad habits, each of which real sensors and cables have.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Wakes up in SCIP 1.1 and must be told to speak 2.0.
    pub old_protocol: bool,
    /// Says nothing at all.
    pub mute: bool,
    /// Speaks no known language.
    pub garbage: bool,
    /// Refuses to switch its laser on: status 01.
    pub broken_laser: bool,
    /// Answers so much later.
    pub latency: Duration,
    /// Writes a few bytes at a time, so that lines arrive in pieces.
    pub in_pieces: bool,
    /// One in so many scans has a wrong sum; 0 for none.
    pub wrong_sum_in: u32,
    /// One in so many scans ends in the middle of a line; 0 for none.
    pub half_in: u32,
    /// Stops sending after so many scans; 0 for never.
    pub silent_after: u32,
    /// Was streaming already when it was found.
    pub streams_already: bool,
}

/// A sensor behind a pty of its own, on a thread of its own. Dropped, it is pulled out.
#[derive(Debug)]
pub struct RangeFinder {
    path: PathBuf,
    faults: Arc<Mutex<Faults>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RangeFinder {
    /// Plugs it in.
    ///
    /// # Errors
    /// What the system says when asked for a pty or a thread.
    pub fn plug_in(settings: Settings) -> io::Result<Self> {
        let pty = Pty::new()?;
        let path = pty.path().to_owned();
        let faults = Arc::new(Mutex::new(settings.faults.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let mut sensor = Sensor::new(settings, now_ns());
        let thread = {
            let (faults, stop) = (Arc::clone(&faults), Arc::clone(&stop));
            thread::Builder::new().name("scip double".into()).spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    sensor.settings.faults = faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    if serve(&pty, &mut sensor).is_err() {
                        break;
                    }
                }
            })?
        };
        Ok(Self { path, faults, stop, thread: Some(thread) })
    }

    /// What a driver opens: a terminal device below `/dev/pts`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it other habits while it runs.
    pub fn misbehave(&self, faults: Faults) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }
}

impl Drop for RangeFinder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(pty: &Pty, sensor: &mut Sensor) -> io::Result<()> {
    let mut bytes = [0; 256];
    let read = pty.read_within(&mut bytes, Duration::from_millis(2))?;
    if read > 0 {
        let latency = sensor.settings.faults.latency;
        if !latency.is_zero() {
            thread::sleep(latency);
        }
        sensor.handle_bytes(&bytes[..read], now_ns());
    }
    let said = sensor.poll_transmit(now_ns());
    let piece = if sensor.settings.faults.in_pieces { 7 } else { 4_096 };
    for piece in said.chunks(piece) {
        pty.write(piece)?;
        if sensor.settings.faults.in_pieces {
            thread::sleep(Duration::from_micros(50));
        }
    }
    Ok(())
}
