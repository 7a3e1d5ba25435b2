//! Does it grow? The cost of a call against the number of everything that there can be many of.

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;

use crate::load::Work;
use crate::peers::{Peer, Places, Running};
use crate::plan::{Drive, Subject};
use crate::plot::{self, Panel};
use crate::requests::Call;
use crate::rounds::{Rounds, Turn, prepare, turn};
use crate::stats::{Median, median};

/// One curve: the cost against a number, relative to the smallest.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    pub name: &'static str,
    pub points: Vec<(usize, Median)>,
    /// The largest ratio that counts as flat, or as linear per unit.
    pub must: f64,
    /// Cost is per unit of the number, not per call.
    pub per_unit: bool,
}

struct Point {
    number: usize,
    instance: usize,
    work: Work,
    units: f64,
}

pub fn measure(places: &Places, how: Rounds) -> Result<Vec<Curve>> {
    let base = Peer::Toolvane { rules: 0 }.start(places, "growth")?;
    prepare(&base, 10)?;
    let mut instances = vec![base];
    let mut curves = Vec::new();

    for rules in [1000, 2000] {
        let running = Peer::Toolvane { rules }.start(places, &format!("growth-rules-{rules}"))?;
        prepare(&running, 10)?;
        instances.push(running);
    }
    for (name, case, must) in [("rules, success", "json1k", 1.01), ("rules, failure", "iserror", 1.2)] {
        let points = [10, 1000, 2000]
            .into_iter()
            .enumerate()
            .map(|(at, number)| point(number, at, &[Call { case, ..Call::default() }]));
        curves.push(curve(&instances, name, points.collect(), must, false, how)?);
    }

    let mut documents = vec![point(10, 0, &[Call::default()])];
    for number in [2000, 10_000, 100_000] {
        let running = Peer::Toolvane { rules: 0 }.start(places, &format!("growth-documents-{number}"))?;
        prepare(&running, number)?;
        documents.push(point(number, instances.len(), &[Call::default()]));
        instances.push(running);
    }
    curves.push(curve(&instances, "documents", documents, 1.10, false, how)?);

    let numbers = [1, 100, 1000, 10_000];
    let names: Vec<Vec<String>> =
        numbers.iter().map(|&number| (0..number).map(|n| format!("name_{n}")).collect()).collect();
    for (name, make) in [
        ("tools", (|tool| Call { tool, ..Call::default() }) as fn(&str) -> Call<'_>),
        ("users", |user| Call { user, ..Call::default() }),
        ("sessions", |session| Call { session, ..Call::default() }),
    ] {
        let points = numbers
            .iter()
            .zip(&names)
            .map(|(&number, names)| point(number, 0, &names.iter().map(|name| make(name)).collect::<Vec<_>>()));
        curves.push(curve(&instances, name, points.collect(), 1.5, false, how)?);
    }

    let connections = [16, 64, 512, 2048].map(|number| {
        let mut point = point(number, 0, &[Call::default()]);
        point.work.connections = number;
        point
    });
    curves.push(curve(&instances, "connections", connections.into(), 1.5, false, how)?);

    let lists = [(10, "list10"), (50, "list50"), (200, "list200"), (1000, "list1000")].map(|(number, case)| {
        let requests = vec![Call { case, ..Call::default() }.list()];
        Point {
            number,
            instance: 0,
            work: Work { requests: Arc::new(requests), connections: 16, status: 200 },
            units: number as f64,
        }
    });
    curves.push(curve(&instances, "tools in a list", lists.into(), 1.2, true, how)?);
    Ok(curves)
}

fn point(number: usize, instance: usize, calls: &[Call<'_>]) -> Point {
    let requests = calls.iter().map(Call::bytes).collect();
    Point { number, instance, work: Work { requests: Arc::new(requests), connections: 64, status: 200 }, units: 1.0 }
}

fn curve(
    instances: &[Running],
    name: &'static str,
    points: Vec<Point>,
    must: f64,
    per_unit: bool,
    how: Rounds,
) -> Result<Curve> {
    let mut ratios = vec![Vec::new(); points.len()];
    for _ in 0..how.rounds {
        let turns: Vec<Turn> = points
            .iter()
            .map(|point| {
                let subject = Subject {
                    name: "toolvane",
                    peer: Peer::Toolvane { rules: 0 },
                    instance: "growth",
                    work: point.work.clone(),
                };
                turn(&instances[point.instance], &subject, Drive::Closed, how)
            })
            .collect::<Result<_>>()?;
        for (at, point) in points.iter().enumerate() {
            ratios[at].push(turns[at].cpu / point.units / (turns[0].cpu / points[0].units));
        }
    }
    let points = points.iter().zip(&ratios).map(|(point, ratios)| (point.number, median(ratios))).collect();
    Ok(Curve { name, points, must, per_unit })
}

/// The curves as one picture.
pub fn svg(curves: &[Curve]) -> String {
    let panels: Vec<Panel> = curves.iter().map(Panel::from).collect();
    plot::svg(&panels)
}

impl From<&Curve> for Panel {
    fn from(curve: &Curve) -> Panel {
        let unit = if curve.per_unit { "cost of one" } else { "cost of a call" };
        let point = |(number, ratio): &(usize, Median)| plot::Point {
            number: *number,
            ratio: ratio.median,
            between: (ratio.low, ratio.high),
        };
        Panel {
            name: format!("{}, {unit}", curve.name),
            must: curve.must,
            points: curve.points.iter().map(point).collect(),
        }
    }
}
