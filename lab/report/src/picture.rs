//! A plot as SVG.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::{Plot, Series};

/// Kind of a plot: its scales, and lines or steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Steps; counts on a logarithmic scale.
    Histogram,
    /// A line over time.
    Trace,
    /// Steps; both scales logarithmic where the values span enough.
    Tail,
    /// A line on linear scales.
    Curve,
    /// A line on two equal scales.
    Map,
}

impl Kind {
    /// Scales of x and y that may be logarithmic.
    const fn may_be_logarithmic(self) -> (bool, bool) {
        match self {
            Self::Histogram | Self::Tail => (true, true),
            Self::Trace => (false, true),
            Self::Curve | Self::Map => (false, false),
        }
    }
}

/// Draws the plot as an `svg` element; `None` without values.
///
/// # Errors
/// The errors of the drawing.
pub(crate) fn picture(kind: Kind, plot: &Plot) -> Result<Option<String>, String> {
    let series: Vec<Series> = plot.series.iter().map(|it| drawable(kind, it)).collect();
    let all = || series.iter().flat_map(|it| it.points.iter().copied());
    let (Some(x), Some(y)) = (Range::of(all().map(|it| it.0)), Range::of(all().map(|it| it.1))) else {
        return Ok(None);
    };
    let (mut svg, scales);
    svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let [x_title, y_title] = [&plot.x, &plot.y].map(|it| it.chars().map(printable).collect());
        let parts = Parts {
            titles: [x_title, y_title],
            series: &series,
            widths: widths(kind, &series),
            area: &area,
        };
        let (may_x, may_y) = kind.may_be_logarithmic();
        let log_x = may_x && x.is_wide();
        // Counts and shares always are.
        let log_y = may_y && (kind != Kind::Trace || y.is_wide());
        let (x, y) = if kind == Kind::Map { on_one_scale(x, y) } else { (x, y) };
        let range = |it: Range, log| if log { it.logarithmic() } else { it.linear() };
        let (x, y) = (range(x, log_x), range(y, log_y));
        scales = [("x", x.clone(), log_x), ("y", y.clone(), log_y)].map(scale).concat();
        let drawn = match (log_x, log_y) {
            (false, false) => parts.draw(x, y),
            (false, true) => parts.draw(x, y.log_scale()),
            (true, false) => parts.draw(x.log_scale(), y),
            (true, true) => parts.draw(x.log_scale(), y.log_scale()),
        };
        drawn.map_err(|error| error.to_string())?;
    }
    let (width, height) = DRAWN;
    let area = format!("<svg data-area=\"{} {MARGIN} {width} {height}\"{scales} ", MARGIN + Y_LABELS);
    Ok(Some(svg.replacen("<svg ", &area, 1)))
}

/// Scale for the script of a page: both ends, and 1 if it is logarithmic.
fn scale((name, range, log): (&str, std::ops::Range<f64>, bool)) -> String {
    format!(" data-{name}=\"{:e} {:e} {}\"", range.start, range.end, u8::from(log))
}

/// Points to be joined by straight lines, without points outside the scales.
fn drawable(kind: Kind, series: &Series) -> Series {
    let finite = series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
    let points: Vec<(f64, f64)> = match kind {
        Kind::Trace | Kind::Curve | Kind::Map => finite.collect(),
        // Empty bins lie below one, where the scale ends.
        Kind::Histogram => steps(finite.map(|(x, y)| (x, y.max(NONE)))),
        Kind::Tail => steps(finite.filter(|&(x, y)| x > 0.0 && y > 0.0)),
    };
    Series { name: series.name.chars().map(printable).collect(), points }
}

/// Steps: each value holds until the next begins.
fn steps(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (x, y) in points {
        if let Some(&(_, before)) = joined.last() {
            joined.push((x, before));
        }
        joined.push((x, y));
    }
    joined
}

/// Widths of lines, so that hidden lines show: with a few smooth ones each is wider than the later
/// ones; with many, the planned ones are wider.
fn widths(kind: Kind, series: &[Series]) -> Vec<u32> {
    let is_smooth = matches!(kind, Kind::Curve | Kind::Map);
    let count = series.len();
    let planned = |it: &Series| it.name.contains("planned") || it.name.contains("target");
    let one = |(index, it): (usize, &Series)| match is_smooth {
        true if count <= FEW => 1 + 2 * (count - 1 - index) as u32,
        true if planned(it) => BROAD,
        _ => 1,
    };
    series.iter().enumerate().map(one).collect()
}

