//! Measured figures and their budgets.

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
    /// Mebibytes.
    Mib,
    /// Kibibytes.
    Kib,
    /// A count, or a ratio.
    Plain,
    Percent,
}

/// One row: name, value, and the budget on the machine of the specification.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    what: String,
    value: f64,
    unit: Unit,
    /// `None`: shown for information only.
    budget: Option<f64>,
}

/// The rows of a run, in the order of measuring.
#[derive(Default)]
pub(crate) struct Figures(Vec<Figure>);

/// Machines differ and are noisy: a budget counts as missed beyond this ratio only.
const SLACK: f64 = 1.25;

impl Figures {
    /// A figure with a budget.
    pub(crate) fn add(&mut self, what: impl Into<String>, value: f64, unit: Unit, budget: f64) {
        self.0.push(Figure { what: what.into(), value, unit, budget: Some(budget) });
    }

    /// A figure without one.
    pub(crate) fn note(&mut self, what: impl Into<String>, value: f64, unit: Unit) {
        self.0.push(Figure { what: what.into(), value, unit, budget: None });
    }

    /// The table.
    pub(crate) fn table(&self) -> String {
        let mut out = format!("{:<52} {:>11} {:>11} {:>7}\n", "measure", "figure", "came to", "ratio");
        for f in &self.0 {
            let budget = f.budget.map_or_else(|| "-".into(), |b| shown(b, f.unit));
            let ratio = f.ratio().map_or_else(|| "-".into(), |r| format!("{r:.2}"));
            let mark = if f.missed() { "  missed" } else { "" };
            let line = format!("{:<52} {:>11} {budget:>11} {ratio:>7}{mark}", f.what, shown(f.value, f.unit));
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// One sentence for each budget that was missed.
    pub(crate) fn missed(&self) -> Vec<String> {
        let missed = self.0.iter().filter(|f| f.missed());
        missed
            .map(|f| {
                let budget = shown(f.budget.unwrap_or_default(), f.unit);
                format!("{}: {} where {budget} is the budget", f.what, shown(f.value, f.unit))
            })
            .collect()
    }
}

impl Figure {
    /// `None` without a budget, or for a budget of zero that was kept.
    fn ratio(&self) -> Option<f64> {
        let budget = self.budget?;
        if budget > 0.0 { Some(self.value / budget) } else { (self.value > 0.0).then_some(f64::INFINITY) }
    }

    fn missed(&self) -> bool {
        // A share must be complete; other figures must not exceed their budgets.
        if self.unit == Unit::Percent {
            return self.budget.is_some_and(|b| self.value < b);
        }
        self.ratio().is_some_and(|r| r > SLACK)
    }
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ms => format!("{value:.2} ms"),
        Unit::S => format!("{value:.2} s"),
        Unit::Mib => format!("{value:.1} MiB"),
        Unit::Kib => format!("{value:.1} KiB"),
        Unit::Plain => format!("{value:.2}"),
        Unit::Percent => format!("{value:.1} %"),
    }
}

/// The value below which `share` (0 to 1) of the values are; 0 for none.
pub(crate) fn at(values: &[f64], share: f64) -> f64 {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    if v.is_empty() {
        return 0.0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index below the length"
    )]
    let n = ((v.len() - 1) as f64 * share).round() as usize;
    v[n.min(v.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_misses() {
        assert_eq!(at(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(at(&[], 0.5), 0.0);
        let mut f = Figures::default();
        f.add("fast", 9.0, Unit::Ms, 10.0);
        f.add("noisy", 12.0, Unit::Ms, 10.0);
        f.add("slow", 13.0, Unit::Ms, 10.0);
        f.add("at rest", 1.0, Unit::Plain, 0.0);
        f.add("whole", 99.0, Unit::Percent, 100.0);
        f.note("beside", 1.0, Unit::S);
        let missed = f.missed();
        let names: Vec<&str> = missed.iter().filter_map(|m| m.split(':').next()).collect();
        assert_eq!(names, ["slow", "at rest", "whole"]);
        assert_eq!(f.table().lines().count(), 7);
    }
}
