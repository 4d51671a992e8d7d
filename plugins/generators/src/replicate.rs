//! Replication of the system.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::{Array, Link, Values};
use galamost_plugin_api::tilt::{to_reduced, to_space};

/// Replicates the system `times` along each axis; the box length is multiplied accordingly.
///
/// Place it after the generators that create or read particles. Copies have the velocities, masses and arrays of the
/// original. The arrays `molecule` and `body` get distinct numbers in each copy. Tags are ordered by copy; copies are
/// counted along x first.
///
/// Bonds connect nearest images, also across the boundary between copies, so chains that cross the periodic boundary and
/// infinite networks stay intact. Every bond must therefore be shorter than half the box.
///
/// The replicated state is periodic, and a run keeps this symmetry until a thermostat or rounding breaks it. Add
/// `Velocities` to break it immediately.
///
/// ```ron
/// Replicate(times: [2, 2, 1])
/// ```
#[component(Generator, "Replicate")]
#[derive(Clone, Debug, Params)]
pub struct Replicate {
    /// Number of copies along each axis; 1 along the third axis of a two-dimensional system.
    times: Spanned<[u32; 3]>,
}

impl Generator for Replicate {
    const TRICLINIC: bool = true;

    fn generate(&mut self, _: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        let times = self.times.value;
        let fail = |message: String| Err(InputError::at(self.times.at, message).into());
        if s.is_empty() {
            return fail(
                "there are no particles to replicate; place Replicate after the generators that create them".into(),
            );
        }
        if times.contains(&0) {
            return fail(format!("times must be at least 1, found {times:?}"));
        }
        if s.dimensions == 2 && times[2] != 1 {
            return fail("the system is two-dimensional; the third number of `times` must be 1".into());
        }
        let copies = times.iter().fold(1, |n: u64, t| n.saturating_mul(u64::from(*t)));
        if copies.saturating_mul(s.len() as u64) > u64::from(u32::MAX / 2) {
            return fail(format!("{copies} copies of {} particles exceed the limit of {}", s.len(), u32::MAX / 2));
        }
        if let Err(message) = s.require((copies - 1) as f64 * s.len() as f64) {
            return fail(message);
        }
        *s = replicated(s, times);
        Ok(())
    }
}

/// Returns the index of the copy at `at`, wrapped periodically.
fn copy_index(times: [u32; 3], at: [i64; 3]) -> usize {
    let [x, y, z] = std::array::from_fn(|k| at[k].rem_euclid(i64::from(times[k])) as usize);
    (z * times[1] as usize + y) * times[0] as usize + x
}

/// Returns the reduced coordinates of all particles, which are their positions in a rectangular box.
fn reduced(s: &Snapshot) -> Vec<[f64; 3]> {
    s.position.iter().map(|r| to_reduced(*r, s.tilt)).collect()
}

/// Returns the replicated system.
fn replicated(s: &Snapshot, times: [u32; 3]) -> Snapshot {
    let (l, reduced) = (s.box_length, reduced(s));
    let offsets: Vec<[i64; 3]> = (0..times[2])
        .flat_map(|z| (0..times[1]).flat_map(move |y| (0..times[0]).map(move |x| [x, y, z].map(i64::from))))
        .collect();
    let mut out =
        Snapshot { position: vec![].into(), image: vec![].into(), bonds: vec![], angles: vec![], ..s.clone() };
    (out.dihedrals, out.impropers) = (vec![], vec![]);
    out.box_length = std::array::from_fn(|k| l[k] * f64::from(times[k]));
    // reduced coordinates are replicated as positions in a rectangular box
    for offset in &offsets {
        for (x, image) in reduced.iter().zip(&s.image) {
            // the copy that the image of this particle lies in, and its position and image in the large box
            let copy: [i64; 3] = std::array::from_fn(|k| offset[k] + i64::from(image[k]));
            let inside: [i64; 3] = std::array::from_fn(|k| copy[k].rem_euclid(i64::from(times[k])));
            let shift = |k: usize| (inside[k] as f64 + 0.5) * l[k] - 0.5 * out.box_length[k];
            out.position.push(to_space(std::array::from_fn(|k| x[k] + shift(k)), s.tilt));
            out.image.push(std::array::from_fn(|k| copy[k].div_euclid(i64::from(times[k])) as i32));
        }
    }
    let copies = offsets.len();
    (out.velocity, out.type_id, out.mass) =
        (s.velocity.repeat(copies).into(), s.type_id.repeat(copies).into(), s.mass.repeat(copies).into());
    for (name, array) in &mut out.arrays {
        *array = repeated(array, copies, matches!(name.as_str(), "molecule" | "body"));
    }
    for offset in &offsets {
        out.bonds.extend(s.bonds.iter().map(|b| replicated_link(s, &reduced, b, *offset, times)));
        out.angles.extend(s.angles.iter().map(|a| replicated_link(s, &reduced, a, *offset, times)));
        out.dihedrals.extend(s.dihedrals.iter().map(|d| replicated_link(s, &reduced, d, *offset, times)));
        out.impropers.extend(s.impropers.iter().map(|i| replicated_link(s, &reduced, i, *offset, times)));
    }
    out
}