struct Parts<'a, 'b> {
    /// Titles of x and y.
    titles: [String; 2],
    series: &'a [Series],
    /// Width of each of their lines.
    widths: Vec<u32>,
    area: &'a DrawingArea<SVGBackend<'b>, Shift>,
}

impl Parts<'_, '_> {
    fn draw<X, Y>(&self, x: X, y: Y) -> Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        self.area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(self.area)
            .margin(MARGIN)
            .x_label_area_size(X_LABELS)
            .y_label_area_size(Y_LABELS)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.titles[0].as_str())
            .y_desc(self.titles[1].as_str())
            .x_label_formatter(&|value| label(*value))
            .y_label_formatter(&|value| label(*value))
            .light_line_style(WHITE)
            .label_style(("sans-serif", 13))
            .draw()?;
        // The wide ones first: the others are seen on them.
        let mut order: Vec<usize> = (0..self.series.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.widths[*index]));
        for index in order {
            let (series, width) = (&self.series[index], self.widths[index]);
            let color = COLORS[index % COLORS.len()];
            let paint = color.mix(if width > 1 { BENEATH } else { 1.0 });
            let line = LineSeries::new(series.points.iter().copied(), paint.stroke_width(width));
            chart
                .draw_series(line)?
                .label(series.name.as_str())
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], color.stroke_width(3)));
        }
        if self.series.len() > 1 {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.85))
                .border_style(RGBColor(200, 200, 200))
                .label_font(("sans-serif", 13))
                .draw()?;
        }
        self.area.present()?;
        Ok(())
    }
}

/// Range from the smallest to the largest value.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
    smallest_above_zero: f64,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut range: Option<Self> = None;
        for value in values {
            let it =
                range.get_or_insert(Self { low: value, high: value, smallest_above_zero: f64::INFINITY });
            it.low = it.low.min(value);
            it.high = it.high.max(value);
            if value > 0.0 {
                it.smallest_above_zero = it.smallest_above_zero.min(value);
            }
        }
        range
    }

    /// True if a logarithmic scale is needed, and possible.
    fn is_wide(self) -> bool {
        self.low >= 0.0 && self.high > self.smallest_above_zero * WIDE
    }

    fn linear(self) -> std::ops::Range<f64> {
        let room = ((self.high - self.low) * 0.03).max(self.high.abs() * 1e-6).max(1e-9);
        self.low - room..self.high + room
    }

    fn logarithmic(self) -> std::ops::Range<f64> {
        let low = self.smallest_above_zero.min(self.high).max(f64::MIN_POSITIVE * 1e10);
        low * 0.8..(self.high * 1.5).max(low * 1.6)
    }
}

/// Ranges with the narrower one widened, so that a circle is round.
fn on_one_scale(x: Range, y: Range) -> (Range, Range) {
    let (wide, high) = DRAWN;
    let scale = ((x.high - x.low) / wide).max((y.high - y.low) / high).max(1e-9);
    let widened = |range: Range, size: f64| {
        let (middle, half) = ((range.low + range.high) / 2.0, scale * size / 2.0);
        Range { low: middle - half, high: middle + half, ..range }
    };
    (widened(x, wide), widened(y, high))
}

/// Number at an axis: short, and exact enough to be read.
pub(crate) fn label(value: f64) -> String {
    let size = value.abs();
    if size < NOTHING {
        "0".to_owned()
    } else if (1e-3..1e6).contains(&size) {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.0e}")
    }
}

/// Value at which a count of zero is drawn.
const NONE: f64 = 0.7;

/// Span, as a factor, from which on the scale is logarithmic.
const WIDE: f64 = 50.0;

/// Size of a value that is rounding and nothing else.
const NOTHING: f64 = 1e-12;

const SIZE: (u32, u32) = (960, 420);

/// Most lines of a plot that are distinguished by their widths.
const FEW: usize = 4;

/// Width of a line that others lie on.
const BROAD: u32 = 4;

/// Opacity of such a line.
const BENEATH: f64 = 0.5;

const MARGIN: u32 = 12;
const X_LABELS: u32 = 42;
const Y_LABELS: u32 = 72;

/// Size without margins and labels.
const DRAWN: (f64, f64) =
    ((SIZE.0 - 2 * MARGIN - Y_LABELS) as f64, (SIZE.1 - 2 * MARGIN - X_LABELS) as f64);

