//! Pictures, plots, statistics, pages and the log for programs.

use galamost_pictures::{ColorBy, Direction, Glyph, Image, Rgb, Slice, View, one_thread};
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tests::{galamost, has_compiler, python, repository, words};
use std::path::Path;
use std::process::Command;

fn empty() -> Snapshot {
    Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() }
}

/// From above, without perspective: x to the right, y upwards, 40 pixels a length where the box has 10 of them.
fn above() -> View {
    let view =
        View { size: [400, 400], direction: Some(Direction { azimuth: -90.0, elevation: 90.0 }), ..View::default() };
    View { perspective: Some(false), ..view }
}

fn draw(view: &View, s: &Snapshot) -> Image {
    view.picture(s, &one_thread).expect("a picture")
}

/// Pixels that are nearer to one color than half the way to white.
fn pixels(image: &Image, is: impl Fn([u8; 3]) -> bool) -> Vec<[f64; 2]> {
    let all = (0..image.height).flat_map(|y| (0..image.width).map(move |x| (x, y)));
    all.filter(|(x, y)| is(image.at(*x, *y))).map(|(x, y)| [f64::from(x), f64::from(y)]).collect()
}

fn reddish(c: [u8; 3]) -> bool {
    f64::from(c[0]) > 1.8 * f64::from(c[1].max(c[2])) && c[0] > 40
}

fn bluish(c: [u8; 3]) -> bool {
    f64::from(c[2]) > 1.3 * f64::from(c[0].max(c[1])) && c[2] > 40
}

