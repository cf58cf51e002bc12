//! Box plots: distributions side by side on one scale, as numbers, for a terminal and for a
//! picture.

use std::fmt::Write as _;

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use crate::picture::{COLORS, label, printable};
use crate::plots::{Samples, rounded};

/// Distributions of one quantity, a box each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Boxes {
    /// Caption.
    pub caption: String,
    /// Unit of all numbers.
    pub unit: String,
    /// The distributions, in order.
    pub boxes: Vec<BoxOf>,
}

/// Distribution as Tukey's box: the quartiles, whiskers to the last values within 1.5 times the
/// height of the box, and the values beyond them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoxOf {
    /// Name of the distribution.
    pub name: String,
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub minimum: f64,
    /// Lower whisker: the smallest value that is not below.
    pub low: f64,
    /// Values that a quarter, a half and three quarters of all are not above.
    pub quartiles: [f64; 3],
    /// Upper whisker: the largest value that is not above.
    pub high: f64,
    /// Largest value.
    pub maximum: f64,
    /// Values below the lower whisker.
    pub below: u64,
    /// Values above the upper whisker.
    pub above: u64,
}

impl Boxes {
    /// A box for each of the samples that has values.
    #[must_use]
    pub fn of(caption: &str, unit: &str, samples: &[Samples]) -> Self {
        let boxes = samples.iter().filter_map(|it| BoxOf::of(it.name, it.values)).collect();
        Self { caption: caption.to_owned(), unit: unit.to_owned(), boxes }
    }

    /// Range of the whiskers of all boxes, with a margin at both ends, extended to nearby values
    /// beyond; `None` without boxes.
    pub(crate) fn scale(&self) -> Option<(f64, f64)> {
        let ends = |low: fn(&BoxOf) -> f64, high: fn(&BoxOf) -> f64| {
            let boxes = || self.boxes.iter().filter(|it| low(it).is_finite() && high(it).is_finite());
            let least = boxes().map(low).fold(f64::INFINITY, f64::min);
            let most = boxes().map(high).fold(f64::NEG_INFINITY, f64::max);
            (least <= most).then_some((least, most))
        };
        let (low, high) = ends(|it| it.low, |it| it.high)?;
        let (least, most) = ends(|it| it.minimum, |it| it.maximum)?;
        let smallest = (low.abs().max(high.abs()) * 1e-9).max(f64::MIN_POSITIVE);
        let room = ((high / 2.0 - low / 2.0) * 2.0 * ROOM).max(smallest);
        let (low, high) = ((low - room).max(least), (high + room).min(most));
        let margin = ((high / 2.0 - low / 2.0) * 2.0 * MARGIN).max(smallest);
        let scale = (low - margin, high + margin);
        (scale.0.is_finite() && scale.1.is_finite() && scale.0 < scale.1).then_some(scale)
    }

    /// The boxes in letters, below the caption.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}, {}\n", self.caption, self.unit);
        let Some((low, high)) = self.scale() else {
            text.push_str("no values\n");
            return text;
        };
        let width = self.boxes.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
        let (left, right) = (number(low), number(high));
        let gap = COLUMNS.saturating_sub(right.len());
        let _ = writeln!(text, "{:width$}  {left:<gap$}{right}", "");
        for it in &self.boxes {
            let line = it.line(low, high);
            let _ = writeln!(text, "{:<width$}  {line}  {}", it.name, it.words());
        }
        text.push_str(LEGEND);
        text
    }
}

