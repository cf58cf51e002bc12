//! A report as one self-contained HTML page, without another file or the network. A script enlarges
//! parts of plots; without it everything is visible.

use std::fmt::Write as _;

use crate::box_picture;
use crate::boxes::Boxes;
use crate::picture::{Kind, picture, printable};
use crate::{Plot, Report, Section, Table};

impl Report {
    /// The report as an HTML page, which is also well-formed XML.
    #[must_use]
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        if let Some(source) = &self.source {
            let _ = writeln!(page, "<p class=\"source\">After {}.</p>", escaped(source));
        }
        let found = self.found.iter().map(|found| ("The paper found", found));
        for (name, text) in [("Measured", &self.measured), ("Good", &self.good)].into_iter().chain(found) {
            let _ = writeln!(page, "<p><b>{name}:</b> {}.</p>", escaped(text));
        }
        for warning in &self.warnings {
            let _ = writeln!(page, "<p class=\"warning\"><b>Warning:</b> {}</p>", escaped(warning));
        }
        if !self.conditions.is_empty() {
            page.push_str("<table class=\"conditions\">\n");
            for fact in &self.conditions {
                let (name, value) = (escaped(&fact.name), escaped(&fact.value));
                let _ = writeln!(page, "<tr><th>{name}</th><td>{value}</td></tr>");
            }
            page.push_str("</table>\n");
        }
        for section in &self.sections {
            match section {
                Section::Text(paragraph) => {
                    let _ = writeln!(page, "<p>{}</p>", escaped(paragraph));
                }
                Section::Table(table) => write_table(&mut page, table),
                Section::Histogram(plot) => write_picture(&mut page, Kind::Histogram, plot),
                Section::Trace(plot) => write_picture(&mut page, Kind::Trace, plot),
                Section::Tail(plot) => write_picture(&mut page, Kind::Tail, plot),
                Section::Curve(plot) => write_picture(&mut page, Kind::Curve, plot),
                Section::Map(plot) => write_picture(&mut page, Kind::Map, plot),
                Section::Boxes(boxes) => write_boxes(&mut page, boxes),
            }
        }
        // Between tags of XML a script needs the section around it, which is a comment to it.
        let _ = write!(page, "<script>//<![CDATA[\n{ZOOM}//]]></script>\n</body>\n</html>\n");
        page
    }
}

fn write_table(page: &mut String, table: &Table) {
    let _ = writeln!(page, "<div class=\"wide\"><table>\n<caption>{}</caption>", escaped(&table.caption));
    let width = table.width();
    page.push_str("<thead><tr>");
    for column in 0..width {
        let _ = write!(page, "<th>{}</th>", escaped(table.head(column)));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let class = if row.from_paper { " class=\"paper\"" } else { "" };
        let _ = write!(page, "<tr{class}><th>{}</th>", escaped(&row.label()));
        for column in 1..width {
            let _ = write!(
                page,
                "<td>{}</td>",
                row.cells.get(column - 1).map_or_else(String::new, |it| escaped(it))
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn write_picture(page: &mut String, kind: Kind, plot: &Plot) {
    write_figure(page, picture(kind, plot), &plot.caption);
}

fn write_boxes(page: &mut String, boxes: &Boxes) {
    let caption = format!(
        "{}. A box from 25 to 75 % of the values, a line at the median, whiskers to the last value within 1.5 times the box, a \
         circle at the farthest beyond, at the edge if it is farther away",
        boxes.caption
    );
    write_figure(page, box_picture::picture(boxes), &caption);
}

fn write_figure(page: &mut String, drawn: Result<Option<String>, String>, caption: &str) {
    let caption = escaped(caption);
    let drawn = match drawn {
        Ok(Some(svg)) => svg,
        Ok(None) => "<p>no values</p>".to_owned(),
        Err(error) => format!("<p>it cannot be drawn: {}</p>", escaped(&error)),
    };
    let _ = writeln!(page, "<figure>\n{drawn}\n<figcaption>{caption}</figcaption>\n</figure>");
}

/// Text between tags. Characters that XML cannot carry become question marks.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(printable(letter)),
        }
    }
    escaped
}

const ZOOM: &str = include_str!("zoom.js");

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.6rem}.source{color:#666}.warning{background:#fff3cd;border-left:4px solid #e0a800;padding:.4rem .8rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}\
caption{text-align:left;font-weight:600;padding-bottom:.3rem}th,td{padding:.15rem .7rem;border-bottom:1px solid #ddd}\
th{text-align:left;font-weight:500}thead th{text-align:right;border-bottom:2px solid #999}\
thead th:first-child{text-align:left}tbody td{text-align:right}.conditions td{text-align:left}\
.paper{background:#eef4fb;font-style:italic}figure{margin:1.5rem 0}figure svg{max-width:100%;height:auto}\
figcaption{color:#444}figure svg{cursor:crosshair;touch-action:pan-y}figure svg polyline,figure svg line{vector-effect:non-scaling-stroke}\
.readout{margin:0;color:#666;font-size:.85rem;font-variant-numeric:tabular-nums;min-height:1.3rem}.frame{fill:#0072b2;opacity:.15}\
@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}th,td{border-color:#444}.paper{background:#1f2a36}\
.warning{background:#4a3b10}figcaption,.source,.readout{color:#aaa}figure svg{background:#fff;border-radius:4px}}\
@media print{.readout{display:none}}";