fn decoded(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = std::io::BufReader::new(std::fs::File::open(path).expect("a picture"));
    let mut reader = png::Decoder::new(file).read_info().expect("PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    (info.width, info.height, pixels)
}

#[test]
fn a_ball_is_a_disc_of_its_color_in_front_of_the_background() {
    let mut s = empty();
    let a = s.type_id("A");
    s.push(a, [2.0, 1.0, 0.0]);
    let view =
        View { colors: vec![("A".into(), Rgb([220, 30, 30]))], radius: vec![(None, 1.5)], edges: false, ..above() };
    let view = View { background: Rgb([10, 200, 60]), ..view };
    let image = draw(&view, &s);
    // the ball alone is fitted: 94 % of the smaller half edge
    let disc = pixels(&image, reddish);
    let radius = 0.94 * 200.0;
    let area = std::f64::consts::PI * radius * radius;
    assert!((disc.len() as f64 / area - 1.0).abs() < 0.02, "{} of {area}", disc.len());
    let mean = |k: usize| disc.iter().map(|p| p[k]).sum::<f64>() / disc.len() as f64;
    assert!((mean(0) - 199.5).abs() < 1.0 && (mean(1) - 199.5).abs() < 1.0);
    assert_eq!(image.at(3, 3), [10, 200, 60]);
    assert_eq!(image.at(399, 399), [10, 200, 60]);
    // light comes from the upper left
    let lightness = |x, y| image.at(x, y).iter().map(|c| u32::from(*c)).sum::<u32>();
    assert!(lightness(140, 120) > lightness(280, 300) + 60);
}

#[test]
fn what_is_in_front_hides_what_is_behind() {
    let mut s = empty();
    let (a, b) = (s.type_id("A"), s.type_id("B"));
    s.push(a, [0.0, 0.0, 2.0]);
    s.push(b, [0.0, 0.0, -2.0]);
    let colors = vec![("A".into(), Rgb([220, 30, 30])), ("B".into(), Rgb([30, 60, 220]))];
    let view = View { colors, radius: vec![(None, 1.0)], edges: false, ..above() };
    let image = draw(&view, &s);
    assert!(pixels(&image, bluish).is_empty() && pixels(&image, reddish).len() > 1000);
    // from below it is the other way round, and a hidden type shows what is behind it
    let below = View { direction: Some(Direction { azimuth: -90.0, elevation: -90.0 }), ..view.clone() };
    assert!(pixels(&draw(&below, &s), reddish).is_empty());
    let hidden = View { hide: vec!["A".into()], ..view.clone() };
    assert!(pixels(&draw(&hidden, &s), bluish).len() > 1000);
    let sliced = View { slices: vec![Slice { axis: 2, min: -5.0, max: 0.0 }], ..view.clone() };
    assert!(pixels(&draw(&sliced, &s), bluish).len() > 1000);
    // in perspective the ball behind is smaller, so it stays hidden; the one in front is larger than without
    let side = View { direction: Some(Direction { azimuth: -90.0, elevation: 0.0 }), perspective: Some(true), ..view };
    assert!(!pixels(&draw(&side, &s), bluish).is_empty());
}

#[test]
fn bonds_are_drawn_inside_of_the_box_only() {
    let mut s = empty();
    let a = s.type_id("A");
    for x in [-4.5, 4.5, -1.0, 1.0] {
        s.push(a, [x, if x.abs() > 2.0 { 2.0 } else { -2.0 }, 0.0]);
    }
    s.bond_types.push("A-A".into());
    s.bonds = vec![Link { kind: 0, tags: [0, 1] }, Link { kind: 0, tags: [2, 3] }];
    let view = View { radius: vec![(None, 0.4)], ..above() };
    let with = draw(&view, &s);
    let without = draw(&View { bonds: false, ..view.clone() }, &s);
    let differ: Vec<[f64; 2]> = pixels(&with, |_| true)
        .into_iter()
        .filter(|p| with.at(p[0] as u32, p[1] as u32) != without.at(p[0] as u32, p[1] as u32))
        .collect();
    assert!(differ.len() > 200, "{}", differ.len());
    // only about the bond of the lower pair: the middle of the picture in x, below the middle in y
    for p in &differ {
        assert!((p[0] - 200.0).abs() < 60.0 && p[1] > 220.0, "{p:?}");
    }
    // the middle of the lower bond has the particles' color; nothing is between the upper two
    let blue = Rgb::of_palette(0).0;
    let lower = pixels(&with, bluish).iter().filter(|p| (p[0] - 200.0).abs() < 5.0).count();
    assert!(lower > 50, "{blue:?} {lower}");
    let upper = pixels(&with, bluish).iter().filter(|p| (p[0] - 200.0).abs() < 100.0 && p[1] < 200.0).count();
    assert_eq!(upper, 0);
}

#[test]
fn molecules_across_the_boundary_are_whole_if_wanted() {
    let mut s = empty();
    let a = s.type_id("A");
    // from 3.5 over the boundary to −4.5, and a particle by itself
    for x in [3.5, 4.5, -4.5, -1.0] {
        s.push(a, [x, 0.0, 0.0]);
    }
    s.bond_types.push("A-A".into());
    s.bonds = vec![Link { kind: 0, tags: [0, 1] }, Link { kind: 0, tags: [1, 2] }];
    let view = View { radius: vec![(None, 0.3)], colors: vec![("A".into(), Rgb([220, 30, 30]))], ..above() };
    let columns = |image: &Image| {
        let mut x: Vec<i64> = pixels(image, reddish).iter().map(|p| p[0] as i64).collect();
        x.sort_unstable();
        x.dedup();
        // begins and ends of what hangs together
        let gaps: Vec<[i64; 2]> = x.windows(2).filter(|w| w[1] > w[0] + 1).map(|w| [w[0], w[1]]).collect();
        (x[0], gaps, x[x.len() - 1])
    };
    // the last ball, the lone one, and the pair
    assert_eq!(columns(&draw(&view, &s)).1.len(), 2);
    // the lone one, and three in a row, the last of which sticks out by 0.5 + 0.3
    let whole = draw(&View { whole: true, ..view }, &s);
    let (first, gaps, last) = columns(&whole);
    assert_eq!(gaps.len(), 1);
    // from −5.3 (the box, with room for a ball) to 5.8 are 94 % of 400 pixels
    let pixel = |x: f64| 200.0 + (x - 0.25) * 0.94 * 400.0 / 11.1;
    for (is, x) in [(first, -1.3), (gaps[0][0], -0.7), (gaps[0][1], 3.2), (last, 5.8)] {
        assert!((is as f64 - pixel(x)).abs() < 2.5, "{is} for {x}, which is at {}", pixel(x));
    }
}

#[test]
fn a_key_says_what_colors_mean() {
    let mut s = empty();
    let (a, b) = (s.type_id("A"), s.type_id("B"));
    s.type_id("none of this type");
    s.push(a, [-2.0, 0.0, 0.0]);
    s.push(b, [2.0, 0.0, 0.0]);
    let colors = vec![("A".into(), Rgb([220, 30, 30])), ("B".into(), Rgb([30, 60, 220]))];
    let view = View { colors, key: true, size: [600, 400], ..above() };
    let image = draw(&view, &s);
    assert_eq!((image.width, image.height), (600, 400));
    // the picture beside the key is that of what is left of the width
    let strip = (50..80).find(|w| {
        let alone = draw(&View { key: false, size: [600 - w, 400], ..view.clone() }, &s);
        (0..400).all(|y| (0..600 - w).all(|x| alone.at(x, y) == image.at(x, y)))
    });
    let strip = f64::from(strip.expect("a strip of some width"));
    let in_key = |is: &dyn Fn([u8; 3]) -> bool| -> Vec<[f64; 2]> {
        pixels(&image, is).into_iter().filter(|p| p[0] >= 600.0 - strip).collect()
    };
    let (red, blue, dark) = (in_key(&reddish), in_key(&bluish), in_key(&|c| c[0] < 60 && c[2] < 60));
    let middle = |p: &[[f64; 2]]| p.iter().map(|p| p[1]).sum::<f64>() / p.len() as f64;
    assert!(red.len() > 150 && blue.len() > 150 && dark.len() > 10, "{} {} {}", red.len(), blue.len(), dark.len());
    assert!((middle(&red) + middle(&blue) - 399.0).abs() < 3.0 && middle(&red) < middle(&blue) - 15.0);
    // numbers: a bar from dark blue to yellow, with points at its ends where numbers are beyond; colors of the ends but for a row
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(vec![-1.0, 1.0]) });
    let charge = View { color: ColorBy::Property("charge".into()), ..view.clone() };
    let bar = |range: [f64; 2]| {
        let image = draw(&View { range: Some(range), ..charge.clone() }, &s);
        let of = |c: [u8; 3]| {
            pixels(&image, |p| (0..3).all(|k| p[k].abs_diff(c[k]) <= 5))
                .into_iter()
                .filter(|p| p[0] > 480.0)
                .collect::<Vec<_>>()
        };
        (of([253, 231, 37]), of([68, 1, 84]))
    };
    let height =
        |p: &[[f64; 2]]| p.iter().map(|p| p[1]).fold(0.0, f64::max) - p.iter().map(|p| p[1]).fold(1e9, f64::min);
    let ((top, bottom), (top_beyond, bottom_beyond)) = (bar([-2.0, 2.0]), bar([-0.5, 2.0]));
    assert!(middle(&top_beyond) < 150.0 && middle(&bottom_beyond) > 250.0);
    assert!(bottom_beyond.len() > bottom.len() + 20 && height(&top_beyond) <= height(&top) + 1.0);
    for (view, part) in [
        (View { color: ColorBy::Molecule, ..view.clone() }, "a key is not available"),
        (View { size: [40, 400], ..view.clone() }, "has no room for a key"),
    ] {
        let words = view.picture(&s, &one_thread).expect_err(part);
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn caps_and_rods_follow_their_axes() {
    let mut s = empty();
    let a = s.type_id("A");
    s.push(a, [0.0; 3]);
    // z turned onto x: half a right angle about y
    let h = std::f64::consts::FRAC_1_SQRT_2;
    s.arrays.insert("quaternion".into(), Array { width: 4, values: Values::Real(vec![0.0, h, 0.0, h]) });
    let view =
        View { radius: vec![(None, 1.0)], edges: false, colors: vec![("A".into(), Rgb([220, 30, 30]))], ..above() };
    let image = draw(&view, &s);
    // the cap is on the right, the body's color on the left
    let (left, right): (Vec<_>, Vec<_>) = pixels(&image, reddish).into_iter().partition(|p| p[0] < 199.5);
    assert!(left.len() > 10_000 && right.len() < left.len() / 50, "{} {}", left.len(), right.len());
    let rod = View { glyphs: vec![(None, Glyph::Ellipsoid(3.0))], edges: true, ..view };
    let body = pixels(&draw(&rod, &s), reddish);
    let extent = |k: usize| {
        let (low, high) = body.iter().fold((f64::MAX, f64::MIN), |(l, h), p| (l.min(p[k]), h.max(p[k])));
        high - low
    };
    assert!((extent(0) / extent(1) - 3.0).abs() < 0.1, "{} × {}", extent(0), extent(1));
    s.arrays.clear();
    let words = rod.picture(&s, &one_thread).expect_err("no axes");
    assert!(words.contains("needs orientations"), "{words}");
}

#[test]
fn numbers_become_colors_and_what_is_not_there_is_told() {
    let mut s = empty();
    let a = s.type_id("A");
    for k in 0..4 {
        s.push(a, [f64::from(k) * 2.0 - 3.0, 0.0, 0.0]);
    }
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(vec![0.0, 1.0, 2.0, 3.0]) });
    let view = View { color: ColorBy::Property("charge".into()), range: Some([0.0, 3.0]), edges: false, ..above() };
    let image = draw(&view, &s);
    let yellow = pixels(&image, |c| c[0] > 150 && c[1] > 130 && c[2] < 100);
    assert!(yellow.len() > 100 && yellow.iter().all(|p| p[0] > 300.0));
    for (view, part) in [
        (View { color: ColorBy::Property("mess".into()), ..above() }, "there is no property `mess`"),
        (View { hide: vec!["B".into()], ..above() }, "there is no type `B`; the types are A"),
        (View { hide: vec!["A".into()], ..above() }, "all particles are hidden"),
        (View { size: [4, 4], ..above() }, "16 to"),
    ] {
        let words = view.picture(&s, &one_thread).expect_err(part);
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn the_program_draws_files_and_pipelines_the_same_with_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let xml = repository().join("examples/06-kremer-grest-melt.xml");
    let xml = xml.to_str().expect("a path");
    for (threads, out) in [("1", "one.png"), ("2", "two.png")] {
        let args = ["render", xml, "--out", out, "--size", "320x240", "--color", "molecule", "--threads", threads];
        let done = galamost(folder.path(), &args);
        assert!(done.status.success(), "{}", words(&done));
    }
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).expect("a picture");
    assert!(bytes("one.png") == bytes("two.png"), "pictures differ with the number of threads");
    let (w, h, all) = decoded(&folder.path().join("one.png"));
    assert_eq!((w, h), (320, 240));
    assert_eq!(all[..3], [255; 3]);
    assert!(all.chunks(3).filter(|p| **p != [255; 3]).count() > 10_000);
    let ron = repository().join("examples/13-janus.ron");
    let args =
        ["render", ron.to_str().expect("a path"), "--out", "janus.png", "--size", "200x200", "--slice", "z,-2,2"];
    let done = galamost(folder.path(), &args);
    assert!(done.status.success(), "{}", words(&done));
    assert_eq!(decoded(&folder.path().join("janus.png")).0, 200);
    for (args, part) in [
        (vec!["render", xml, "--out", "x.jpg"], "x.jpg: unknown image format"),
        (vec!["render", xml, "--view", "up"], "--view: `up` is not a direction"),
        (vec!["render", xml, "--color", "spin"], "there is no property `spin`"),
        (vec!["render", xml, "--hide", "Q"], "there is no type `Q`"),
        (vec!["render", "nothing.xml"], "nothing.xml"),
    ] {
        let done = galamost(folder.path(), &args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        assert!(words(&done).contains(part), "{}", words(&done));
    }
}

