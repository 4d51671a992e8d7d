//! Plots: curves over axes.

pub mod drawing;
pub mod font;
pub mod ticks;
use crate::color::Rgb;
use crate::plot::drawing::{Anchor, Drawing, Paint, Shape};
use crate::plot::ticks::{Ticks, power_of_ten};

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A line.
    #[default]
    Line,
    /// Dots.
    Dots,
    /// A line with dots.
    Both,
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Points; non-finite ones are gaps.
    pub points: Vec<[f64; 2]>,
    /// Standard error of each y; empty if there are none.
    pub errors: Vec<f64>,
    /// How the curve is drawn.
    pub style: Style,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Label, with the unit.
    pub label: String,
    /// Whether the axis is logarithmic; values that are not positive are omitted.
    pub log: bool,
    /// Ends of the axis; by default those of the curves.
    pub range: Option<[f64; 2]>,
}

/// One field of curves. The panels of a plot are stacked vertically.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Vertical axis.
    pub y: Axis,
    /// Curves of the panel.
    pub curves: Vec<Curve>,
}

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Title above the panels; none if empty.
    pub title: String,
    /// Horizontal axis of all panels.
    pub x: Axis,
    /// Panels, from the top.
    pub panels: Vec<Panel>,
    /// Width in points.
    pub width: f64,
    /// Height of each panel in points.
    pub height: f64,
}

impl Default for Plot {
    fn default() -> Self {
        Self { title: String::new(), x: Axis::default(), panels: vec![], width: 720.0, height: 380.0 }
    }
}

/// Font size of numbers and names.
const SMALL: f64 = 12.0;
/// Font size of axis labels.
const LABEL: f64 = 14.0;
/// Right margin.
const RIGHT: f64 = 20.0;
/// Distance of the points of a line that a legend must not cover.
const SPACING: f64 = 4.0;
/// Largest number of names in a legend.
const MAX_NAMES: usize = 12;

/// Values beyond this are missing, like infinities: the length of an axis must not overflow.
const LARGEST: f64 = 1e300;

impl Axis {
    /// Makes a linear axis with a label.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Returns whether a value can be shown.
    fn shows(&self, v: f64) -> bool {
        v.abs() <= LARGEST && !(self.log && v <= 0.0)
    }

    /// Returns the ends of the axis for some values, with a relative margin.
    fn ends(&self, values: impl Iterator<Item = f64>, margin: f64) -> [f64; 2] {
        if let Some(range) = self.range {
            return range;
        }
        let shown = values.filter(|v| self.shows(*v));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if !low.is_finite() {
            return if self.log { [1.0, 10.0] } else { [0.0, 1.0] };
        }
        if self.log {
            let factor = if high > low { (margin * (high.ln() - low.ln())).exp() } else { 2.0 };
            return [(low / factor).max(1e-300), (high * factor).min(1e300)];
        }
        let width = high - low;
        if width > 1e-12 * low.abs().max(high.abs()) {
            [low - margin * width, high + margin * width]
        } else {
            let room = (0.1 * low.abs()).max(1e-3);
            [low - room, high + room]
        }
    }

    /// Returns the relative position of a value, 0 to 1.
    fn fraction(&self, [low, high]: [f64; 2], v: f64) -> f64 {
        if self.log { (v.ln() - low.ln()) / (high.ln() - low.ln()) } else { (v - low) / (high - low) }
    }

    fn ticks(&self, range: [f64; 2], wanted: f64) -> Ticks {
        if self.log { ticks::logarithmic(range) } else { ticks::linear(range, wanted) }
    }

    /// Returns the label, with the power of ten of the numbers.
    fn text(&self, t: &Ticks) -> String {
        match t.power {
            0 => self.label.clone(),
            p => format!("{} (×{})", self.label, power_of_ten(p)),
        }
    }
}

/// Clips a line segment to a rectangle: left, top, right, bottom.
fn clipped(a: [f64; 2], b: [f64; 2], r: [f64; 4]) -> Option<([f64; 2], [f64; 2])> {
    let d = [b[0] - a[0], b[1] - a[1]];
    let (mut from, mut to) = (0.0f64, 1.0f64);
    for (k, low, high) in [(0, r[0], r[2]), (1, r[1], r[3])] {
        if d[k] == 0.0 {
            if a[k] < low || a[k] > high {
                return None;
            }
            continue;
        }
        let (t, u) = ((low - a[k]) / d[k], (high - a[k]) / d[k]);
        from = from.max(t.min(u));
        to = to.min(t.max(u));
    }
    let at = |t: f64| [a[0] + t * d[0], a[1] + t * d[1]];
    (from <= to).then(|| (at(from), at(to)))
}

