//! Plots as SVG.

use std::fmt::Write as _;

/// A curve of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<[f64; 2]>,
}

const COLORS: [&str; 8] = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"];
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 56.0;

/// About six round numbers in a range.
fn ticks([low, high]: [f64; 2]) -> Vec<f64> {
    let raw = (high - low) / 6.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|k| k * power).find(|s| *s >= raw).unwrap_or(raw);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|k| k as f64 * step).collect()
}

/// A plot of curves; what lies outside `range_y` is cut off.
pub fn svg(lines: &[Line], labels: [&str; 2], range_y: Option<[f64; 2]>) -> String {
    let all = || lines.iter().flat_map(|l| &l.points).filter(|p| p[0].is_finite() && p[1].is_finite());
    let range = |k: usize| {
        let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| (a.min(p[k]), b.max(p[k])));
        match high - low {
            width if width > 0.0 => [low, high],
            _ if low.is_finite() => [low - 0.5, low + 0.5],
            _ => [0.0, 1.0],
        }
    };
    let rx = range(0);
    let ry = range_y.unwrap_or_else(|| {
        let [low, high] = range(1);
        [low - 0.04 * (high - low), high + 0.04 * (high - low)]
    });
    let x = |v: f64| LEFT + (v - rx[0]) / (rx[1] - rx[0]) * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - (v - ry[0]) / (ry[1] - ry[0]) * (HEIGHT - TOP - BOTTOM);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let text = |t: &str| t.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <clipPath id=\"inside\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
        right - LEFT,
        bottom - TOP
    );
    let digits = |step: f64| (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    for (k, list) in [ticks(rx), ticks(ry)].iter().enumerate() {
        let places = list.windows(2).next().map_or(2, |w| digits((w[1] - w[0]) * 1.000_001));
        for v in list {
            let _ = if k == 0 {
                writeln!(
                    s,
                    "<path d=\"M{0:.1} {TOP}V{bottom}\" stroke=\"#dddddd\"/><text x=\"{0:.1}\" y=\"{1:.1}\" \
                     text-anchor=\"middle\">{v:.places$}</text>",
                    x(*v),
                    bottom + 18.0
                )
            } else {
                writeln!(
                    s,
                    "<path d=\"M{LEFT} {0:.1}H{right}\" stroke=\"#dddddd\"/><text x=\"{1:.1}\" y=\"{2:.1}\" \
                     text-anchor=\"end\">{v:.places$}</text>",
                    y(*v),
                    LEFT - 6.0,
                    y(*v) + 4.5
                )
            };
        }
    }
    for (k, line) in lines.iter().enumerate() {
        let color = COLORS[k % COLORS.len()];
        let points: Vec<String> = line
            .points
            .iter()
            .filter(|p| p[0].is_finite() && p[1].is_finite())
            // far outside, numbers would only be long
            .map(|p| format!("{:.2},{:.2}", x(p[0]), y(p[1]).clamp(-10.0 * HEIGHT, 10.0 * HEIGHT)))
            .collect();
        let _ = writeln!(
            s,
            "<polyline clip-path=\"url(#inside)\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.6\" points=\"{}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{color}\">{}</text>",
            points.join(" "),
            right - 8.0,
            TOP + 18.0 * (k as f64 + 1.0),
            text(&line.name)
        );
    }
    let _ = writeln!(
        s,
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"black\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n</svg>",
        right - LEFT,
        bottom - TOP,
        0.5 * (LEFT + right),
        HEIGHT - 14.0,
        text(labels[0]),
        0.5 * (TOP + bottom),
        text(labels[1])
    );
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_its_curves_and_round_numbers() {
        assert_eq!(ticks([0.03, 2.9]), [0.5, 1.0, 1.5, 2.0, 2.5]);
        let line = Line { name: "A<B".into(), points: (0..10).map(|k| [f64::from(k), f64::from(k * k)]).collect() };
        let s = svg(&[line.clone(), line], ["r", "U"], None);
        assert_eq!(s.matches("<polyline").count(), 2);
        assert!(s.contains("A&lt;B") && !s.contains("NaN"));
    }
}
