//! The test system of all components.

use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};

/// Returns the standard system; see the documentation of this module's parent.
pub fn standard_system() -> Snapshot {
    const SIDE: u32 = 10;
    let a = (1.0 / 0.7f64).cbrt();
    let l = a * f64::from(SIDE);
    let mut s = Snapshot { dimensions: 3, box_length: [l; 3], ..Snapshot::default() };
    let types = [s.type_id("A"), s.type_id("B")];
    let names = |w: usize| (0..=w).map(|b| [vec!["A"; w - b], vec!["B"; b]].concat().join("-")).collect::<Vec<_>>();
    (s.bond_types, s.angle_types) = (names(2), names(3));
    (s.dihedral_types, s.improper_types) = (names(4), names(4));
    let key = RandomKey::new(2013, 2197);
    let uniform = |word: u32| (f64::from(word) + 0.5) / 4_294_967_296.0 - 0.5;
    for i in 0..SIDE.pow(3) {
        let site = [i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE];
        let (shift, push) = (key.single(0, i, 0), key.single(0, i, 1));
        let particle_type = types[(key.single(0, i, 2)[0] & 1) as usize];
        s.push(
            particle_type,
            std::array::from_fn(|k| (f64::from(site[k]) + 0.5 + 0.3 * uniform(shift[k])) * a - 0.5 * l),
        );
        s.velocity[i as usize] = std::array::from_fn(|k| 3.0 * uniform(push[k]));
        s.mass[i as usize] = 1.0 + f64::from(push[3] & 1);
        // number of B among a particle of a chain and its `back` predecessors
        let number_of_b = |s: &Snapshot, back: u32| (i - back..=i).map(|k| s.type_id[k as usize]).sum();
        if i % SIDE >= 1 {
            s.bonds.push(Link { kind: number_of_b(&s, 1), tags: [i - 1, i] });
        }
        if i % SIDE >= 2 {
            s.angles.push(Link { kind: number_of_b(&s, 2), tags: [i - 2, i - 1, i] });
        }
        if i % SIDE >= 3 {
            s.dihedrals.push(Link { kind: number_of_b(&s, 3), tags: [i - 3, i - 2, i - 1, i] });
        }
        // corners of the lattice, far from collinear
        if site.iter().all(|x| *x >= 1) {
            let tags = [i - 1, i, i - SIDE, i - SIDE * SIDE];
            s.impropers.push(Link { kind: tags.iter().map(|t| s.type_id[*t as usize]).sum(), tags });
        }
    }
    let number = |draw: u32, of: &dyn Fn(u32) -> f64| Array {
        width: 1,
        values: Values::Real((0..SIDE.pow(3)).map(|i| of(key.single(0, i, draw)[0])).collect()),
    };
    // neighbors 2k and 2k + 1 in a chain have opposite charges, so each chain is neutral
    let charge = |i: u32| f64::from((key.single(0, i & !1, 3)[0] ^ i) & 1) * 2.0 - 1.0;
    let charges = Values::Real((0..SIDE.pow(3)).map(charge).collect());
    s.arrays.insert("charge".into(), Array { width: 1, values: charges });
    s.arrays.insert("diameter".into(), number(4, &|word| 1.0 + 0.2 * uniform(word)));
    let mut put = |name: &str, row: &dyn Fn([f64; 4]) -> Vec<f64>| {
        let draw = |i: u32| row(key.single(0, i, 5).map(uniform));
        let values: Vec<f64> = (0..SIDE.pow(3)).flat_map(draw).collect();
        s.arrays.insert(name.into(), Array { width: values.len() as u32 / SIDE.pow(3), values: Values::Real(values) });
    };
    put("quaternion", &|[x, y, z, w]| {
        let q = Quaternion::<f64>::new(x, y, z, w).normalized();
        vec![q.x, q.y, q.z, q.w]
    });
    put("angular_momentum", &|[x, y, z, _]| vec![y, z, x]);
    put("inert", &|[x, y, _, _]| vec![0.3, if x > 0.0 { 0.3 } else { 0.2 }, 0.4 + 0.1 * y]);
    s
}

/// Returns 216 molecules at rest, without links or arrays, each of four particles of the type A: the corners of a square, of
/// which the last one has no mass.
pub(super) fn bare_molecules() -> Snapshot {
    const SIDE: u32 = 6;
    let a = 2.0;
    let l = a * f64::from(SIDE);
    let mut s = Snapshot { dimensions: 3, box_length: [l; 3], ..Snapshot::default() };
    let kind = s.type_id("A");
    for m in 0..SIDE.pow(3) {
        let at = [m % SIDE, m / SIDE % SIDE, m / SIDE / SIDE].map(|k| (f64::from(k) + 0.25) * a - 0.5 * l);
        for (x, y, mass) in [(0.0, 0.0, 1.0), (0.4, 0.0, 1.0), (0.0, 0.4, 1.0), (0.4, 0.4, 0.0)] {
            let tag = s.push(kind, [at[0] + x, at[1] + y, at[2]]) as usize;
            s.mass[tag] = mass;
        }
    }
    s
}
