//! Curves as one picture: a panel each, numbers on a logarithmic axis, cost relative to the first point. Both packages of
//! benchmarks take this file in.

use std::fmt::Write as _;

/// One curve.
pub struct Panel {
    pub name: String,
    /// The largest ratio that counts as flat.
    pub must: f64,
    /// By number.
    pub points: Vec<Point>,
}

/// What was found at one number, relative to the first.
pub struct Point {
    pub number: usize,
    pub ratio: f64,
    /// Between what it lay; the ratio itself where it does not vary.
    pub between: (f64, f64),
}

const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 180.0;
const COLUMNS: usize = 3;

/// The picture, as SVG.
pub fn svg(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS) as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        COLUMNS as f64 * WIDTH,
        rows * HEIGHT
    );
    for (at, panel) in panels.iter().enumerate() {
        let (left, top) = ((at % COLUMNS) as f64 * WIDTH + 40.0, (at / COLUMNS) as f64 * HEIGHT + 30.0);
        draw(&mut text, panel, (left, top), (WIDTH - 60.0, HEIGHT - 70.0));
    }
    text + "</svg>\n"
}

fn draw(text: &mut String, panel: &Panel, (left, top): (f64, f64), (width, height): (f64, f64)) {
    let Panel { name, must, points } = panel;
    let (Some(from), Some(to)) = (points.first(), points.last()) else { return };
    let highest = points.iter().map(|point| point.between.1).fold(*must, f64::max) * 1.1;
    let (from, to) = (from.number as f64, to.number as f64);
    let x = |number: usize| left + width * (number as f64 / from).ln() / (to / from).ln();
    let y = |ratio: f64| top + height * (1.0 - ratio / highest);
    let (right, bottom) = (left + width, top + height);
    let _ = writeln!(text, "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{name}</text>", top - 12.0);
    let _ = writeln!(text, "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>");
    for (value, colour) in [(1.0, "#bbb"), (*must, "#c33")] {
        let _ = writeln!(
            text,
            "<path d=\"M{left} {0:.1}H{right}\" stroke=\"{colour}\" stroke-dasharray=\"3 3\"/>\
             <text x=\"{1:.1}\" y=\"{0:.1}\" text-anchor=\"end\">{value:.2}</text>",
            y(value),
            left - 4.0
        );
    }
    let line: Vec<String> =
        points.iter().map(|point| format!("{:.1},{:.1}", x(point.number), y(point.ratio))).collect();
    let line = line.join(" ");
    let _ = writeln!(text, "<polyline points=\"{line}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"2\"/>");
    for Point { number, ratio, between: (low, high) } in points {
        if low < high {
            let _ = writeln!(text, "<path d=\"M{:.1} {:.1}V{:.1}\" stroke=\"#06c\"/>", x(*number), y(*low), y(*high));
        }
        let _ = writeln!(
            text,
            "<circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"3\" fill=\"#06c\"/>\
             <text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\">{number}</text>",
            x(*number),
            y(*ratio),
            bottom + 14.0
        );
    }
}
