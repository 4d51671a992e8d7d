//! Copies of the system side by side.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::{Array, Link, Values};

/// Copies the state so far side by side: `times` along each axis, in a box that is as many times longer.
///
/// Copies have the velocities, masses and arrays of the original; numbers of molecules and bodies (arrays `molecule` and `body`) are made
/// different in each copy. A bond joins what is nearest to each other, through the borders of copies too: chains that go through the
/// boundary, and networks without an end, stay what they are. So a bond must be shorter than half the box. Tags: the first copy's
/// particles, then the second's; copies are counted along x first.
///
/// A run from such a state keeps the symmetry until thermostats or rounding break it: new `Velocities` break it at once.
///
/// ```ron
/// Replicate(times: [2, 2, 1])
/// ```
#[component(Generator, "Replicate")]
#[derive(Clone, Debug, Params)]
pub struct Replicate {
    /// Copies along each axis; 1 along the third axis of a two-dimensional system.
    times: Spanned<[u32; 3]>,
}

impl Generator for Replicate {
    fn generate(&mut self, _: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        let times = self.times.value;
        let fail = |message: String| Err(InputError::at(self.times.at, message).into());
        if s.is_empty() {
            return fail("there is nothing to copy: generators that make or read particles come first".into());
        }
        if times.contains(&0) {
            return fail(format!("times must be at least 1, found {times:?}"));
        }
        if s.dimensions == 2 && times[2] != 1 {
            return fail("the system is two-dimensional: there is one copy along the third axis".into());
        }
        let copies: u64 = times.iter().map(|t| u64::from(*t)).product();
        if copies.saturating_mul(s.len() as u64) > u64::from(u32::MAX / 2) {
            return fail(format!(
                "{copies} copies of {} particles are more than the {} supported",
                s.len(),
                u32::MAX / 2
            ));
        }
        *s = copied(s, times);
        Ok(())
    }
}

/// The copy at a place of the lattice of copies, or beyond it.
fn number(times: [u32; 3], at: [i64; 3]) -> usize {
    let [x, y, z] = std::array::from_fn(|k| at[k].rem_euclid(i64::from(times[k])) as usize);
    (z * times[1] as usize + y) * times[0] as usize + x
}

fn copied(s: &Snapshot, times: [u32; 3]) -> Snapshot {
    let l = s.box_length;
    let places: Vec<[i64; 3]> = (0..times[2])
        .flat_map(|z| (0..times[1]).flat_map(move |y| (0..times[0]).map(move |x| [x, y, z].map(i64::from))))
        .collect();
    let mut out =
        Snapshot { position: vec![], image: vec![], bonds: vec![], angles: vec![], dihedrals: vec![], ..s.clone() };
    out.box_length = std::array::from_fn(|k| l[k] * f64::from(times[k]));
    for place in &places {
        for (x, image) in s.position.iter().zip(&s.image) {
            // the cell of the copy that this particle is in, as its image says, and how often that is around the large box
            let cell: [i64; 3] = std::array::from_fn(|k| place[k] + i64::from(image[k]));
            let inside: [i64; 3] = std::array::from_fn(|k| cell[k].rem_euclid(i64::from(times[k])));
            let shift = |k: usize| (inside[k] as f64 + 0.5) * l[k] - 0.5 * out.box_length[k];
            out.position.push(std::array::from_fn(|k| x[k] + shift(k)));
            out.image.push(std::array::from_fn(|k| cell[k].div_euclid(i64::from(times[k])) as i32));
        }
    }
    let again = places.len();
    (out.velocity, out.type_id, out.mass) = (s.velocity.repeat(again), s.type_id.repeat(again), s.mass.repeat(again));
    for (name, array) in &mut out.arrays {
        *array = repeated(array, again, matches!(name.as_str(), "molecule" | "body"));
    }
    for place in &places {
        out.bonds.extend(s.bonds.iter().map(|b| link(s, b, *place, times)));
        out.angles.extend(s.angles.iter().map(|a| link(s, a, *place, times)));
        out.dihedrals.extend(s.dihedrals.iter().map(|d| link(s, d, *place, times)));
    }
    out
}

/// An array of all copies; where values are `numbers` of things, every copy has its own.
fn repeated(a: &Array, copies: usize, numbers: bool) -> Array {
    let values = match &a.values {
        Values::Real(v) => Values::Real(v.repeat(copies)),
        Values::Int(v) if numbers => {
            let more = v.iter().copied().max().unwrap_or(-1) + 1;
            let of = |copy: i32| v.iter().map(move |x| if *x < 0 { *x } else { x + copy * more });
            Values::Int((0..copies as i32).flat_map(of).collect())
        }
        Values::Int(v) => Values::Int(v.repeat(copies)),
    };
    Array { width: a.width, values }
}