/// Returns the visible parts of a curve in a rectangle.
fn visible_parts(points: &[Option<[f64; 2]>], r: [f64; 4]) -> Vec<Vec<[f64; 2]>> {
    let mut out: Vec<Vec<[f64; 2]>> = vec![];
    let mut end: Option<[f64; 2]> = None;
    for w in points.windows(2) {
        let (Some(a), Some(b)) = (w[0], w[1]) else {
            end = None;
            continue;
        };
        match clipped(a, b, r) {
            Some((from, to)) => {
                match out.last_mut() {
                    Some(piece) if end == Some(from) => piece.push(to),
                    _ => out.push(vec![from, to]),
                }
                end = Some(to);
            }
            None => end = None,
        }
    }
    out
}

/// Removes points that cannot be distinguished: keeps the first, lowest, highest and last point in each column of 0.2 points.
fn thin_out(points: Vec<Option<[f64; 2]>>) -> Vec<Option<[f64; 2]>> {
    if points.len() < 6000 {
        return points;
    }
    let mut out: Vec<Option<[f64; 2]>> = vec![];
    let column = |p: &Option<[f64; 2]>| p.map(|p| (5.0 * p[0]).floor() as i64);
    for group in points.chunk_by(|a, b| column(a) == column(b)) {
        if group.len() < 5 || group[0].is_none() {
            out.extend(group);
            continue;
        }
        let y = |k: &usize| group[*k].map_or(0.0, |p| p[1]);
        let low = (0..group.len()).min_by(|a, b| y(a).total_cmp(&y(b))).unwrap_or(0);
        let high = (0..group.len()).max_by(|a, b| y(a).total_cmp(&y(b))).unwrap_or(0);
        let mut kept = [0, low, high, group.len() - 1];
        kept.sort_unstable();
        out.extend(kept.iter().map(|k| group[*k]));
    }
    out
}

impl Plot {
    /// Makes a plot of one panel.
    pub fn simple(x: Axis, y: Axis, curves: Vec<Curve>) -> Self {
        Self { x, panels: vec![Panel { y, curves }], ..Self::default() }
    }

    /// Draws the plot.
    pub fn drawing(&self) -> Drawing {
        let top = if self.title.is_empty() { 16.0 } else { 40.0 };
        let gap = 18.0;
        let n = self.panels.len().max(1) as f64;
        let (inner, bottom) = (self.height, 56.0);
        let all = || self.panels.iter().flat_map(|p| &p.curves).flat_map(|c| &c.points).map(|p| p[0]);
        // markers at the ends of the range must not lie on the frame
        let marked = self.panels.iter().flat_map(|p| &p.curves).any(|c| c.style != Style::Line);
        let rx = self.x.ends(all(), if marked { 0.02 } else { 0.0 });
        let ry: Vec<[f64; 2]> = self
            .panels
            .iter()
            .map(|p| {
                let ends = p.curves.iter().flat_map(|c| {
                    let e = |k: usize| c.errors.get(k).copied().filter(|e| e.abs() <= LARGEST).unwrap_or(0.0);
                    c.points.iter().enumerate().flat_map(move |(k, q)| [q[1] - e(k), q[1] + e(k), q[1]])
                });
                p.y.ends(ends, 0.05)
            })
            .collect();
        let ty: Vec<Ticks> =
            self.panels.iter().zip(&ry).map(|(p, r)| p.y.ticks(*r, (inner / 50.0).clamp(3.0, 6.0))).collect();
        let widest = ty.iter().flat_map(|t| &t.major).map(|m| SMALL * font::width(&m.1)).fold(20.0, f64::max);
        let left = 14.0 + LABEL + 12.0 + widest;
        let right = self.width - RIGHT;
        let tx = self.x.ticks(rx, ((right - left) / 95.0).clamp(2.0, 9.0));
        let mut d = Drawing::new(self.width, top + n * inner + (n - 1.0) * gap + bottom);
        let x = |v: f64| left + self.x.fraction(rx, v) * (right - left);
        for (k, panel) in self.panels.iter().enumerate() {
            let high = top + k as f64 * (inner + gap);
            let low = high + inner;
            self.draw_panel(&mut d, panel, (rx, ry[k]), (&tx, &ty[k]), [left, high, right, low]);
            if k + 1 == self.panels.len() {
                for (v, text) in &tx.major {
                    d.text([x(*v), low + 18.0], text, SMALL, Anchor::Middle);
                }
                d.text([0.5 * (left + right), low + 42.0], self.x.text(&tx), LABEL, Anchor::Middle);
            }
        }
        if !self.title.is_empty() {
            d.text([0.5 * (left + right), 25.0], &self.title, 15.0, Anchor::Middle);
        }
        d
    }

