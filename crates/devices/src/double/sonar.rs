//! The lines of an HC-SR04, and the sound between it and the walls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::scene::Scene;
use crate::clock::now_ns;
use crate::driver::sonar::Lines;
use crate::pair::DeviceError;
use crate::sonar::Edge;

/// A sensor that looks ahead.
#[derive(Clone, Debug, Default)]
pub struct Sensor {
    /// What it hears.
    pub scene: Scene,
    /// How far before the robot's middle it sits, m.
    pub ahead: f64,
    edges: VecDeque<Edge>,
    number: u32,
    /// The wires hang loose while set.
    loose: Arc<AtomicBool>,
}

impl Sensor {
    /// In this scene.
    #[must_use]
    pub fn new(scene: Scene) -> Self {
        Self { scene, ..Self::default() }
    }

    /// Loosens the wires while the flag is set.
    #[must_use]
    pub fn wires(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.loose)
    }
}

/// From the end of the pulse to the echo line's going up: eight periods of 40 kHz and some.
const BURST_NS: u64 = 450_000;

/// How long the line stays up when nothing answers.
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
        // It heeds no pulse while the line is up.
        let busy = self.edges.back().is_some_and(|edge| edge.stamp_ns > now);
        if self.loose.load(Ordering::Relaxed) || busy {
            return Ok(());
        }
        // The nearest thing within the beam; a wall beyond reach is not heard.
        let beam = [-0.13, -0.06, 0.0, 0.06, 0.13];
        let distance = beam.map(|angle| self.scene.range(now, self.ahead, angle));
        let distance = distance.into_iter().fold(f64::INFINITY, f64::min) + (fastrand::f64() - 0.5) * 0.006;
        let heard = (0.02..4.0).contains(&distance);
        // At 20 degrees Celsius.
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
