//! Numbers as text.

use record::Statistics;

/// Nanoseconds as microseconds with three digits; a dash for `None`.
#[must_use]
pub fn microseconds(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or_else(|| "-".to_owned(), |it| format!("{:.3}", it / 1e3))
}

/// Nanoseconds as milliseconds with six digits; a dash for `None`.
#[must_use]
pub fn milliseconds(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or_else(|| "-".to_owned(), |it| format!("{:.6}", it / 1e6))
}

/// Average, maximum, minimum and standard deviation, in the order of the papers' tables.
#[must_use]
pub fn four(statistics: &Statistics) -> [(&'static str, Option<f64>); 4] {
    [
        ("average", statistics.average()),
        ("maximum", statistics.maximum().map(|it| it as f64)),
        ("minimum", statistics.minimum().map(|it| it as f64)),
        ("standard deviation", statistics.standard_deviation()),
    ]
}
