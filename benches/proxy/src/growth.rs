//! Does it grow? The cost of a call against the number of everything that there can be many of.

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;

use crate::load::Work;
use crate::peers::{Peer, Places, Running};
use crate::plan::{Drive, Subject};
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

/// The curves as one SVG: a panel each, numbers on a logarithmic axis, cost relative to the smallest.
pub fn svg(curves: &[Curve]) -> String {
    const WIDTH: usize = 260;
    const HEIGHT: usize = 180;
    let rows = curves.len().div_ceil(3);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        3 * WIDTH,
        rows * HEIGHT
    );
    for (n, curve) in curves.iter().enumerate() {
        let (left, top) = ((n % 3 * WIDTH + 40) as f64, (n / 3 * HEIGHT + 30) as f64);
        let (width, height) = (WIDTH as f64 - 60.0, HEIGHT as f64 - 70.0);
        let highest = curve.points.iter().map(|(_, m)| m.high).fold(curve.must * 1.1, f64::max);
        let last = curve.points.last().map_or(1.0, |(number, _)| *number as f64);
        let first = curve.points.first().map_or(1.0, |(number, _)| *number as f64);
        let x = |number: usize| left + width * (number as f64 / first).ln() / (last / first).ln();
        let y = |value: f64| top + height * (1.0 - value / highest);
        let unit = if curve.per_unit { "cost of one" } else { "cost of a call" };
        text.push_str(&format!(
            "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{}, {unit}</text>\n",
            top - 12.0,
            curve.name
        ));
        text.push_str(&format!(
            "<path d=\"M{left} {top}V{}H{}\" fill=\"none\" stroke=\"#888\"/>\n",
            top + height,
            left + width
        ));
        for (value, colour) in [(1.0, "#bbb"), (curve.must, "#c33")] {
            text.push_str(&format!(
                "<path d=\"M{left} {0}H{1}\" stroke=\"{colour}\" stroke-dasharray=\"3 3\"/><text x=\"{2}\" y=\"{0}\" text-anchor=\"end\">{value:.2}</text>\n",
                y(value), left + width, left - 4.0
            ));
        }
        let line: Vec<String> =
            curve.points.iter().map(|(number, m)| format!("{:.1},{:.1}", x(*number), y(m.median))).collect();
        text.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"2\"/>\n",
            line.join(" ")
        ));
        for (number, m) in &curve.points {
            text.push_str(&format!(
                "<path d=\"M{0:.1} {1:.1}V{2:.1}\" stroke=\"#06c\"/><circle cx=\"{0:.1}\" cy=\"{3:.1}\" r=\"3\" fill=\"#06c\"/><text x=\"{0:.1}\" y=\"{4:.1}\" text-anchor=\"middle\">{number}</text>\n",
                x(*number), y(m.low), y(m.high), y(m.median), top + height + 14.0
            ));
        }
    }
    text.push_str("</svg>\n");
    text
}
