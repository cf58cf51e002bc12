//! Simulated laser range finder: SCIP 2.0 behind a pty, with the faults of real sensors.

mod sensor;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rt::clock::now_ns;

use super::Pty;
use super::scene::Scene;

pub use sensor::Sensor;

/// Properties and faults of the sensor.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Surroundings.
    pub scene: Scene,
    /// Distance of the sensor ahead of the robot's centre, m.
    pub ahead: f64,
    /// Duration of a turn.
    pub turn: Duration,
    /// Steps of a turn.
    pub steps: u16,
    /// First and last measured step, and the step that points ahead.
    pub sector: [u16; 3],
    /// Shortest and longest range, mm.
    pub reach: [u32; 2],
    /// Amplitude of the random error of a range, mm.
    pub noise: u32,
    /// Faults.
    pub faults: Faults,
}

impl Default for Settings {
    /// Settings similar to a URG-04LX.
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

/// Faults of real sensors and cables.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Starts in SCIP 1.1, until it is switched to 2.0.
    pub old_protocol: bool,
    /// Sends nothing at all.
    pub mute: bool,
    /// Sends bytes of no known protocol.
    pub garbage: bool,
    /// Fails to switch its laser on: status 01.
    pub broken_laser: bool,
    /// Delay of its replies.
    pub latency: Duration,
    /// Writes a few bytes at a time, so that lines arrive in pieces.
    pub in_pieces: bool,
    /// Corrupts the sum of one in this many scans; 0 for none.
    pub wrong_sum_in: u32,
    /// Cuts one in this many scans in the middle of a line; 0 for none.
    pub half_in: u32,
    /// Stops sending after this many scans; 0 for never.
    pub silent_after: u32,
    /// Is streaming already when it is opened.
    pub streams_already: bool,
}

/// Sensor on a dedicated pty and thread. Dropping it unplugs it.
#[derive(Debug)]
pub struct RangeFinder {
    path: PathBuf,
    faults: Arc<Mutex<Faults>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RangeFinder {
    /// Starts the sensor.
    ///
    /// # Errors
    /// The operating system's error when creating the pty or the thread.
    pub fn plug_in(settings: Settings) -> io::Result<Self> {
        let pty = Pty::new()?;
        let path = pty.path().to_owned();
        let faults = Arc::new(Mutex::new(settings.faults.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let mut sensor = Sensor::new(settings, now_ns());
        let thread = {
            let (faults, stop) = (Arc::clone(&faults), Arc::clone(&stop));
            thread::Builder::new().name("scip fake".into()).spawn(move || {
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

    /// Path to open by a driver: a terminal device below `/dev/pts`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces its faults while it runs.
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