/// The same link in a copy: its first member there, and each further one the copy that is nearest to the one before it.
fn link<const N: usize>(s: &Snapshot, of: &Link<N>, place: [i64; 3], times: [u32; 3]) -> Link<N> {
    let n = s.len();
    let mut cell = place;
    let mut before = of.tags[0] as usize;
    let tags = of.tags.map(|tag| {
        let (i, j) = (before, tag as usize);
        before = j;
        // unwrapped, j is so many boxes away from the neighbor of i
        cell = std::array::from_fn(|k| match s.box_length[k] {
            0.0 => cell[k],
            l => {
                let around = ((s.position[i][k] - s.position[j][k]) / l).round() as i64;
                cell[k] + around + i64::from(s.image[i][k]) - i64::from(s.image[j][k])
            }
        });
        (number(times, cell) * n + j) as u32
    });
    Link { kind: of.kind, tags }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains through the boundary, with images and without: each bond is as long as it was.
    #[test]
    fn links_stay_as_long_as_they_were() {
        let mut s = Snapshot { dimensions: 3, box_length: [4.0, 5.0, 6.0], ..Snapshot::default() };
        let a = s.type_id("A");
        (s.bond_types, s.angle_types) = (vec!["A-A".into()], vec!["A-A-A".into()]);
        // a chain along x that closes on itself through the boundary, and one along y with images
        let first: Vec<u32> = (0..4).map(|k| s.push(a, [f64::from(k) - 1.5, 0.0, 0.0])).collect();
        let second: Vec<u32> = (0..9)
            .map(|k| {
                let y = f64::from(k) * 0.9;
                let image = ((y + 2.5) / 5.0).floor();
                let tag = s.push(a, [1.0, y - 5.0 * image, 2.9]);
                s.image[tag as usize][1] = image as i32;
                tag
            })
            .collect();
        s.bonds.extend((0..4).map(|k| Link { kind: 0, tags: [first[k], first[(k + 1) % 4]] }));
        s.bonds.extend(second.windows(2).map(|w| Link { kind: 0, tags: [w[0], w[1]] }));
        s.angles.extend(second.windows(3).map(|w| Link { kind: 0, tags: [w[0], w[1], w[2]] }));
        let molecule = Values::Int((0..13).map(|k| if k < 4 { 0 } else { 1 }).collect());
        s.arrays.insert("molecule".into(), Array { width: 1, values: molecule });
        let times = [2, 3, 1];
        let out = copied(&s, times);
        assert_eq!(out.len(), 6 * 13);
        assert_eq!(out.box_length, [8.0, 15.0, 6.0]);
        out.check().expect("sound");
        let apart = |s: &Snapshot, i: u32, j: u32| -> f64 {
            let d = |k: usize| {
                let d = s.position[i as usize][k] - s.position[j as usize][k];
                d - s.box_length[k] * (d / s.box_length[k]).round()
            };
            (0..3).map(|k| d(k) * d(k)).sum::<f64>().sqrt()
        };
        for (k, b) in out.bonds.iter().enumerate() {
            let [i, j] = s.bonds[k % s.bonds.len()].tags;
            assert!((apart(&out, b.tags[0], b.tags[1]) - apart(&s, i, j)).abs() < 1e-12, "bond {k}");
        }
        for a in &out.angles {
            assert!((apart(&out, a.tags[0], a.tags[2]) - 1.8).abs() < 1e-12);
        }
        // chains with images stay whole: unwrapped, their ends are as far apart as they were
        let unwrapped = |s: &Snapshot, i: usize| s.position[i][1] + s.box_length[1] * f64::from(s.image[i][1]);
        for copy in 0..6 {
            let (head, tail) = (copy * 13 + 4, copy * 13 + 12);
            assert!((unwrapped(&out, tail) - unwrapped(&out, head) - 7.2).abs() < 1e-12);
        }
        let Values::Int(m) = &out.arrays["molecule"].values else { panic!("whole numbers") };
        assert_eq!((m[0], m[12], m[13], m[77]), (0, 1, 2, 11));
        // every particle has as many bonds as it had
        let mut count = vec![0; out.len()];
        out.bonds.iter().flat_map(|b| b.tags).for_each(|t| count[t as usize] += 1);
        assert!(count.iter().enumerate().all(|(i, c)| *c == if matches!(i % 13, 4 | 12) { 1 } else { 2 }));
    }
}
