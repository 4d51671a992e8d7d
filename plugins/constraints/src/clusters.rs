//! Clusters: particles that constraints connect.

use galamost_plugin_api::component::Constraint;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of constraints of a cluster with rings whose independence is checked.
const CHECKED: usize = 1_000;

/// Relative rounding of a sum of lengths. Particles on a line depend on each other, which is another error.
const ROUNDING: f64 = 1e-9;

/// Smallest pivot of independent constraints, relative to that of a single one.
const PIVOT: f64 = 1e-6;

/// All clusters of a system. Each is a range of members and a range of pairs.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    /// First member and first pair of each cluster, and the ends of the last one.
    pub starts: Vec<[u32; 2]>,
    /// Tag of each member, and the number of its predecessor in the cluster. Constraints connect both; the first member is its
    /// own predecessor.
    pub members: Vec<[u32; 2]>,
    /// Members of each constraint, as numbers in the cluster.
    pub pairs: Vec<[u32; 2]>,
    /// Square of the length of each constraint.
    pub squares: Vec<f64>,
}

impl Clusters {
    /// Finds the clusters. `length` returns the length of a bond type.
    ///
    /// # Errors
    /// Returns a message if constraints depend on each other.
    pub fn find(constraints: &[Constraint], length: impl Fn(u32) -> f64) -> Result<Self, String> {
        let mut neighbors: BTreeMap<u32, BTreeSet<(u32, usize)>> = BTreeMap::new();
        for (k, c) in constraints.iter().enumerate() {
            let [a, b] = c.tags;
            neighbors.entry(a).or_default().insert((b, k));
            neighbors.entry(b).or_default().insert((a, k));
        }
        let mut all = Self { starts: vec![[0, 0]], ..Self::default() };
        let mut number: BTreeMap<u32, u32> = BTreeMap::new();
        for first in neighbors.keys() {
            if number.contains_key(first) {
                continue;
            }
            let (begin, first_pair) = (all.members.len(), all.pairs.len());
            number.insert(*first, 0);
            all.members.push([*first, 0]);
            let mut pairs: BTreeMap<[u32; 2], Vec<usize>> = BTreeMap::new();
            let mut next = begin;
            while next < all.members.len() {
                let (tag, own) = (all.members[next][0], (next - begin) as u32);
                for (other, k) in &neighbors[&tag] {
                    let at = *number.entry(*other).or_insert_with(|| {
                        all.members.push([*other, own]);
                        (all.members.len() - 1 - begin) as u32
                    });
                    // each constraint once, from its later member, in the order of these
                    if at < own {
                        pairs.entry([own, at]).or_default().push(*k);
                    }
                }
                next += 1;
            }
            let mut used = vec![];
            for ([b, a], of_pair) in pairs {
                for k in of_pair {
                    all.pairs.push([a, b]);
                    all.squares.push(length(constraints[k].kind).powi(2));
                    used.push(constraints[k]);
                }
            }
            contradictions(&used, &length)?;
            let n = all.pairs.len() - first_pair;
            if n >= all.members.len() - begin && n <= CHECKED {
                independent(&used)?;
            }
            all.starts.push([all.members.len() as u32, all.pairs.len() as u32]);
        }
        Ok(all)
    }