/// All elements of an SVG file are closed in the right order.
fn well_formed(svg: &str) {
    let mut reader = quick_xml::Reader::from_str(svg);
    loop {
        match reader.read_event().expect("SVG") {
            quick_xml::events::Event::Eof => return,
            quick_xml::events::Event::Start(e) | quick_xml::events::Event::Empty(e) => {
                e.attributes().for_each(|a| drop(a.expect("an attribute")));
            }
            _ => {}
        }
    }
}

#[test]
fn tables_are_plotted() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("a.csv", "r (sigma),A-A,A-B,A-A_error\n0.5,0.0,0.1,0.01\n1.0,2.5,1.5,0.1\n1.5,1.0,1.0,0.05\n");
    write("b.csv", "r (sigma),A-A,A-B\n0.5,0.1,0.1\n1.0,2.0,1.5\n1.5,1.1,1.0\n");
    let run = |args: &[&str]| galamost(folder.path(), args);
    let done = run(&["plot", "a.csv"]);
    assert!(done.status.success(), "{}", words(&done));
    let svg = std::fs::read_to_string(folder.path().join("a.svg")).expect("a plot");
    well_formed(&svg);
    assert!(
        svg.contains(">r (sigma)<") && svg.contains(">A-A<") && svg.contains(">A-B<") && !svg.contains("A-A_error")
    );
    let args = [
        "plot", "a.csv", "b.csv", "--y", "A-A", "--y", "A-B", "--title", "x < y", "--points", "--log-y", "--out",
        "c.svg",
    ];
    assert!(run(&args).status.success());
    let svg = std::fs::read_to_string(folder.path().join("c.svg")).expect("a plot");
    well_formed(&svg);
    assert!(svg.contains("x &lt; y") && svg.contains(">a.csv<") && svg.contains(">b.csv<"));
    assert!(run(&["plot", "a.csv", "--y", "A-A", "--errors", "--out", "e.png"]).status.success());
    let (w, h, pixels) = decoded(&folder.path().join("e.png"));
    assert!(w == 1440 && h > 700);
    let blue = Rgb::of_palette(0).0;
    assert!(pixels.chunks(3).filter(|p| **p == blue).count() > 1000, "the curve");
    assert!(pixels.chunks(3).filter(|p| **p == [0x22; 3]).count() > 2000, "axes and letters");
    // tables of potentials, in both formats
    let make = [
        "table",
        "make",
        "Wca(pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})",
        "--pair",
        "A",
        "A",
        "--out",
        "wca.csv",
    ];
    let done = run(&make);
    assert!(done.status.success(), "{}", words(&done));
    for out in ["wca.png", "wca.svg"] {
        let done = run(&["table", "plot", "wca.csv", "--out", out]);
        assert!(done.status.success(), "{}", words(&done));
    }
    assert!(decoded(&folder.path().join("wca.png")).0 == 1440);
    write("bad.csv", "step,kT\n0,1.0\n10,one\n20,2.0\n");
    write("short.csv", "step,kT\n0,1.0\n10\n20,2.0\n");
    for (args, part) in [
        (vec!["plot", "bad.csv"], "bad.csv:3:4: `one` is not a number"),
        (vec!["stats", "bad.csv"], "bad.csv:3:4:"),
        (vec!["plot", "short.csv"], "short.csv:3:3: 1 cells in a table of 2 columns"),
        (vec!["plot", "a.csv", "--y", "A-C"], "unknown column `A-C`; did you mean"),
        (vec!["plot", "a.csv", "--out", "a.gif"], "a.gif: unknown image format"),
        (vec!["plot", "a.csv", "--y", "A-B", "--errors"], "no standard errors of `A-B`"),
        (vec!["plot", "none.csv"], "none.csv: cannot be read"),
        (vec!["table", "plot", "wca.csv", "--out", "x.gif"], "x.gif: unknown image format"),
    ] {
        let done = run(&args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", words(&done));
        assert!(words(&done).contains(part), "{}", words(&done));
    }
}