impl BoxOf {
    /// Box of the finite ones of these values; `None` without any.
    #[must_use]
    pub fn of(name: &str, values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|it| it.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&minimum, &maximum) = (sorted.first()?, sorted.last()?);
        // The smallest value that at least this share is not above.
        let quartile = |quarters: usize| sorted[(sorted.len() * quarters).div_ceil(4).max(1) - 1];
        let quartiles = [quartile(1), quartile(2), quartile(3)];
        let reach = 1.5 * (quartiles[2] - quartiles[0]);
        let below = sorted.partition_point(|&it| it < quartiles[0] - reach);
        let within = sorted.partition_point(|&it| it <= quartiles[2] + reach);
        Some(Self {
            name: name.to_owned(),
            count: sorted.len() as u64,
            minimum: rounded(minimum),
            low: rounded(sorted[below]),
            quartiles: quartiles.map(rounded),
            high: rounded(sorted[within - 1]),
            maximum: rounded(maximum),
            below: below as u64,
            above: (sorted.len() - within) as u64,
        })
    }

    /// Median, extremes and values beyond, in words.
    pub(crate) fn words(&self) -> String {
        let mut words = format!("median {}", number(self.quartiles[1]));
        for (count, side, end) in [(self.below, "below", self.minimum), (self.above, "above", self.maximum)]
        {
            if count > 0 {
                let _ = write!(words, ", {count} {side} to {}", number(end));
            }
        }
        words
    }

    /// The box on a line of [`COLUMNS`] letters from `low` to `high`.
    fn line(&self, low: f64, high: f64) -> String {
        let column = |value: f64| {
            let share = (value - low) / (high - low);
            // A share that is no number is at the lower end.
            ((share * (COLUMNS - 1) as f64).round().max(0.0) as usize).min(COLUMNS - 1)
        };
        let mut line = vec![' '; COLUMNS];
        let mut fill = |from: f64, to: f64, letter| {
            let (from, to) = (column(from), column(to));
            line[from.min(to)..=from.max(to)].fill(letter);
        };
        fill(self.low, self.high, '-');
        fill(self.quartiles[0], self.quartiles[2], '=');
        let mut mark = |value: f64, letter| line[column(value)] = letter;
        for (count, end) in [(self.below, self.minimum), (self.above, self.maximum)] {
            if count > 0 {
                mark(end, 'o');
            }
        }
        mark(self.low, '|');
        mark(self.high, '|');
        mark(self.quartiles[1], '#');
        line.into_iter().collect()
    }
}

/// Three digits, or fewer where the number is large.
fn number(value: f64) -> String {
    if value.abs() < 1e6 { format!("{value:.3}") } else { format!("{value:.3e}") }
}

/// Letters of a line.
const COLUMNS: usize = 56;

/// Longest extension for values beyond the whiskers, as a multiple of their range.
const ROOM: f64 = 1.0;

/// Empty room at both ends of the scale, as a share of it.
const MARGIN: f64 = 0.03;

/// Signs of a box, explained.
pub(crate) const LEGEND: &str = "|--==#==--|: = from 25 to 75 %, # the median, | the last value within 1.5 times the box, o the farthest beyond \
                                 (at the edge: farther away)\n";

/// Draws the boxes, one below the other, as an `svg` element; `None` without values.
///
/// # Errors
/// The errors of the drawing.
pub(crate) fn picture(boxes: &Boxes) -> Result<Option<String>, String> {
    let Some((low, high)) = boxes.scale() else { return Ok(None) };
    let count = boxes.boxes.len();
    let mut svg = String::new();
    draw(boxes, (low, high), count, &mut svg).map_err(|error| error.to_string())?;
    Ok(Some(svg))
}

