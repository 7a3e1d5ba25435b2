//! Does it grow? What the parts of a call take against the number of everything that there can be many of, as a table and as
//! a picture.

use std::fmt::Write as _;

use anyhow::Result;

use crate::plot::{self, Panel, Point};

/// What is said of one number of things: the instructions of one piece of work.
pub type Count<'a> = &'a dyn Fn(&str) -> Result<u64>;

/// What is counted against a number.
struct Curve {
    name: &'static str,
    /// What one count is of.
    work: &'static str,
    numbers: &'static [usize],
    /// The largest count, relative to the first, with which it counts as flat (or each of many as alike).
    must: f64,
    /// The count is of as many things as the number says.
    each: bool,
}

const CURVES: &[Curve] = &[
    Curve {
        name: "documents",
        work: "the gate and the record of a success, both looked up",
        numbers: &[10, 2_000, 10_000, 100_000],
        must: 1.10,
        each: false,
    },
    Curve {
        name: "rules, success",
        work: "the classification of a success",
        numbers: &[10, 1_000, 2_000],
        must: 1.01,
        each: false,
    },
    Curve {
        name: "rules, failure",
        work: "the classification of a tool error that no rule knows",
        numbers: &[10, 1_000, 2_000],
        must: 1.5,
        each: false,
    },
    Curve {
        name: "tools",
        work: "finding a tool, its gate and its record, one tool after the other",
        numbers: &[1, 100, 1_000, 10_000],
        must: 1.2,
        each: false,
    },
    Curve {
        name: "users",
        work: "the gate and the record of a success, one user after the other",
        numbers: &[1, 100, 1_000, 10_000],
        must: 1.2,
        each: false,
    },
    Curve {
        name: "tools in a list",
        work: "reading one tool of a list",
        numbers: &[10, 50, 200, 1_000],
        must: 1.1,
        each: true,
    },
];

/// One curve as it was counted.
pub struct Counted {
    curve: &'static Curve,
    /// Number, and instructions of one piece of work.
    points: Vec<(usize, f64)>,
}

impl Counted {
    /// The largest count, relative to the first.
    fn growth(&self) -> f64 {
        let first = self.points.first().map_or(1.0, |(_, count)| *count);
        self.points.iter().map(|(_, count)| count / first).fold(0.0, f64::max)
    }

    /// Whether it is as flat as it must be.
    pub fn holds(&self) -> bool {
        self.growth() <= self.curve.must
    }
}

/// Counts every point of every curve.
pub fn count(count: Count<'_>) -> Result<Vec<Counted>> {
    CURVES
        .iter()
        .map(|curve| {
            let point = |number: &usize| {
                let instructions = count(&format!("{} = {number}", curve.name))?;
                let of = if curve.each { *number } else { 1 };
                eprintln!("{} = {number}: {instructions}", curve.name);
                Ok((*number, instructions as f64 / of as f64))
            };
            Ok(Counted { curve, points: curve.numbers.iter().map(point).collect::<Result<_>>()? })
        })
        .collect()
}

/// The curves as a document; the picture lies beside it.
pub fn markdown(curves: &[Counted], with: &str) -> String {
    let mut text = String::from(
        "# Growth\n\n\
         What the parts of a call take against the number of everything that there can be many of, in instructions of \
         toolvane's own code as callgrind counts them: they do not depend on what else the machine does, and say nothing of its caches. `make counts-growth` \
         writes this page and fails where a curve is steeper than it may be.\n\n\
         ![each curve relative to its first point](growth.svg)\n\n",
    );
    let _ = writeln!(text, "Counted with {with}.\n");
    text.push_str(
        "| against the number of | what is counted | instructions at each number | largest / first | may be |\n",
    );
    text.push_str("| --- | --- | --- | ---: | ---: |\n");
    for counted in curves {
        let points: Vec<String> =
            counted.points.iter().map(|(number, count)| format!("{number}: {count:.0}")).collect();
        let (curve, growth) = (counted.curve, counted.growth());
        let verdict = if counted.holds() { "" } else { " **no**" };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {growth:.2} | {:.2}{verdict} |",
            curve.name,
            curve.work,
            points.join(", "),
            curve.must
        );
    }
    text
}

/// The curves as one picture.
pub fn svg(curves: &[Counted]) -> String {
    let panels: Vec<Panel> = curves.iter().map(Panel::from).collect();
    plot::svg(&panels)
}

impl From<&Counted> for Panel {
    fn from(counted: &Counted) -> Panel {
        let first = counted.points.first().map_or(1.0, |(_, count)| *count);
        let point = |(number, count): &(usize, f64)| {
            let ratio = count / first;
            Point { number: *number, ratio, between: (ratio, ratio) }
        };
        Panel {
            name: counted.curve.name.to_owned(),
            must: counted.curve.must,
            points: counted.points.iter().map(point).collect(),
        }
    }
}
