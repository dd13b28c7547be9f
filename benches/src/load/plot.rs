//! Draws lines in panels with logarithmic axes, as SVG.

use std::fmt::Write as _;

/// A diagram.
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) x: &'static str,
    pub(crate) series: Vec<Series>,
}

/// A line in a diagram.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const COLOURS: [&str; 3] = ["#1b6ca8", "#c8553d", "#5b8c5a"];
/// The size of a panel, and of the space for its axes and its title.
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 56.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;

/// The panels, two in a row.
pub(crate) fn svg(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(2) as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        2.0 * WIDTH,
        rows * HEIGHT
    );
    for (number, panel) in panels.iter().enumerate() {
        let (x, y) = ((number % 2) as f64 * WIDTH, (number / 2) as f64 * HEIGHT);
        _ = writeln!(out, "<g transform=\"translate({x} {y})\">");
        draw(&mut out, panel);
        out += "</g>\n";
    }
    out + "</svg>\n"
}

/// Powers of ten around some values.
fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (low, high) = (values.clone().fold(f64::MAX, f64::min), values.fold(f64::MIN, f64::max));
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    (low, high.max(low + 1.0))
}

fn draw(out: &mut String, panel: &Panel) {
    let points = panel.series.iter().flat_map(|series| series.points.iter());
    let (xs, ys) = (range(points.clone().map(|it| it.0)), range(points.map(|it| it.1)));
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let at_x = |value: f64| LEFT + (value.log10() - xs.0) / (xs.1 - xs.0) * wide;
    let at_y = |value: f64| TOP + high - (value.log10() - ys.0) / (ys.1 - ys.0) * high;
    _ = writeln!(out, "<text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\">{}</text>", panel.title);
    let bottom = TOP + high;
    for power in ys.0 as i32..=ys.1 as i32 {
        let (y, label) = (at_y(10f64.powi(power)), label(power));
        _ = writeln!(
            out,
            "<path d=\"M{LEFT} {y:.1}h{wide:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for power in xs.0 as i32..=xs.1 as i32 {
        let (x, label) = (at_x(10f64.powi(power)), label(power));
        _ = writeln!(
            out,
            "<path d=\"M{x:.1} {TOP}v{high:.1}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            bottom + 15.0
        );
    }
    let middle = LEFT + wide / 2.0;
    _ = writeln!(
        out,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        bottom + 31.0,
        panel.x
    );
    for (Series { name, points }, colour) in panel.series.iter().zip(COLOURS) {
        let path: Vec<_> =
            points.iter().map(|(x, y)| format!("{:.1} {:.1}", at_x(*x), at_y(*y))).collect();
        let path = path.join("L");
        _ = writeln!(
            out,
            "<path d=\"M{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        for (x, y) in points {
            let (x, y) = (at_x(*x), at_y(*y));
            _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        if let Some((x, y)) = points.last() {
            let (x, y) = (at_x(*x) + 7.0, at_y(*y) + 4.0);
            _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>");
        }
    }
}

fn label(power: i32) -> String {
    if power >= 0 {
        format!("{}", 10f64.powi(power))
    } else {
        format!("{:.*}", -power as usize, 10f64.powi(power))
    }
}