fn draw(
    boxes: &Boxes,
    (low, high): (f64, f64),
    count: usize,
    svg: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let height = FRAME + BAND * u32::try_from(count).unwrap_or(u32::MAX).min(MOST);
    let area = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    // From top to bottom, a band of one unit each.
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(42)
        .build_cartesian_2d(low..high, -(count as f64)..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_desc(boxes.unit.chars().map(printable).collect::<String>())
        .x_label_formatter(&|value| label(*value))
        .light_line_style(WHITE)
        .label_style(("sans-serif", 13))
        .draw()?;
    for (place, it) in boxes.boxes.iter().enumerate().take(MOST as usize) {
        let color = COLORS[place % COLORS.len()];
        let top = -(place as f64);
        let inside = |value: f64| value.clamp(low, high);
        let (middle, from, to) = (top - 0.65, top - 0.45, top - 0.85);
        let line = |ends: [(f64, f64); 2]| {
            let ends = ends.map(|(x, y)| (inside(x), y));
            PathElement::new(ends.to_vec(), color.stroke_width(2))
        };
        let [first, median, third] = it.quartiles;
        let lines = [
            [(it.low, middle), (first, middle)],
            [(third, middle), (it.high, middle)],
            [(it.low, from), (it.low, to)],
            [(it.high, from), (it.high, to)],
            [(median, from), (median, to)],
        ];
        let filled = Rectangle::new([(inside(first), from), (inside(third), to)], color.mix(0.25).filled());
        chart.draw_series([filled])?;
        let frame = Rectangle::new([(inside(first), from), (inside(third), to)], color.stroke_width(1));
        chart.draw_series([frame])?;
        chart.draw_series(lines.map(line))?;
        chart.draw_series(
            beyond(it)
                .into_iter()
                .map(|value| Circle::new((inside(value), middle), 4, color.stroke_width(1))),
        )?;
        let words: String = format!("{}: {}", it.name, it.words()).chars().map(printable).collect();
        let text = Text::new(words, (low, top - 0.12), ("sans-serif", 13).into_font().color(&BLACK));
        chart.draw_series([text])?;
    }
    area.present()?;
    Ok(())
}

/// The farthest values beyond the whiskers.
fn beyond(it: &BoxOf) -> Vec<f64> {
    let ends = [(it.below, it.minimum), (it.above, it.maximum)];
    ends.into_iter().filter(|&(count, _)| count > 0).map(|(_, end)| end).collect()
}

const WIDTH: u32 = 960;

/// Height of margins, labels and title.
const FRAME: u32 = 66;

/// Height of a box with its words.
const BAND: u32 = 64;

/// Most boxes of a picture.
const MOST: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::Samples;

    // feature(measure): box plots: quartiles, whiskers and values beyond them, as text and as SVG
    #[test]
    fn a_box_has_quartiles_whiskers_and_what_is_beyond() {
        let mut values: Vec<f64> = (1..=101).map(f64::from).collect();
        values.extend([-500.0, 400.0, 900.0, f64::NAN]);
        let it = BoxOf::of("a", &values).expect("values");
        // 104 values: the 26th, 52nd and 78th.
        assert_eq!((it.count, it.quartiles), (104, [25.0, 51.0, 77.0]));
        assert_eq!((it.low, it.high, it.below, it.above), (1.0, 101.0, 1, 2));
        assert_eq!((it.minimum, it.maximum), (-500.0, 900.0));
        assert_eq!(BoxOf::of("a", &[f64::NAN]), None);
        let one = BoxOf::of("a", &[7.0]).expect("a value");
        assert_eq!((one.low, one.quartiles, one.high, one.below + one.above), (7.0, [7.0; 3], 7.0, 0));
    }

    #[test]
    fn boxes_in_letters_are_on_one_scale() {
        let narrow: Vec<f64> = (0..=100).map(|it| 999.0 + f64::from(it) / 50.0).collect();
        let wide: Vec<f64> = (0..=100).map(|it| 990.0 + f64::from(it) / 5.0).chain([5_000.0]).collect();
        let samples = [("RT", &narrow), ("ordinary", &wide)].map(|(name, values)| Samples { name, values });
        let text = Boxes::of("T_period", "us", &samples).text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "T_period, us");
        let boxes = |line: &str| line.chars().filter(|it| "=#".contains(*it)).count();
        assert!(boxes(lines[2]) * 3 < boxes(lines[3]), "{text}");
        assert!(lines[3].ends_with("median 1000.000, 1 above to 5000.000"), "{text}");
        let place = |line: &str| line.find('#');
        assert_eq!(place(lines[2]), place(lines[3]), "{text}");
    }

    #[test]
    fn boxes_of_any_numbers_are_drawn_in_letters() {
        for values in [[0.0; 3], [-1e308, 0.0, 1e308], [1e-320, 2e-320, 1.0], [1e18, 1e18, 1e18 + 4096.0]] {
            let text = Boxes::of("", "s", &[Samples { name: "it", values: &values }]).text();
            assert!(text.contains("median") || text.contains("no values"), "{values:?}: {text}");
        }
        assert!(Boxes::default().text().contains("no values"));
    }

    #[test]
    fn every_box_is_drawn_with_its_words() {
        for values in [&[1.0, 2.0, 3.0, 90.0][..], &[5.0], &[0.0, 0.0], &[-1e300, 1e300]] {
            let samples = ["a <b>", "other"].map(|name| Samples { name, values });
            let svg = picture(&Boxes::of("T_period", "us", &samples)).unwrap().unwrap();
            assert!(roxmltree::Document::parse(&svg).is_ok(), "{svg}");
            assert!(svg.contains("a &lt;b&gt;: median") && svg.contains("other: median"), "{svg}");
            assert!(svg.matches("<rect").count() >= 5 && svg.matches("<polyline").count() >= 10, "{svg}");
        }
        assert_eq!(picture(&Boxes::default()), Ok(None));
    }
}