/// The formulas of `stats` in NumPy, on series of a known correlation time.
const REFERENCE: &str = r"
import numpy as np, json, sys
rng = np.random.default_rng(7)
n, phi = 6000, 0.9
x = np.zeros(n)
for k in range(1, n):
    x[k] = phi*x[k-1] + rng.normal()*np.sqrt(1 - phi*phi)
y = 5 + x + np.linspace(0, 0.5, n)
w = rng.normal(size=n)
np.savetxt('s.csv', np.c_[np.arange(n)*10, x, y, w], delimiter=',', header='step,x,y,w', comments='', fmt=['%d','%.17g','%.17g','%.17g'])
def inefficiency(a):
    d = a - a.mean(); c0 = (d*d).mean(); g = 1.0; N = len(a)
    for t in range(1, N - 1):
        c = (d[:N-t]*d[t:]).sum()/((N - t)*c0)
        if c <= 0 and t > 3: break
        g += 2*c*(1 - t/N)
    return max(g, 1.0)
def block(a):
    n, s0, size = len(a), None, 1
    while len(a) >= 2:
        s = np.sqrt(a.var()/(len(a) - 1)); s0 = s if s0 is None else s0
        if size**3 > 2*n*(s/s0)**4: return s
        m = len(a)//2; a = 0.5*(a[:2*m:2] + a[1:2*m:2]); size *= 2