    /// Draws a panel with the ranges and ticks of its axes in a rectangle `r`: left, top, right, bottom.
    fn draw_panel(
        &self,
        d: &mut Drawing,
        panel: &Panel,
        (rx, ry): ([f64; 2], [f64; 2]),
        (tx, ty): (&Ticks, &Ticks),
        r: [f64; 4],
    ) {
        let [left, high, right, low] = r;
        let x = |v: f64| left + self.x.fraction(rx, v) * (right - left);
        let y = |v: f64| low - panel.y.fraction(ry, v) * (low - high);
        for (v, _) in &tx.major {
            d.line(vec![[x(*v), high], [x(*v), low]], Paint::Faint, 1.0);
        }
        for (v, text) in &ty.major {
            d.line(vec![[left, y(*v)], [right, y(*v)]], Paint::Faint, 1.0);
            d.text([left - 8.0, y(*v) + 0.36 * SMALL], text, SMALL, Anchor::End);
        }
        let shown = |p: &[f64; 2]| (self.x.shows(p[0]) && panel.y.shows(p[1])).then(|| [x(p[0]), y(p[1])]);
        // error bars of all curves are below all curves
        for (k, c) in panel.curves.iter().enumerate() {
            let color = Rgb::of_palette(k);
            for (p, e) in c.points.iter().zip(&c.errors) {
                let floor = if panel.y.log { (p[1] - e).max(ry[0]) } else { p[1] - e };
                let (Some(a), Some(b)) = (shown(&[p[0], floor]), shown(&[p[0], p[1] + e])) else { continue };
                if *e > 0.0
                    && let Some((a, b)) = clipped(a, b, r)
                {
                    d.line(vec![a, b], Paint::Color(color, 0.45), 1.6);
                }
            }
        }
        let mut drawn = vec![];
        for (k, c) in panel.curves.iter().enumerate() {
            let points: Vec<Option<[f64; 2]>> = c.points.iter().map(shown).collect();
            draw_curve(d, c.style, Paint::Color(Rgb::of_palette(k), 1.0), &points, r, &mut drawn);
        }
        let mark = |d: &mut Drawing, at: [f64; 2], by: [f64; 2]| {
            d.line(vec![at, [at[0] + by[0], at[1] + by[1]]], Paint::Ink, 1.0);
        };
        tx.major.iter().for_each(|m| mark(d, [x(m.0), low], [0.0, -5.0]));
        tx.minor.iter().for_each(|m| mark(d, [x(*m), low], [0.0, -2.5]));
        ty.major.iter().for_each(|m| mark(d, [left, y(m.0)], [5.0, 0.0]));
        ty.minor.iter().for_each(|m| mark(d, [left, y(*m)], [2.5, 0.0]));
        d.line(vec![[left, high], [right, high], [right, low], [left, low], [left, high]], Paint::Ink, 1.0);
        d.shapes.push(Shape::Text {
            at: [14.0 + 0.7 * LABEL, 0.5 * (high + low)],
            text: panel.y.text(ty),
            size: LABEL,
            anchor: Anchor::Middle,
            turned: true,
            paint: Paint::Ink,
        });
        draw_legend(d, &panel.curves, r, &drawn, !self.title.is_empty());
    }
}

