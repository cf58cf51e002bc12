//! Simulated HC-SR04: its lines, and the sound between it and the walls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rt::clock::now_ns;

use super::scene::Scene;
use crate::driver::sonar::Lines;
use crate::pair::DeviceError;
use crate::sonar::Edge;

/// Simulated sensor that points ahead.
#[derive(Clone, Debug, Default)]
pub struct Sensor {
    /// Surroundings.
    pub scene: Scene,
    /// Distance of the sensor ahead of the robot's centre, m.
    pub ahead: f64,
    edges: VecDeque<Edge>,
    number: u32,
    /// Disconnected while set.
    loose: Arc<AtomicBool>,
}

impl Sensor {
    /// Creates a sensor in this scene.
    #[must_use]
    pub fn new(scene: Scene) -> Self {
        Self { scene, ..Self::default() }
    }

    /// Flag that disconnects the wires while it is set.
    #[must_use]
    pub fn wires(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.loose)
    }
}

/// Time from the end of the pulse to the rise of the echo line: eight periods of 40 kHz and a
/// margin.
const BURST_NS: u64 = 450_000;

/// Time the echo line stays up without an echo.
const NOTHING_NS: u64 = 38_000_000;

impl Lines for Sensor {
    fn place(&self) -> String {
        "simulated".into()
    }

    fn open(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn trigger(&mut self) -> Result<(), DeviceError> {
        let now = now_ns();
        // Ignores pulses while the line is up.
        let busy = self.edges.back().is_some_and(|edge| edge.stamp_ns > now);
        if self.loose.load(Ordering::Relaxed) || busy {
            return Ok(());
        }
        // The nearest object within the beam; a wall out of range gives no echo.
        let beam = [-0.13, -0.06, 0.0, 0.06, 0.13];
        let distance = beam.map(|angle| self.scene.range(now, self.ahead, angle));
        let distance = distance.into_iter().fold(f64::INFINITY, f64::min) + (fastrand::f64() - 0.5) * 0.006;
        let heard = (0.02..4.0).contains(&distance);
        // Speed of sound at 20 degrees Celsius.
        let away_ns = if heard { (distance * 2.0 / 343.2 * 1e9) as u64 } else { NOTHING_NS };
        let up_ns = now + BURST_NS;
        for (stamp_ns, up) in [(up_ns, true), (up_ns + away_ns, false)] {
            self.number += 1;
            self.edges.push_back(Edge { stamp_ns, up, number: self.number });
        }
        Ok(())
    }

    fn edge(&mut self, longest: Duration) -> Result<Option<Edge>, DeviceError> {
        let end = now_ns() + longest.as_nanos() as u64;
        let next = self.edges.front().filter(|edge| edge.stamp_ns <= end).copied();
        let wait = next.map_or(end, |edge| edge.stamp_ns).saturating_sub(now_ns());
        thread::sleep(Duration::from_nanos(wait));
        if next.is_some() {
            self.edges.pop_front();
        }
        Ok(next)
    }

    fn close(&mut self) {
        self.edges.clear();
    }
}