def drift(a):
    t = np.arange(len(a)); p = np.polyfit(t, a, 1); r = a - np.polyval(p, t)
    return p[0]*(len(a) - 1), np.sqrt(12*inefficiency(r)*(r*r).sum()/(len(a) - 2)/len(a))
out = {}
for name, a in (('x', x), ('y', y), ('w', w)):
    out[name] = [a.mean(), block(a), a.std(ddof=1), inefficiency(a), *drift(a)]
try:
    from pymbar import timeseries
    for name, a in (('x', x), ('w', w)):
        assert abs(timeseries.statistical_inefficiency(a) - out[name][3]) < 1e-9*out[name][3]
except ImportError:
    pass
json.dump(out, open('reference.json', 'w'))
";

#[test]
fn statistics_are_those_of_numpy() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new(python).args(["-c", REFERENCE]).current_dir(folder.path()).output().expect("Python runs");
    assert!(done.status.success(), "{}", words(&done));
    let text = std::fs::read_to_string(folder.path().join("reference.json")).expect("numbers");
    let reference: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let done = galamost(folder.path(), &["stats", "s.csv", "--json"]);
    assert!(done.status.success(), "{}", words(&done));
    let list: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    for s in list.as_array().expect("a list") {
        let name = s["column"].as_str().expect("a name");
        let keys = ["mean", "error", "deviation", "inefficiency", "drift", "drift_error"];
        for (k, key) in keys.iter().enumerate() {
            let (ours, theirs) = (s[key].as_f64().expect(key), reference[name][k].as_f64().expect(key));
            assert!((ours - theirs).abs() < 1e-8 * (1.0 + theirs.abs()), "{name} {key}: {ours}, NumPy {theirs}");
        }
    }
    let table = galamost(folder.path(), &["stats", "s.csv", "--columns", "x,y", "--skip", "auto"]);
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    assert_eq!(text.lines().count(), 3, "{text}");
    let few = galamost(folder.path(), &["stats", "s.csv", "--skip", "5999"]);
    assert_eq!(few.status.code(), Some(2));
}