/// Draws a curve in a rectangle `r` and adds its visible points to `drawn`.
fn draw_curve(
    d: &mut Drawing,
    style: Style,
    paint: Paint,
    points: &[Option<[f64; 2]>],
    r: [f64; 4],
    drawn: &mut Vec<[f64; 2]>,
) {
    let [left, high, right, low] = r;
    let inside = |p: &&[f64; 2]| p[0] >= left - 0.5 && p[0] <= right + 0.5 && p[1] >= high - 0.5 && p[1] <= low + 0.5;
    if style != Style::Dots {
        for part in visible_parts(&thin_out(points.to_vec()), r) {
            for ends in part.windows(2) {
                let [a, b] = [ends[0], ends[1]];
                let steps = ((b[0] - a[0]).hypot(b[1] - a[1]) / SPACING).ceil().max(1.0) as usize;
                let along = |k: usize| [0, 1].map(|i| a[i] + (b[i] - a[i]) * k as f64 / steps as f64);
                drawn.extend((0..=steps).map(along));
            }
            d.line(part, paint, 1.7);
        }
    }
    // a single point has no line
    if style != Style::Line || points.len() < 2 {
        for p in points.iter().flatten().filter(inside) {
            drawn.push(*p);
            d.shapes.push(Shape::Dot(*p, 3.0, paint));
        }
    }
}

/// Draws the names of the curves: where they cover no curve, otherwise as one line above the panel, and if that is too long, where
/// they cover the fewest points.
fn draw_legend(d: &mut Drawing, curves: &[Curve], r: [f64; 4], drawn: &[[f64; 2]], titled: bool) {
    let [left, high, right, low] = r;
    if curves.len() < 2 {
        return;
    }
    let mut names: Vec<String> = curves.iter().take(MAX_NAMES).map(|c| c.name.clone()).collect();
    if curves.len() > MAX_NAMES {
        names.push(format!("… {} more", curves.len() - MAX_NAMES));
    }
    let row = SMALL + 6.0;
    let widths: Vec<f64> = names.iter().map(|n| SMALL * font::width(n) + 44.0).collect();
    let width = widths.iter().copied().fold(0.0, f64::max);
    let height = row * names.len() as f64 + 8.0;
    let (to_left, to_right) = (left + 10.0, right - width - 8.0);
    let (top, middle, bottom) = (high + 8.0, 0.5 * (high + low - height), low - height - 8.0);
    let corners = [to_right, to_left].map(|x| [top, bottom, middle].map(|y| [x, y])).concat();
    let covered = |c: &[f64; 2]| {
        let within = |p: &[f64; 2], k: usize, size: f64| p[k] > c[k] - 4.0 && p[k] < c[k] + size + 4.0;
        drawn.iter().filter(|p| within(p, 0, width) && within(p, 1, height)).count()
    };
    let best = corners.into_iter().map(|c| (covered(&c), c)).min_by_key(|c| c.0);
    let (points, [x, y]) = best.unwrap_or((0, [to_right, top]));
    // a title is centered above the panel
    let room = if titled { 0.3 } else { 1.0 } * (right - left);
    let line: f64 = widths.iter().sum();
    if points > 0 && line <= room {
        let mut x = right - line + 8.0;
        for (k, name) in names.into_iter().enumerate() {
            draw_name(d, curves.get(k).filter(|_| k < MAX_NAMES), k, name, [x, high - 9.0]);
            x += widths[k];
        }
        return;
    }
    d.shapes.push(Shape::Area(vec![[x, y], [x + width, y], [x + width, y + height], [x, y + height]], Paint::Ground));
    for (k, name) in names.into_iter().enumerate() {
        draw_name(d, curves.get(k).filter(|_| k < MAX_NAMES), k, name, [x, y + 4.0 + row * (k as f64 + 0.5)]);
    }
}

