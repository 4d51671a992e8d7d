//! Pictures of particles.

use super::decoded;
use galamost_pictures::{ColorBy, Direction, Glyph, Image, Rgb, Slice, View, one_thread};
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tests::{galamost, repository, words};

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

#[test]
fn a_sphere_is_drawn_as_a_disc_of_its_color() {
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
    // half a pixel of the radius of 188 pixels is 0.5 % of the area
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
#[ignore = "3 seconds"]
fn near_particles_hide_far_ones() {
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
#[ignore = "3 seconds"]
fn translucent_particles_show_what_is_behind_them() {
    let mut s = empty();
    let (a, b) = (s.type_id("A"), s.type_id("B"));
    s.push(a, [0.0, 0.0, 2.0]);
    s.push(b, [0.0, 0.0, -2.0]);
    let colors = vec![("A".into(), Rgb([220, 30, 30])), ("B".into(), Rgb([30, 60, 220]))];
    let radius = vec![(Some("A".into()), 2.0), (Some("B".into()), 1.0)];
    let opaque = View { colors, radius, edges: false, ..above() };
    let view = View { translucent: vec!["A".into()], ..opaque.clone() };
    assert!(pixels(&draw(&opaque, &s), bluish).is_empty());
    let image = draw(&view, &s);
    // the far ball is seen through the near one, and the near one tints the background around it
    let blue = pixels(&image, bluish);
    let ball = draw(&View { hide: vec!["A".into()], ..view.clone() }, &s);
    assert!(blue.len() > 1000, "{}", blue.len());
    let tint = image.at(80, 200);
    assert!(tint[0] > 225 && tint[1] < 245 && tint[1] > 150 && tint[2] == tint[1], "{tint:?}");
    assert_eq!(ball.at(0, 0), image.at(0, 0));
    // behind an opaque ball it is not seen
    let below = View { direction: Some(Direction { azimuth: -90.0, elevation: -90.0 }), ..view.clone() };
    let (with, without) = (draw(&below, &s), draw(&View { translucent: vec![], ..below.clone() }, &s));
    assert_eq!(with.at(200, 200), without.at(200, 200));
    // where two translucent balls overlap, only the nearer one is seen
    let both = View { translucent: vec!["A".into(), "B".into()], ..view };
    let image = draw(&both, &s);
    let alone = draw(&View { hide: vec!["B".into()], ..both.clone() }, &s);
    assert!([[80, 200], [200, 200]].iter().all(|[x, y]| image.at(*x, *y) == alone.at(*x, *y)));
    assert!(pixels(&image, bluish).is_empty());
}

#[test]
fn the_scale_bar_has_a_round_length_in_the_scale_of_the_picture() {
    let mut s = empty();
    let a = s.type_id("A");
    s.push(a, [-3.0, 0.0, 0.0]);
    s.push(a, [3.0, 0.0, 0.0]);
    let colors = vec![("A".into(), Rgb([220, 30, 30]))];
    for (size, length) in [([400, 400], 2.0), ([900, 400], 5.0), ([1200, 1200], 2.0)] {
        let view =
            View { size, colors: colors.clone(), radius: vec![(None, 0.5)], scale_bar: true, edges: false, ..above() };
        let view = View { framing: Some([10.0; 3]), ..view };
        let image = draw(&view, &s);
        assert_eq!([image.width, image.height], size);
        let (left, right): (Vec<_>, Vec<_>) =
            pixels(&image, reddish).into_iter().partition(|p| p[0] < 0.5 * f64::from(size[0]));
        let mean = |list: &[[f64; 2]]| list.iter().map(|p| p[0]).sum::<f64>() / list.len() as f64;
        let scale = (mean(&right) - mean(&left)) / 6.0;
        // the row of the bar: the longest run of dark pixels
        let dark = |x: u32, y: u32| image.at(x, y).iter().all(|c| *c < 100);
        let run = |y: u32| {
            let lengths = (0..size[0]).scan(0, |n, x| {
                *n = if dark(x, y) { *n + 1 } else { 0 };
                Some(*n)
            });
            lengths.max().unwrap_or(0)
        };
        let bar = f64::from((0..image.height).map(run).max().expect("rows"));
        assert!((bar / scale - length).abs() < 4.0 / scale, "{size:?}: {bar} pixels, {scale} pixels per length");
        // with a key, the size stays the same
        let with_key = draw(&View { key: true, ..view.clone() }, &s);
        assert_eq!([with_key.width, with_key.height], size);
    }
    let words = View { size: [40, 40], scale_bar: true, ..above() }.picture(&s, &one_thread).expect_err("too small");
    assert!(words.contains("no room for a scale bar"), "{words}");
}

#[test]
fn frames_of_a_movie_have_one_camera() {
    let mut s = empty();
    let a = s.type_id("A");
    s.push(a, [2.0, 0.0, 0.0]);
    let view = View { radius: vec![(None, 0.5)], colors: vec![("A".into(), Rgb([220, 30, 30]))], ..above() };
    let small = Snapshot { box_length: [8.0; 3], ..s.clone() };
    let place = |view: &View, s: &Snapshot| {
        let disc = pixels(&draw(view, s), reddish);
        disc.iter().map(|p| p[0]).sum::<f64>() / disc.len() as f64
    };
    assert!((place(&view, &s) - place(&view, &small)).abs() > 5.0);
    let framed = View { framing: Some([10.0; 3]), ..view };
    assert!((place(&framed, &s) - place(&framed, &small)).abs() < 0.5);
}

#[test]
fn bonds_across_the_boundary_are_not_drawn() {
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
fn molecules_across_the_boundary_are_drawn_whole_on_request() {
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
#[ignore = "5 seconds"]
fn a_key_explains_the_colors() {
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
    // one pixel of the shorter edge, some 100 pixels
    assert!((extent(0) / extent(1) - 3.0).abs() < 0.1, "{} × {}", extent(0), extent(1));
    s.arrays.clear();
    let words = rod.picture(&s, &one_thread).expect_err("no axes");
    assert!(words.contains("needs orientations"), "{words}");
}

#[test]
fn properties_become_colors_and_unknown_names_are_reported() {
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

/// A slice without particles is a picture of the box, or of the background alone.
#[test]
fn an_empty_slice_is_an_empty_picture() {
    let mut s = empty();
    let a = s.type_id("A");
    s.push(a, [0.0, 0.0, 2.0]);
    let slice = |min, max| View { slices: vec![Slice { axis: 2, min, max }], key: true, scale_bar: true, ..above() };
    let (view, full) = (slice(-5.0, -4.0), slice(1.0, 3.0));
    assert!(!view.shows_particles(&s) && full.shows_particles(&s));
    let is_drawn = |c: [u8; 3]| c.iter().any(|x| *x < 240);
    let upper = |v: &View| pixels(&draw(v, &s), is_drawn).iter().filter(|p| p[1] < 300.0).count();
    // the outline of the box, or nothing above the scale bar
    assert!(upper(&view) > 100);
    for view in [View { edges: false, ..view.clone() }, View { edges: false, whole: true, ..view.clone() }] {
        assert_eq!(upper(&view), 0);
        let perspective = View { perspective: Some(true), color: ColorBy::Property("x".into()), key: false, ..view };
        assert_eq!(upper(&perspective), 0);
        assert_eq!(perspective.color_range(&s), Ok(None));
    }
}

#[test]
fn pictures_do_not_depend_on_the_number_of_threads() {
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

#[test]
fn the_pictures_of_the_book_exist() {
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