/// Returns the array of all copies. If the values are `ids`, each copy gets distinct ones; negative ids are kept.
fn repeated(a: &Array, copies: usize, ids: bool) -> Array {
    let values = match &a.values {
        Values::Real(v) => Values::Real(v.repeat(copies)),
        Values::Int(v) if ids => {
            let count = v.iter().copied().max().unwrap_or(-1) + 1;
            let copied = |copy: i32| v.iter().map(move |x| if *x < 0 { *x } else { x + copy * count });
            Values::Int((0..copies as i32).flat_map(copied).collect())
        }
        Values::Int(v) => Values::Int(v.repeat(copies)),
    };
    Array { width: a.width, values }
}

/// Returns the copy of a link whose first member is in the copy `offset`; each further member is the nearest image to the
/// member before it.
fn replicated_link<const N: usize>(
    s: &Snapshot,
    reduced: &[[f64; 3]],
    link: &Link<N>,
    offset: [i64; 3],
    times: [u32; 3],
) -> Link<N> {
    let n = s.len();
    let mut copy = offset;
    let mut last = link.tags[0] as usize;
    let tags = link.tags.map(|tag| {
        let (i, j) = (last, tag as usize);
        last = j;
        // number of boxes between the image of j that is nearest to i and the image of j in the copy of i
        copy = std::array::from_fn(|k| match s.box_length[k] {
            0.0 => copy[k],
            l => {
                let images = ((reduced[i][k] - reduced[j][k]) / l).round() as i64;
                copy[k] + images + i64::from(s.image[i][k]) - i64::from(s.image[j][k])
            }
        });
        (copy_index(times, copy) * n + j) as u32
    });
    Link { kind: link.kind, tags }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each bond keeps its length, for chains across the boundary with and without images.
    #[test]
    fn links_keep_their_lengths() {
        let mut s = Snapshot { dimensions: 3, box_length: [4.0, 5.0, 6.0], ..Snapshot::default() };
        let a = s.type_id("A");
        (s.bond_types, s.angle_types) = (vec!["A-A".into()], vec!["A-A-A".into()]);
        // a chain along x that closes on itself across the boundary, and one along y with images
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
        let out = replicated(&s, times);
        assert_eq!(out.len(), 6 * 13);
        assert_eq!(out.box_length, [8.0, 15.0, 6.0]);
        out.check().expect("a valid state");
        let distance = |s: &Snapshot, i: u32, j: u32| -> f64 {
            let d = |k: usize| {
                let d = s.position[i as usize][k] - s.position[j as usize][k];
                d - s.box_length[k] * (d / s.box_length[k]).round()
            };
            (0..3).map(|k| d(k) * d(k)).sum::<f64>().sqrt()
        };
        for (k, b) in out.bonds.iter().enumerate() {
            let [i, j] = s.bonds[k % s.bonds.len()].tags;
            assert!((distance(&out, b.tags[0], b.tags[1]) - distance(&s, i, j)).abs() < 1e-12, "bond {k}");
        }
        for a in &out.angles {
            assert!((distance(&out, a.tags[0], a.tags[2]) - 1.8).abs() < 1e-12);
        }
        // chains with images stay intact: the unwrapped end-to-end distance does not change
        let unwrapped = |s: &Snapshot, i: usize| s.position[i][1] + s.box_length[1] * f64::from(s.image[i][1]);
        for copy in 0..6 {
            let (head, tail) = (copy * 13 + 4, copy * 13 + 12);
            assert!((unwrapped(&out, tail) - unwrapped(&out, head) - 7.2).abs() < 1e-12);
        }
        let Values::Int(m) = &out.arrays["molecule"].values else { panic!("not integers") };
        assert_eq!((m[0], m[12], m[13], m[77]), (0, 1, 2, 11));
        // every particle keeps its number of bonds
        let mut count = vec![0; out.len()];
        out.bonds.iter().flat_map(|b| b.tags).for_each(|t| count[t as usize] += 1);
        assert!(count.iter().enumerate().all(|(i, c)| *c == if matches!(i % 13, 4 | 12) { 1 } else { 2 }));
    }
}