/// Colours that remain distinct with any colour vision (Okabe and Ito), then darker ones.
pub(crate) const COLORS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(120, 94, 240),
    RGBColor(150, 40, 30),
    RGBColor(110, 110, 110),
];

/// The letter, or a question mark for one that a page cannot have.
pub(crate) fn printable(letter: char) -> char {
    let cannot = letter.is_control() && !matches!(letter, '\n' | '\t');
    if cannot || matches!(letter, '\u{FFFE}' | '\u{FFFF}') { '?' } else { letter }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::{Samples, histogram, tail, trace};

    fn with(values: &[f64]) -> [(Kind, Plot); 5] {
        let samples = [Samples { name: "a <b>", values }, Samples { name: "other", values }];
        let times: Vec<f64> = (0..values.len()).map(|index| index as f64).collect();
        [
            (Kind::Histogram, histogram("", "us", &samples)),
            (Kind::Tail, tail("", "us", &samples)),
            (Kind::Trace, trace("", "us", &times, &samples)),
            (Kind::Curve, trace("", "us", &times, &samples)),
            (Kind::Map, trace("", "us", &times, &samples)),
        ]
    }

    #[test]
    fn lines_of_every_kind_are_drawn() {
        for values in [&[1.0, 2.0, 5.0][..], &[0.001, 1.0, 1e6], &[7.0], &[0.0], &[-3.0, 4.0], &[0.0, 1e18]]
        {
            for (kind, plot) in with(values) {
                let svg = picture(kind, &plot).unwrap();
                // A tail has no place for values not above zero.
                let Some(svg) = svg else {
                    assert!(kind == Kind::Tail && values == [0.0], "{kind:?} of {values:?}");
                    continue;
                };
                assert!(roxmltree::Document::parse(&svg).is_ok(), "{svg}");
                assert!(svg.matches("<polyline").count() >= 4, "{kind:?} of {values:?}: {svg}");
                assert!(svg.contains("a &lt;b&gt;"), "{svg}");
            }
        }
    }

    // feature(measure): plots: lines on top of each other are seen, each with its width
    #[test]
    fn a_line_on_another_hides_none() {
        let samples = ["planned", "driven"].map(|name| Samples { name, values: &[1.0, 2.0, 3.0] });
        let plot = trace("", "m", &[0.0, 1.0, 2.0], &samples);
        let lines = |kind| -> Vec<(String, String)> {
            let svg = picture(kind, &plot).unwrap().unwrap();
            let document = roxmltree::Document::parse(&svg).unwrap();
            let colours = ["#0072B2", "#D55E00"];
            let lines = document.descendants().filter(|it| it.has_tag_name("polyline"));
            let of = |it: roxmltree::Node<'_, '_>, name| it.attribute(name).unwrap_or_default().to_owned();
            // Lines of the legend have the same widths.
            let is_line = |it: &roxmltree::Node<'_, '_>| {
                colours.contains(&of(*it, "stroke").as_str())
                    && of(*it, "points").split_whitespace().count() == 3
            };
            lines.filter(is_line).map(|it| (of(it, "stroke"), of(it, "stroke-width"))).collect()
        };
        let wide = |width: &str| {
            vec![("#0072B2".to_owned(), width.to_owned()), ("#D55E00".to_owned(), "1".to_owned())]
        };
        assert_eq!(lines(Kind::Map), wide("3"));
        assert_eq!(lines(Kind::Curve), wide("3"));
        assert_eq!(lines(Kind::Trace), wide("1"), "what is noisy stays thin");
    }

    #[test]
    fn a_metre_on_a_map_is_as_long_both_ways() {
        let range = |low, high| Range { low, high, smallest_above_zero: 1.0 };
        for (x, y) in [(range(0.0, 3.0), range(-0.5, 0.1)), (range(0.0, 0.1), range(-5.0, 5.0))] {
            let (wide, high) = on_one_scale(x, y);
            assert!(wide.low <= x.low && wide.high >= x.high && high.low <= y.low && high.high >= y.high);
            let pixels = [(wide.high - wide.low) / DRAWN.0, (high.high - high.low) / DRAWN.1];
            assert!((pixels[0] / pixels[1] - 1.0).abs() < 1e-9, "{pixels:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        for (kind, plot) in with(&[f64::NAN, f64::INFINITY]) {
            assert_eq!(picture(kind, &plot), Ok(None));
        }
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 1.0, 250.5, 0.01, 1e-7, 2e9].map(label);
        assert_eq!(labels, ["0", "1", "250.5", "0.01", "1e-7", "2e9"]);
    }
}
