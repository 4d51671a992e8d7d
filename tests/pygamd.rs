//! Bonds of ellipsoids and Janus particles beside forces that PyGAMD computed (`data/pygamd`).

use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_plugin_api::vector::Vec3;
use galamost_tests::{csv, plan_of, repository, run_plan};

/// Roundings of single precision, 2⁻²⁴ each, that add up in a number of PyGAMD: fewer than 16 operations in a row.
const ROUNDING: f64 = 16.0 / 16_777_216.0;

/// A row of a file: parameters, vectors, and the energy.
struct Pair {
    parameters: [f64; 5],
    distance: Vec3<f64>,
    axes: [Vec3<f64>; 2],
    force: Vec3<f64>,
    torques: [Vec3<f64>; 2],
    energy: f64,
}

impl Pair {
    fn of(row: &str) -> Self {
        let x: Vec<f64> = row.split_whitespace().map(|x| x.parse().expect("a number")).collect();
        assert_eq!(x.len(), 5 + 6 * 3 + 1, "{row}");
        let vector = |k: usize| Vec3::new(x[5 + 3 * k], x[6 + 3 * k], x[7 + 3 * k]);
        // the file has single precision
        let axes = [1, 2].map(|k| vector(k) * (1.0 / vector(k).norm()));
        Self {
            parameters: std::array::from_fn(|k| x[k]),
            distance: vector(0),
            axes,
            force: vector(3),
            torques: [0, 1].map(|k| axes[k].cross(vector(4 + k))),
            energy: x[23],
        }
    }

    /// Force on i, both torques, and the energy of the pair here.
    fn here(&self, force: &str) -> (Vec3<f64>, [Vec3<f64>; 2], f64) {
        let mut s = Snapshot { dimensions: 3, box_length: [40.0; 3], ..Snapshot::default() };
        let kind = s.type_id("A");
        s.bond_types = vec!["A-A".into()];
        s.push(kind, [0.0; 3]);
        s.push(kind, [self.distance.x, self.distance.y, self.distance.z]);
        s.bonds.push(Link { kind: 0, tags: [0, 1] });
        // the shortest rotation of the z axis to n
        let turned = self.axes.map(|n| Quaternion::<f64>::new(-n.y, n.x, 0.0, 1.0 + n.z).normalized());
        let mut put = |name: &str, rows: Vec<f64>| {
            s.arrays.insert(name.into(), Array { width: rows.len() as u32 / 2, values: Values::Real(rows) });
        };
        put("quaternion", turned.iter().flat_map(|q| [q.x, q.y, q.z, q.w]).collect());
        put("angular_momentum", vec![0.0; 6]);
        put("inert", vec![1.0; 6]);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("t.csv");
        let text = format!(
            "(seed: 1, precision: Double, forces: [{force}], integrators: [RotationalVerlet()], analyzers: [ParticleTable( \
             every: 1, file: {file:?}, columns: [\"id\", \"fx\", \"fy\", \"fz\", \"tqx\", \"tqy\", \"tqz\", \"energy\"])], \
             stages: [(steps: 0, dt: 0.001)])"
        );
        let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let t = csv(&file);
        assert_eq!(t["id"], [1.0, 2.0]);
        let vector = |names: [&str; 3], k: usize| {
            let [x, y, z] = names.map(|name| t[name][k]);
            Vec3::new(x, y, z)
        };
        let torques = [0, 1].map(|k| vector(["tqx", "tqy", "tqz"], k));
        (vector(["fx", "fy", "fz"], 0), torques, t["energy"].iter().sum())
    }

    /// Compares with the component `force`. Limits of rounding: of the force, of torques, of the energy.
    fn compare(&self, force: &str, limits: [f64; 3]) {
        let (f, torques, u) = self.here(force);
        let away = [
            (f - self.force).norm(),
            (torques[0] - self.torques[0]).norm().max((torques[1] - self.torques[1]).norm()),
            (u - self.energy).abs(),
        ];
        println!("{force}\n    {away:?}, limits {limits:?}, force {:.4}, energy {u:.4}", f.norm());
        assert!(away.iter().zip(limits).all(|(x, limit)| *x <= limit), "{force}: {away:?} above {limits:?}");
    }
}

/// Returns the rows of a file.
fn pairs(file: &str) -> Vec<Pair> {
    let path = repository().join("tests/data/pygamd").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().filter(|line| !line.starts_with('#')).map(Pair::of).collect()
}

/// `BondForceAni` with and without `setSigmae` and an angle.
#[test]
fn bonds_of_ellipsoids_have_the_forces_of_bond_force_ani() {
    let rows = pairs("bond_force_ani.txt");
    assert_eq!(rows.len(), 14);
    for row in rows {
        let [k, r0, k_angle, theta0, sigma_e] = row.parameters;
        // sums of lengths whose rounding errors enter the distance of the ends
        let length = row.distance.norm() + sigma_e + r0;
        let force = ROUNDING * k * length;
        let limits =
            [force, 0.5 * sigma_e * force + ROUNDING * 2.0 * k_angle, force * length + ROUNDING * 2.0 * k_angle];
        row.compare(
            &format!(
                "EllipsoidBond(bonds: {{ \"A-A\": (k: {k:?}, length: {sigma_e:?}, r0: {r0:?}, k_angle: {k_angle:?}, \
                 theta0_deg: {theta0:?}) }})"
            ),
            limits,
        );
        if sigma_e == 0.0 && k_angle == 0.0 {
            row.compare(&format!("HarmonicBond(bonds: {{ \"A-A\": (k: {:?}, r0: {r0:?}) }})", 0.5 * k), limits);
        }
    }
}

/// `BABtriJanus` of `LZWForce`: β is the half angle of the caps, and μ a factor.
#[test]
fn bands_have_the_forces_of_bab_tri_janus() {
    let rows = pairs("lzw_bab.txt");
    assert_eq!(rows.len(), 13);
    for row in rows {
        let [alpha_r, mu, nu, alpha_a, beta] = row.parameters;
        let (alpha_a, band) = (mu * alpha_a, 90.0 - beta);
        let q = 90.0 / band;
        let e = row.distance * (1.0 / row.distance.norm());
        let cos = row.axes.map(|n| (q * n.dot(e).asin()).cos());
        let inside = row.axes.iter().all(|n| n.dot(e).asin().to_degrees().abs() < band);
        // a rounding of an angle changes the slope of f^ν by at most its second derivative, ν (1 + |ν − 1|) q² f^(ν − 2)
        let second =
            if inside { nu * (1.0 + (nu - 1.0).abs()) * q * q * (cos[0] * cos[1]).powf(nu - 2.0) } else { 0.0 };
        let limit = ROUNDING * (alpha_r + alpha_a * (1.0 + second));
        let bands = format!(
            "BandJanus(pairs: {{ (\"A\", \"A\"): (alpha_r: {alpha_r:?}, alpha_a: {alpha_a:?}, beta_deg: {band:?}, nu: {nu:?}) }})"
        );
        row.compare(&bands, [limit; 3]);
    }
}
