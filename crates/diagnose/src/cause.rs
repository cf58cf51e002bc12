//! Causes of a cycle's lateness.

use std::fmt;

use serde::Serialize;
pub use types::cause::Kind;

/// Share of a cycle's lateness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Kind of the cause.
    pub kind: Kind,
    /// Name: of the thread, number and name of the interrupt, or phase of the cycle.
    pub name: String,
    /// Share, ns.
    pub ns: u64,
}

impl fmt::Display for Cause {
    /// Writes for example "kworker/1:2 ran 120 us".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, time) = (&self.name, Time(self.ns));
        match self.kind {
            Kind::Task => write!(f, "{name} ran {time}"),
            Kind::Irq => write!(f, "irq {name} {time}"),
            Kind::Softirq => write!(f, "softirq {name} {time}"),
            Kind::Timer => write!(f, "timer {name} {time}"),
            Kind::Steal => write!(f, "asleep in the hypervisor {time}: steal"),
            Kind::Own => write!(f, "our own {name} took {time}"),
            Kind::Unknown => write!(f, "{name} {time}: unknown"),
            other => write!(f, "{other} {name} {time}"),
        }
    }
}

/// Duration for people: "183 us", "3.4 ms", "0.4 us".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..=9_949 => format!("{:.1} us", ns / 1e3),
            9_950..=999_499 => format!("{:.0} us", ns / 1e3),
            999_500..=999_949_999 => format!("{:.1} ms", ns / 1e6),
            _ => format!("{:.1} s", ns / 1e9),
        };
        f.pad(&text)
    }
}

/// Sum of causes; shares of equal causes are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes(Vec<Cause>);

impl Causes {
    pub(crate) fn add(&mut self, kind: Kind, name: &str, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.0.iter_mut().find(|cause| cause.kind == kind && cause.name == name) {
            Some(cause) => cause.ns = cause.ns.saturating_add(ns),
            None => self.0.push(Cause { kind, name: name.to_owned(), ns }),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, cause| sum.saturating_add(cause.ns))
    }

    /// Causes, the largest first, adding up to exactly `total_ns`: a shortfall is added as unknown, an
    /// excess is taken from all in proportion.
    pub(crate) fn adding_up_to(mut self, total_ns: u64) -> Vec<Cause> {
        let sum = self.total();
        if sum > total_ns {
            for cause in &mut self.0 {
                let share = u128::from(cause.ns) * u128::from(total_ns) / u128::from(sum);
                // Rounded down, it is at most `total_ns`.
                cause.ns = share as u64;
            }
            self.0.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
            let rounding = total_ns - self.total();
            if let Some(largest) = self.0.first_mut() {
                largest.ns += rounding;
            }
        } else {
            self.add(Kind::Unknown, NOT_RECORDED, total_ns - sum);
        }
        self.0.retain(|cause| cause.ns > 0);
        self.0.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        self.0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.0.iter()
    }
}

/// Name of an unknown cause without events.
pub(crate) const NOT_RECORDED: &str = "nothing recorded";

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(shares: &[(Kind, &str, u64)]) -> Causes {
        let mut causes = Causes::default();
        for &(kind, name, ns) in shares {
            causes.add(kind, name, ns);
        }
        causes
    }

    #[test]
    fn causes_are_told_as_people_say_it() {
        let told = |kind, name: &str, ns| Cause { kind, name: name.to_owned(), ns }.to_string();
        assert_eq!(told(Kind::Task, "kworker/1:2", 120_000), "kworker/1:2 ran 120 us");
        assert_eq!(told(Kind::Irq, "24 eth0", 61_200), "irq 24 eth0 61 us");
        assert_eq!(told(Kind::Steal, "hypervisor", 3_400_000), "asleep in the hypervisor 3.4 ms: steal");
        assert_eq!(told(Kind::Own, "controller", 412_000), "our own controller took 412 us");
        assert_eq!(told(Kind::Unknown, NOT_RECORDED, 400), "nothing recorded 0.4 us: unknown");
        assert_eq!(
            [Time(9_960), Time(999_600), Time(1_200_000_000)].map(|it| it.to_string()),
            ["10 us", "1.0 ms", "1.2 s"]
        );
    }

    #[test]
    fn what_is_missing_is_unknown_and_what_is_too_much_is_shared() {
        let few =
            causes(&[(Kind::Task, "a", 30), (Kind::Irq, "b", 10), (Kind::Task, "a", 20)]).adding_up_to(100);
        assert_eq!(few.iter().map(|it| it.ns).collect::<Vec<_>>(), [50, 40, 10]);
        assert_eq!((few[1].kind, few[1].name.as_str()), (Kind::Unknown, NOT_RECORDED));
        let many = causes(&[(Kind::Task, "a", 100), (Kind::Steal, "b", 200), (Kind::Irq, "c", 1)])
            .adding_up_to(150);
        assert_eq!(
            many.iter().map(|it| (it.name.as_str(), it.ns)).collect::<Vec<_>>(),
            [("b", 101), ("a", 49)]
        );
        assert!(causes(&[(Kind::Task, "a", 5)]).adding_up_to(0).is_empty());
    }
}