    /// Returns the number of clusters.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

/// Clusters that kernels handle side by side: the threads of a warp.
pub const LANES: usize = 32;

/// The clusters for kernels. Each group of 32 has room for as many members and pairs as its largest cluster; number `e` of cluster
/// `c` is at `32 (32 first + e) + c % 32` of an array with one number for each member or pair.
#[derive(Clone, Debug, Default)]
pub struct Interleaved {
    /// First member and first pair of each group.
    pub starts: Vec<[u32; 2]>,
    /// Number of members and pairs of each cluster.
    pub sizes: Vec<[u32; 2]>,
    /// As in [`Clusters`], with two numbers for each.
    pub members: Vec<u32>,
    pub pairs: Vec<u32>,
    pub squares: Vec<f64>,
}

impl Interleaved {
    /// Interleaves the clusters.
    pub fn new(clusters: &Clusters) -> Self {
        let mut all = Self::default();
        let ranges: Vec<&[[u32; 2]]> = clusters.starts.windows(2).collect();
        for group in ranges.chunks(LANES) {
            let (members, pairs) = (all.members.len() / 2, all.squares.len());
            all.starts.push([members, pairs].map(|n| (n / LANES) as u32));
            let size = |r: &&[[u32; 2]], k: usize| (r[1][k] - r[0][k]) as usize;
            let largest = |k: usize| group.iter().map(|r| size(r, k)).max().unwrap_or(0) * LANES;
            all.members.resize(2 * (members + largest(0)), 0);
            all.pairs.resize(2 * (pairs + largest(1)), 0);
            all.squares.resize(pairs + largest(1), 0.0);
            for (lane, r) in group.iter().enumerate() {
                let [m0, k0] = r[0].map(|x| x as usize);
                all.sizes.push([0, 1].map(|k| size(r, k) as u32));
                for (e, x) in clusters.members[m0..m0 + size(r, 0)].as_flattened().iter().enumerate() {
                    all.members[2 * members + LANES * e + lane] = *x;
                }
                for (e, x) in clusters.pairs[k0..k0 + size(r, 1)].as_flattened().iter().enumerate() {
                    all.pairs[2 * pairs + LANES * e + lane] = *x;
                }
                for (e, x) in clusters.squares[k0..k0 + size(r, 1)].iter().enumerate() {
                    all.squares[pairs + LANES * e + lane] = *x;
                }
            }
        }
        all
    }
}

/// Checks that no pair has two constraints, and that triangles of constraints exist.
fn contradictions(constraints: &[Constraint], length: impl Fn(u32) -> f64) -> Result<(), String> {
    let mut lengths: BTreeMap<[u32; 2], f64> = BTreeMap::new();
    let mut later: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for c in constraints {
        let [a, b] = [c.tags[0].min(c.tags[1]), c.tags[0].max(c.tags[1])];
        let d = length(c.kind);
        if let Some(other) = lengths.insert([a, b], d) {
            return Err(format!(
                "the particles {a} and {b} have two constraints, with the lengths {other} and {d}; remove one of these bonds"
            ));
        }
        later.entry(a).or_default().push(b);
    }
    for ([a, b], ab) in &lengths {
        for c in later.get(b).into_iter().flatten() {
            let (Some(ac), Some(bc)) = (lengths.get(&[*a, *c]), lengths.get(&[*b, *c])) else { continue };
            let longest = ab.max(*ac).max(*bc);
            if longest > (1.0 + ROUNDING) * (ab + ac + bc - longest) {
                return Err(format!(
                    "the constraints of the particles {a}, {b} and {c} contradict each other: no triangle has the sides {ab} ({a}–{b}), \
                     {ac} ({a}–{c}) and {bc} ({b}–{c}); the longest must be below the sum of the others"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the directions of the constraints of a cluster are independent, by the Cholesky decomposition of their matrix
/// for equal masses.
fn independent(constraints: &[Constraint]) -> Result<(), String> {
    let unit: Vec<[f64; 3]> = constraints
        .iter()
        .map(|c| {
            let r = c.r.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            c.r.map(|x| x / r)
        })
        .collect();
    let element = |k: usize, l: usize| {
        let sign = |t: u32, c: &Constraint| f64::from(i8::from(c.tags[0] == t)) - f64::from(i8::from(c.tags[1] == t));
        let shared: f64 =
            constraints[k].tags.iter().map(|t| sign(*t, &constraints[k]) * sign(*t, &constraints[l])).sum();
        shared * (0..3).map(|x| unit[k][x] * unit[l][x]).sum::<f64>()
    };
    let n = constraints.len();
    let mut factor = vec![vec![0.0; n]; n];
    for k in 0..n {
        for l in 0..=k {
            let done: f64 = (0..l).map(|j| factor[k][j] * factor[l][j]).sum();
            let rest = element(k, l) - done;
            if l < k {
                factor[k][l] = rest / factor[l][l];
            } else if rest < PIVOT {
                let [a, b] = constraints[k].tags;
                return Err(format!(
                    "the constraint of the particles {a} and {b} depends on others: the {n} constraints of its cluster are too \
                     many, or particles lie on a line or in a plane; leave some out, or use virtual sites or a rigid body"
                ));
            } else {
                factor[k][k] = rest.sqrt();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint(a: u32, b: u32, r: [f64; 3]) -> Constraint {
        Constraint { tags: [a, b], kind: 0, r }
    }

    #[test]
    fn clusters_are_walked_along_their_chains() {
        let r = [1.0, 0.0, 0.0];
        let all = [constraint(7, 3, r), constraint(9, 7, r), constraint(1, 2, r)];
        let found = Clusters::find(&all, |_| 2.0).unwrap_or_default();
        assert_eq!(found.len(), 2);
        assert_eq!(found.members, [[1, 0], [2, 0], [3, 0], [7, 0], [9, 1]]);
        assert_eq!(found.starts, [[0, 0], [2, 1], [5, 3]]);
        assert_eq!(found.pairs, [[0, 1], [0, 1], [1, 2]]);
        assert_eq!(found.squares, [4.0; 3]);
    }

    #[test]
    fn kernels_have_the_same_clusters() {
        // forty chains of two to four particles
        let mut constraints = vec![];
        for c in 0..40 {
            constraints.extend((0..1 + c % 3).map(|k| constraint(4 * c + k, 4 * c + k + 1, [1.0, 0.0, 0.0])));
        }
        let found = Clusters::find(&constraints, |_| 2.0).unwrap_or_default();
        let all = Interleaved::new(&found);
        assert_eq!((all.starts.len(), all.members.len(), all.squares.len()), (2, 2 * 2 * 4 * 32, 2 * 3 * 32));
        for c in 0..40 {
            let [[m0, k0], [m1, k1]] = [found.starts[c], found.starts[c + 1]].map(|s| s.map(|x| x as usize));
            assert_eq!(all.sizes[c], [m1 - m0, k1 - k0].map(|n| n as u32));
            let [first, first_pair] = all.starts[c / 32].map(|x| x as usize * 32);
            for (e, x) in found.members[m0..m1].as_flattened().iter().enumerate() {
                assert_eq!(all.members[2 * first + 32 * e + c % 32], *x);
            }
            for (e, x) in found.pairs[k0..k1].as_flattened().iter().enumerate() {
                assert_eq!(all.pairs[2 * first_pair + 32 * e + c % 32], *x);
            }
            assert!((0..k1 - k0).all(|e| all.squares[first_pair + 32 * e + c % 32] == 4.0));
        }
    }

    #[test]
    fn only_dependent_constraints_are_refused() {
        let triangle = |x: f64, y: f64| {
            [constraint(0, 1, [1.0, 0.0, 0.0]), constraint(1, 2, [x - 1.0, y, 0.0]), constraint(0, 2, [x, y, 0.0])]
        };
        assert!(Clusters::find(&triangle(0.5, 0.8), |_| 1.0).is_ok());
        let message = Clusters::find(&triangle(2.0, 0.0), |_| 1.0).err().unwrap_or_default();
        assert!(message.contains("constraint of the particles"), "{message}");
        // a square with both diagonals has one constraint too many in its plane
        let corner = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
        let edge = |a: usize, b: usize| {
            constraint(a as u32, b as u32, [corner[a][0] - corner[b][0], corner[a][1] - corner[b][1], 0.0])
        };
        let mut square = vec![edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 0), edge(0, 2)];
        assert!(Clusters::find(&square, |_| 1.0).is_ok());
        square.push(edge(1, 3));
        assert!(Clusters::find(&square, |_| 1.0).is_err());
    }

    #[test]
    fn contradicting_constraints_are_refused() {
        let bond = |a: u32, b: u32, kind: u32| Constraint { kind, ..constraint(a, b, [1.0, 0.0, 0.0]) };
        let lengths = |kind: u32| [1.0, 1.5, 2.0, 2.5][kind as usize];
        let message = |all: &[Constraint]| Clusters::find(all, lengths).err().unwrap_or_default();
        let twice = message(&[bond(5, 3, 0), bond(3, 5, 1)]);
        assert!(twice.starts_with("the particles 3 and 5 have two constraints, with the lengths 1 and 1.5"), "{twice}");
        let triangle = message(&[bond(7, 2, 0), bond(4, 7, 0), bond(2, 4, 3), bond(7, 9, 0)]);
        let sides = "no triangle has the sides 2.5 (2–4), 1 (2–7) and 1 (4–7)";
        assert!(triangle.contains(sides), "{triangle}");
        assert!(message(&[bond(0, 1, 0), bond(1, 2, 0), bond(0, 2, 2)]).contains("depends on others"));
        // a triangle of other corners is not one
        assert!(message(&[bond(0, 1, 0), bond(1, 2, 0), bond(2, 3, 3)]).is_empty());
    }
}
