//! Prometheus's text exposition format, version 0.0.4: families of samples with labels.

use std::fmt::{Display, Write};

/// Media type of a page.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics.
#[derive(Default)]
pub(super) struct Page(String);

/// Labels of a sample.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// Family of samples on a page.
pub(super) struct Family<'p> {
    page: &'p mut String,
    name: &'static str,
}

impl Page {
    /// Family of values that go up and down.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Family of counters, which only rise during a run. Its name ends with `_total`.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// A histogram: samples up to each bound in seconds, all samples, and their sum.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        up_to: impl IntoIterator<Item = (f64, u64)>,
        (count, sum): (u64, f64),
    ) {
        let Family { page, name } = self.family(name, "histogram", help);
        for (bound, below) in up_to {
            line(page, name, "_bucket", &[("le", &bound.to_string())], below);
        }
        line(page, name, "_bucket", &[("le", "+Inf")], count);
        line(page, name, "_sum", &[], sum);
        line(page, name, "_count", &[], count);
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { page: &mut self.0, name }
    }

    /// The page as text.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// One sample more.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: impl Display) -> &mut Self {
        line(self.page, self.name, "", labels, value);
        self
    }
}

fn line(page: &mut String, name: &str, suffix: &str, labels: Labels<'_>, value: impl Display) {
    page.push_str(name);
    page.push_str(suffix);
    for (place, (label, text)) in labels.iter().enumerate() {
        let before = if place == 0 { '{' } else { ',' };
        let _ = write!(page, "{before}{label}=\"{}\"", escaped(text));
    }
    if !labels.is_empty() {
        page.push('}');
    }
    let _ = writeln!(page, " {value}");
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_families_labels_and_histograms() {
        let mut page = Page::default();
        page.gauge("onbeat_up", "The cycle runs.").sample(&[("robot", "a \"b\\\n"), ("x", "1")], 1);
        page.histogram("onbeat_time_seconds", "Time.", [(1e-6, 2), (0.5, 3)], (4, 2.5));
        let expected = [
            "# HELP onbeat_up The cycle runs.",
            "# TYPE onbeat_up gauge",
            "onbeat_up{robot=\"a \\\"b\\\\\\n\",x=\"1\"} 1",
            "# HELP onbeat_time_seconds Time.",
            "# TYPE onbeat_time_seconds histogram",
            "onbeat_time_seconds_bucket{le=\"0.000001\"} 2",
            "onbeat_time_seconds_bucket{le=\"0.5\"} 3",
            "onbeat_time_seconds_bucket{le=\"+Inf\"} 4",
            "onbeat_time_seconds_sum 2.5",
            "onbeat_time_seconds_count 4",
        ];
        assert_eq!(page.into_text().lines().collect::<Vec<_>>(), expected);
    }
}