/// Draws an entry of the legend: a piece of the `k`-th curve and its name.
fn draw_name(d: &mut Drawing, curve: Option<&Curve>, k: usize, name: String, [x, middle]: [f64; 2]) {
    if let Some(c) = curve {
        let paint = Paint::Color(Rgb::of_palette(k), 1.0);
        if c.style != Style::Dots {
            d.line(vec![[x + 6.0, middle], [x + 30.0, middle]], paint, 2.2);
        }
        if c.style != Style::Line {
            d.shapes.push(Shape::Dot([x + 18.0, middle], 3.0, paint));
        }
    }
    d.text([x + 38.0, middle + 0.36 * SMALL], name, SMALL, Anchor::Start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::drawing::Theme;

    fn curve(name: &str, f: impl Fn(f64) -> f64) -> Curve {
        let points = (0..100).map(|k| 0.1 * f64::from(k)).map(|x| [x, f(x)]).collect();
        Curve { name: name.into(), points, ..Curve::default() }
    }

    #[test]
    fn a_plot_has_its_curves_and_round_numbers() {
        let plot = Plot {
            title: "A<B".into(),
            ..Plot::simple(Axis::new("r / σ"), Axis::new("U"), vec![curve("one", f64::sin), curve("two", |x| x * x)])
        };
        let svg = plot.drawing().svg(Theme::Paper);
        assert_eq!(svg.matches("stroke-width=\"1.7\"").count(), 2);
        assert!(svg.contains("A&lt;B") && svg.contains("r / σ") && svg.contains(">one<") && !svg.contains("NaN"));
    }

    #[test]
    fn legends_do_not_cover_curves() {
        let curves = |f: &dyn Fn(f64) -> f64| vec![curve("one", f), curve("two", |x| x)];
        // where the text begins, relative to the panel
        let place = |curves: Vec<Curve>| {
            let plot = Plot::simple(Axis::new("x"), Axis::new("y"), curves);
            let shapes = plot.drawing().shapes;
            let text = shapes.iter().find_map(|s| match s {
                Shape::Text { at, text, .. } if text == "one" => Some(*at),
                _ => None,
            });
            text.expect("a name")
        };
        // the lower right corner is free
        let [x, y] = place(curves(&|x| 0.5 * x));
        assert!(x > 500.0 && y > 300.0, "{x} {y}");
        // two points per curve: the lines between them count
        let line = |name: &str, y: [f64; 2]| Curve {
            name: name.into(),
            points: vec![[0.0, y[0]], [1.0, y[1]]],
            ..Curve::default()
        };
        // crossing zigzags leave no room inside: the legend is above the panel
        let zigzag = |phase: usize| Curve {
            name: ["one", "two"][phase].into(),
            points: (0..60).map(|k| [f64::from(k), ((k as usize + phase) % 2) as f64]).collect(),
            ..Curve::default()
        };
        let [_, y] = place(vec![zigzag(0), zigzag(1)]);
        assert!(y < 16.0, "{y}");
        let [x, y] = place(vec![line("one", [1.0, 1.0]), line("two", [0.0, 0.97])]);
        assert!(x > 500.0 && y > 200.0, "{x} {y}");
    }

    #[test]
    fn curves_end_at_the_frame_and_gaps_stay() {
        let r = [0.0, 0.0, 10.0, 10.0];
        let p = |x: f64, y: f64| Some([x, y]);
        assert_eq!(
            visible_parts(&[p(-5.0, 5.0), p(5.0, 5.0), p(15.0, 5.0)], r),
            [vec![[0.0, 5.0], [5.0, 5.0], [10.0, 5.0]]]
        );
        assert_eq!(visible_parts(&[p(1.0, 1.0), p(2.0, 1.0), None, p(3.0, 1.0), p(4.0, 1.0)], r).len(), 2);
        assert!(visible_parts(&[p(20.0, 1.0), p(30.0, 1.0)], r).is_empty());
        let many: Vec<_> = (0..100_000).map(|k| p(f64::from(k) * 1e-3, f64::from(k % 7))).collect();
        let few = thin_out(many);
        assert!(few.len() < 4 * 501 && few.iter().flatten().any(|q| q[1] == 6.0));
    }

    #[test]
    fn unusual_values_give_a_valid_plot() {
        for (log, values) in [
            (false, vec![]),
            (true, vec![[1.0, -1.0], [2.0, 0.0]]),
            (false, vec![[1.0, 1.0]]),
            (true, vec![[f64::NAN, 2.0], [1e300, 1e300]]),
            (false, vec![[1e308, -1e308], [-1e308, 1e308], [1.0, 2.0]]),
        ] {
            let y = Axis { log, ..Axis::new("y") };
            let curve = Curve { points: values, errors: vec![1.0, f64::NAN], ..Curve::default() };
            let svg = Plot::simple(Axis { log, ..Axis::new("x") }, y, vec![curve]).drawing().svg(Theme::Page);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
