//! Box plots as SVG.

use plotters::prelude::*;

use crate::boxes::{BoxOf, Boxes};
use crate::picture::{COLORS, label, printable};

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
