//! Series with known drift, jitter and losses.

use proptest::prelude::*;

use super::*;

const PERIOD: u64 = 1_000_000;

/// Reproducible pseudo-random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ value >> 31
    }

    /// -1 to 1.
    fn signed(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// Arrivals with this drift and uniform jitter of this amplitude, with timestamps since 1970.
fn series(count: u64, drift_ppm: f64, amplitude_ns: f64) -> Vec<Arrival> {
    let mut random = Random(7);
    let at = |cycle: u64, random: &mut Random| {
        let drift = cycle as f64 * PERIOD as f64 * drift_ppm * 1e-6;
        let away = drift + random.signed() * amplitude_ns;
        1_795_000_000_000_000_000 + (cycle * PERIOD) as i64 + away.round() as i64
    };
    (0..count).map(|cycle| Arrival { cycle: cycle + 5, at_ns: at(cycle, &mut random) }).collect()
}

fn close(found: f64, wanted: f64, tolerance: f64) -> bool {
    (found - wanted).abs() <= tolerance
}

// feature(measure): `measure interference`: relative jitter, the paper's estimate of the SD of long runs, square waves of the outputs
// feature(measure): `measure interference`: independent observer, regression, moving average, covariance identity
#[test]
fn known_drift_and_jitter_come_out() {
    let arrivals = series(100_000, 37.5, 3_000.0);
    let found = jitter_of(PERIOD, WINDOW, &arrivals);
    assert!(close(found.oscillator_difference_ppm().unwrap(), 37.5, 1e-3), "{found:?}");
    assert!(close(found.mean_period_ns().unwrap(), 1_000_037.5, 1e-3));
    // Uniform of half-width a: standard deviation a / sqrt(3); S has two of them.
    let deviation = 3_000.0 / 3.0_f64.sqrt();
    assert!(close(found.jitter.standard_deviation(), deviation, 0.02 * deviation));
    assert!(close(found.periods.standard_deviation(), deviation * 2.0_f64.sqrt(), 0.02 * deviation));
    assert!(found.jitter.maximum() < 3_100.0 && found.jitter.minimum() > -3_100.0);
    assert_eq!((found.arrivals, found.missing, found.periods.count()), (100_000, 0, 99_999));
    let identity = found.identity.unwrap();
    assert!(identity.relative_difference() < 1e-3, "{identity:?}");
    assert!(identity.correlation().unwrap().abs() < 0.02, "each cycle is late by itself: {identity:?}");
    assert!(close(found.relative_jitter().unwrap(), 3_000.0 / PERIOD as f64, 1e-4));
    // The paper's way: the covariance is of the first 32 768 pairs, S of all.
    assert_eq!(found.short.unwrap().pairs, 1 << 15);
    assert!(close(found.estimated_deviation().unwrap(), deviation, 0.02 * deviation), "{found:?}");
}

#[test]
fn jitter_that_lasts_does_not_show_in_the_periods() {
    // Slowly varying lateness: S hardly shows it, J does, and the covariance is the difference.
    let arrivals: Vec<_> = (0..200_000_u64)
        .map(|cycle| {
            let late = 20_000.0 * (cycle as f64 * 0.01).sin();
            Arrival { cycle, at_ns: (cycle * PERIOD) as i64 + late.round() as i64 }
        })
        .collect();
    let found = jitter_of(PERIOD, WINDOW, &arrivals);
    let identity = found.identity.unwrap();
    assert!(close(found.jitter.standard_deviation(), 20_000.0 / 2.0_f64.sqrt(), 300.0));
    assert!(found.periods.standard_deviation() < 200.0);
    assert!(
        identity.correlation().unwrap() > 0.99 && identity.relative_difference() < 1e-3,
        "{identity:?}"
    );
    // S alone would say 100 ns: the estimate has the covariance of the first part.
    assert!(close(found.estimated_deviation().unwrap(), 20_000.0 / 2.0_f64.sqrt(), 600.0), "{found:?}");
}

#[test]
fn slow_drift_is_taken_away_by_the_moving_average() {
    // An oscillator that warms up: 3 ms in 200 s, as a parabola.
    let arrivals: Vec<_> = series(200_000, 0.0, 500.0)
        .into_iter()
        .map(|it| Arrival { at_ns: it.at_ns + ((it.cycle * it.cycle) as f64 * 7.5e-5) as i64, ..it })
        .collect();
    let found = jitter_of(PERIOD, WINDOW, &arrivals);
    let untouched = jitter_of(PERIOD, usize::MAX >> 40, &arrivals);
    assert!(untouched.jitter.standard_deviation() > 100_000.0);
    let inside = &found.trace.stretches()[200..1_300];
    assert!(inside.iter().all(|one| one.minimum > -3_000.0 && one.maximum < 3_000.0), "{inside:?}");
}

#[test]
fn lost_frames_are_missing_cycles_and_spoil_no_period() {
    let mut arrivals = series(50_000, -12.0, 1_000.0);
    arrivals.retain(|it| it.cycle % 1_000 != 17 && !(20_000..20_030).contains(&it.cycle));
    let found = jitter_of(PERIOD, WINDOW, &arrivals);
    assert_eq!((found.missing, found.longest_gap), (49 + 30, Some((20_030, 30))));
    assert!(found.periods.maximum() < PERIOD as f64 + 2_100.0, "{:?}", found.periods);
    assert!(close(found.oscillator_difference_ppm().unwrap(), -12.0, 1e-3));
    assert!(found.jitter.maximum() < 1_100.0 && found.identity.unwrap().relative_difference() < 1e-3);
    // The same arrivals without their numbers.
    let mut numbering = ByTime::new(PERIOD);
    let mut by_time: Vec<_> = arrivals.iter().filter_map(|it| numbering.push(it.at_ns)).collect();
    by_time.extend(numbering.finish());
    let again = jitter_of(PERIOD, WINDOW, &by_time);
    assert_eq!((again.missing, again.jitter.maximum()), (found.missing, found.jitter.maximum()));
}

// feature(measure): long runs in constant memory
#[test]
fn a_day_takes_the_memory_of_a_minute() {
    // 24 h at 1 kHz, every 40th cycle, as a stream.
    let mut observer = BusObserver::new(PERIOD, WINDOW);
    let mut random = Random(3);
    for step in 0..2_160_000_u64 {
        let cycle = step * 40 + u64::from(step % 2 == 1);
        let drift = cycle as f64 * 20.0;
        let late = if step == 1_000_000 { 400_000.0 } else { random.signed() * 2_000.0 };
        let at_ns = (cycle * PERIOD) as i64 + (drift + late).round() as i64;
        observer.arrive(Arrival { cycle, at_ns });
    }
    let found = observer.finish();
    assert!(close(found.oscillator_difference_ppm().unwrap(), 20.0, 1e-4));
    assert!(close(found.jitter.maximum(), 400_000.0, 100.0), "{:?}", found.jitter);
    // The one late cycle has its weight in the mean of squares.
    let variance = 2_000.0_f64.powi(2) / 3.0 + 400_000.0_f64.powi(2) / 2_160_000.0;
    assert!(close(found.jitter.standard_deviation(), variance.sqrt(), 5.0), "{:?}", found.jitter);
    assert_eq!(found.arrivals, 2_160_000);
    assert!(found.trace.stretches().len() <= 2_000);
}

#[test]
fn streaming_and_whole_agree_but_at_the_ends() {
    let arrivals = series(60_000, 25.0, 2_000.0);
    let whole = jitter_of(PERIOD, 1_000, &arrivals);
    let mut observer = BusObserver::new(PERIOD, 1_000);
    arrivals.iter().for_each(|&arrival| assert!(observer.arrive(arrival)));
    let stream = observer.finish();
    assert_eq!((stream.periods, stream.line), (whole.periods, whole.line));
    let (stream, whole) = (stream.jitter.standard_deviation(), whole.jitter.standard_deviation());
    assert!(close(stream, whole, 1e-3 * whole), "{stream} {whole}");
}

#[test]
fn few_arrivals_are_no_error() {
    let none = jitter_of(PERIOD, WINDOW, &[]);
    assert_eq!((none.arrivals, none.line, none.identity), (0, None, None));
    let one = jitter_of(PERIOD, WINDOW, &series(1, 0.0, 0.0));
    assert_eq!((one.arrivals, one.jitter.count(), one.periods.count()), (1, 1, 0));
    let mut observer = BusObserver::new(PERIOD, WINDOW);
    assert!(observer.arrive(Arrival { cycle: 3, at_ns: 0 }));
    assert!(!observer.arrive(Arrival { cycle: 3, at_ns: 9 }), "the same cycle again");
    assert_eq!(observer.finish().arrivals, 1);
}

proptest! {
    /// With the regression alone (one window) the identity is exact for any arrivals.
    // feature(measure): `measure interference`: independent observer, regression, moving average, covariance identity
    #[test]
    fn the_identity_holds_for_any_series(
        steps in prop::collection::vec((1..4_u64, -2_000_000..2_000_000_i64), 2..400),
        period in 1_000..10_000_000_u64,
    ) {
        let mut cycle = 0;
        let arrivals: Vec<_> = steps
            .iter()
            .map(|&(step, late)| {
                cycle += step;
                Arrival { cycle, at_ns: (cycle * period) as i64 + late }
            })
            .collect();
        let found = jitter_of(period, WINDOW, &arrivals);
        if let Some(identity) = found.identity {
            prop_assert!(identity.relative_difference() < 1e-6, "{identity:?}");
        }
        prop_assert_eq!(found.jitter.count(), arrivals.len() as u64);
        prop_assert!(found.jitter.mean().abs() < 1e-2);
    }

    /// With the moving average the identity holds within the change of the average in a cycle.
    #[test]
    fn the_identity_holds_with_a_moving_average(
        lates in prop::collection::vec(-10_000..10_000_i64, 3_000..4_000),
    ) {
        let arrival = |(cycle, late): (usize, &i64)| Arrival {
            cycle: cycle as u64,
            at_ns: (cycle as u64 * PERIOD) as i64 + late,
        };
        let arrivals: Vec<_> = lates.iter().enumerate().map(arrival).collect();
        let identity = jitter_of(PERIOD, 1_000, &arrivals).identity.unwrap();
        prop_assert!(identity.relative_difference() < 5e-3, "{identity:?}");
    }
}