const RUN: &str = r#"(
    seed: 3,
    initial: [ Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.5), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ], // <liquid>
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    analyzers: [
        Thermo(every: 5, file: "run.csv"),
        Rdf(every: 20, file: "rdf.csv", r_max: 2.5, bins: 50),
        Gsd(every: 200, file: "run.gsd"),
        Render(every: 200, file: "frame.{step}.png", size: "160x120"),
    ],
    checkpoint: (every: 200),
    stages: [ (name: "run", steps: 400, dt: 0.004) ],
)"#;

fn run_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("run.ron"), RUN).expect("written");
    folder
}

#[test]
fn a_report_has_everything_and_needs_nothing_from_outside() {
    let folder = run_folder();
    let run = |args: &[&str]| {
        let done = galamost(folder.path(), args);
        assert!(done.status.success(), "{args:?}: {}", words(&done));
    };
    run(&["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--steps", "200"]);
    run(&["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--resume"]);
    // a picture after a restart is the one of a run in one piece
    let whole = run_folder();
    let done = galamost(whole.path(), &["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--threads", "1"]);
    assert!(done.status.success(), "{}", words(&done));
    let last = |f: &Path| std::fs::read(f.join("frame.0000000400.png")).expect("a picture");
    assert!(last(folder.path()) == last(whole.path()), "pictures differ after a restart");
    run(&["report", "."]);
    let page = std::fs::read_to_string(folder.path().join("run.report.html")).expect("a page");
    for part in [
        "<h1>run.ron</h1>",
        "done",
        "2 runs",
        "<h2>Particles</h2>",
        "run.gsd: step 0",
        "run.gsd: step 400",
        "frame.0000000400.png",
        "<h2>Energy, temperature, pressure</h2>",
        "<td>kT</td>",
        "<h2>Observables</h2>",
        "rdf.csv (Rdf)",
        "<h2>Speed</h2>",
        "LennardJones",
        "neighbor list",
        "profiled steps",
        "<h2>Software</h2>",
        "<td>pairs</td>",
        "run.checkpoint",
        "<h2>Input</h2>",
        "<i>// &lt;liquid&gt;</i>",
        "<h2>Files</h2>",
        "CPU, ",
        "Mixed",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    assert_eq!(page.matches("data:image/png;base64,iVBOR").count(), 4);
    // nothing is fetched: the one address is the name of SVG
    let addresses: Vec<&str> = page.split("http").skip(1).map(|p| &p[..p.len().min(26)]).collect();
    assert!(addresses.iter().all(|a| a.starts_with("://www.w3.org/2000/svg")), "{addresses:?}");
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("@import"));
    // the record: two parts, the plugins' hashes, how it ended
    let text = std::fs::read_to_string(folder.path().join("run.run.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let runs = record["runs"].as_array().expect("parts");
    assert_eq!((runs.len(), runs[1]["from_step"].as_u64(), runs[1]["steps"].as_u64()), (2, Some(200), Some(200)));
    assert!(
        runs.iter().all(|r| r["status"] == "done" && r["plugins"][0]["hash"].as_str().is_some_and(|h| h.len() == 64))
    );
    // without a record, or with a table that is broken, there is still a page
    std::fs::remove_file(folder.path().join("run.run.json")).expect("removed");
    std::fs::write(folder.path().join("rdf.csv"), "r,A-A\n1,2\nx,3\n").expect("written");
    run(&["report", "run.ron", "--no-pictures", "--out", "other.html"]);
    let page = std::fs::read_to_string(folder.path().join("other.html")).expect("a page");
    assert!(page.contains("no record of this run") && page.contains("rdf.csv:3:1") && !page.contains("<img"));
}

#[test]
fn the_device_s_pictures_are_those_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    let folder = run_folder();
    let draw = |device: &str| {
        // positions are the same to the bit before the first step
        let args = ["--pipeline", "run.ron", "--quiet", "--steps", "0", "--device", device];
        let done = galamost(folder.path(), &args);
        assert!(done.status.success(), "{}", words(&done));
        std::fs::read(folder.path().join("frame.0000000000.png")).expect("a picture")
    };
    assert!(draw("cpu") == draw("emulated"));
}

#[test]
fn a_run_can_leave_no_record_and_a_failed_one_says_why() {
    let folder = run_folder();
    let args = ["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--no-record", "--steps", "10"];
    assert!(galamost(folder.path(), &args).status.success());
    assert!(!folder.path().join("run.run.json").exists());
    // a time step far too long
    let args = ["--pipeline", "run.ron", "--device", "cpu", "--quiet", "--set", "stages[0].dt=3.0"];
    assert_eq!(galamost(folder.path(), &args).status.code(), Some(1));
    let text = std::fs::read_to_string(folder.path().join("run.run.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let run = &record["runs"][0];
    assert_eq!(run["status"], "failed");
    assert!(run["error"]["message"].as_str().is_some_and(|m| m.contains("step")), "{run}");
}

#[test]
fn every_line_of_the_log_is_json_if_wanted() {
    let folder = run_folder();
    let lines = |args: &[&str], status: i32| -> Vec<serde_json::Value> {
        let done = galamost(folder.path(), args);
        assert_eq!(done.status.code(), Some(status), "{}", words(&done));
        let text = words(&done);
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
    };
    let all = lines(&["--pipeline", "run.ron", "--device", "cpu", "--log", "json"], 0);
    let of = |name: &str| all.iter().filter(|l| l["event"] == name).collect::<Vec<_>>();
    assert!(all.iter().all(|l| l["time"].as_str().is_some_and(|t| t.len() == 20) && l["event"].is_string()));
    assert_eq!(of("run")[0]["particles"], 216);
    assert_eq!((of("stage")[0]["steps"].as_u64(), of("checkpoint").len()), (Some(400), 2));
    assert!(of("summary")[0]["tps"].as_f64().is_some_and(|t| t > 0.0) && of("summary")[0]["kT"].is_f64());
    assert!(
        of("message")
            .iter()
            .any(|m| m["level"] == "info" && m["message"].as_str().is_some_and(|t| t.starts_with("device")))
    );
    assert_eq!((all[all.len() - 1]["event"].as_str(), all[all.len() - 1]["status"].as_u64()), (Some("end"), Some(0)));
    // mistakes of the pipeline have places; those of the command line are JSON too
    let all = lines(&["check", "run.ron", "--log=json", "--set", "integrators=[NoseHover(kT: 1.0, tau: 0.5)]"], 2);
    let error = all.iter().find(|l| l["event"] == "error").expect("an error");
    assert!(
        error["errors"][0]["line"].is_u64()
            && error["errors"][0]["message"].as_str().is_some_and(|m| m.contains("NoseHoover"))
    );
    let all = lines(&["--nonsense", "--log", "json"], 2);
    assert_eq!((all[0]["event"].as_str(), all[1]["event"].as_str()), (Some("error"), Some("end")));
}

#[test]
fn an_estimate_says_what_a_run_costs_and_leaves_nothing() {
    let folder = run_folder();
    let done = galamost(folder.path(), &["check", "run.ron", "--estimate", "--device", "cpu"]);
    assert!(done.status.success(), "{}", words(&done));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    for part in [
        "measured on CPU",
        "stage `run`:",
        "TPS",
        "neighbors:",
        "memory:",
        "Thermo every 5 steps",
        "extrapolated",
        "time:",
        "disk:",
        "checkpoints:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("not measured"), "{text}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").filter_map(Result::ok).map(|e| e.file_name()).collect();
    assert_eq!(left, ["run.ron"]);
    // what it says of the disk against what the run writes
    assert!(galamost(folder.path(), &["--pipeline", "run.ron", "--device", "cpu", "--quiet"]).status.success());
    let size = |e: &std::fs::DirEntry| e.metadata().map_or(0, |m| m.len());
    let outputs = |e: &std::fs::DirEntry| e.path().extension().is_some_and(|x| x == "csv" || x == "gsd" || x == "png");
    let written: u64 = std::fs::read_dir(folder.path())
        .expect("a folder")
        .filter_map(Result::ok)
        .filter(outputs)
        .map(|e| size(&e))
        .sum();
    let line = text.lines().find(|l| l.contains("disk:")).expect("the line");
    let mut parts = line.split_whitespace().skip(1);
    let number: f64 = parts.next().and_then(|n| n.parse().ok()).expect("a number");
    let unit = match parts.next() {
        Some("kB") => 1e3,
        Some("MB") => 1e6,
        _ => 1.0,
    };
    let told = number * unit;
    // positions compress differently when particles have moved, and energies have more digits than zeros
    assert!((told / written as f64 - 1.0).abs() < 0.35, "{told} told, {written} written");
}

#[test]
fn the_pictures_of_the_book_are_there() {
    let page = repository().join("docs/src/analysis-and-pictures.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let mut count = 0;
    let mut size = 0;
    for link in text.split("](").skip(1).filter_map(|p| p.split(')').next()).filter(|l| l.ends_with(".png")) {
        let path = page.parent().expect("a folder").join(link);
        let (w, h, _) = decoded(&path);
        assert!(w >= 200 && h >= 150, "{link}");
        size += path.metadata().expect("a file").len();
        count += 1;
    }
    assert!(count >= 4 && size < 1_500_000, "{count} pictures, {size} bytes");
}
