//! Radius of gyration, end-to-end distance, and shape of molecules.

use galamost_measure::{Part, Table, Whole, eigen};
use galamost_plugin_api::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// Writes the mean size and shape of molecules to a CSV table, one row for each sample.
///
/// The gyration tensor is S = Σ m (r − r_cm)(r − r_cm)/Σ m with the eigenvalues λ₁ ≥ λ₂ ≥ λ₃. A molecule is a set of
/// particles with the same value in the array `molecule` of the initial state (a particle with a negative value is a
/// molecule by itself), and bonds to other molecules do not count. Without that array, molecules are the sets of bonded
/// particles. Molecules are unwrapped along their bonds; parts of a molecule without a bond between them are placed by their images, which is an error in a box that
/// `LeesEdwards` shears. Means are over all molecules of `shortest` to `longest` particles.
///
/// Particles without mass have no weight. A rigid body of `Bodies`, whose beads have no mass, counts with the moments of inertia
/// of its center: Rg² = (I_x + I_y + I_z)/2M. A molecule that bonds connect to its own periodic images, such as a ring through the
/// box, has no size. It is left out of the means, with a warning.
///
/// | column | meaning |
/// |---|---|
/// | `step`, `time` | step number, time |
/// | `molecules` | number of molecules averaged |
/// | `Rg2`, `Rg2_error` | squared radius of gyration Rg² = ⟨λ₁ + λ₂ + λ₃⟩ (length²) |
/// | `asphericity` | ⟨λ₁ − ½ (λ₂ + λ₃)⟩ (length²) |
/// | `acylindricity` | ⟨λ₂ − λ₃⟩ (length²) |
/// | `anisotropy` | κ² = 1 − 3 ⟨λ₁λ₂ + λ₂λ₃ + λ₃λ₁⟩/⟨(λ₁ + λ₂ + λ₃)²⟩; 0 for spheres, 1 for rods |
/// | `chains` | number of linear molecules |
/// | `Re2`, `Re2_error` | squared end-to-end distance Re² = ⟨(r_last − r_first)²⟩ of linear molecules (length²) |
///
/// Errors are standard errors of the mean over the molecules of one sample; they do not account for correlations
/// between samples. Means over no molecules are NaN.
///
/// `each` writes a second table with a row for every molecule: `step`, `molecule` (from 0, in the order of first
/// particles), `n`, `Rg2` (NaN if bonds connect the molecule to its own images), `Re2` (empty if the molecule is not linear). A
/// file name that ends in `.parquet` selects a folder of Parquet files.
///
/// Reference: Theodorou & Suter, Macromolecules 18, 1206 (1985), for the shape descriptors.
///
/// ```ron
/// Gyration(every: 1000, file: "gyration.csv")
/// ```
#[component(Analyzer, "Gyration")]
#[derive(Params)]
pub struct Gyration {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// Output file.
    file: String,
    /// Output file with a row for every molecule.
    each: Option<String>,
    /// Smallest number of particles in a molecule.
    #[param(default = 2, at_least = 1)]
    shortest: u32,
    /// Largest number of particles in a molecule; default: unlimited.
    longest: Option<Spanned<u32>>,
    #[param(skip)]
    rows: Table,
    #[param(skip)]
    each_rows: Table,
    #[param(skip)]
    host: Option<Host>,
    /// Whether the log names a molecule that is left out.
    #[param(skip)]
    warned: bool,
}

const NAMES: [&str; 11] = [
    "step",
    "time",
    "molecules",
    "Rg2",
    "Rg2_error",
    "asphericity",
    "acylindricity",
    "anisotropy",
    "chains",
    "Re2",
    "Re2_error",
];

/// Second moments of the mass of rigid bodies about their centers, Σ m d d, by the tag of the center.
type Spread = HashMap<u32, [[f64; 3]; 3]>;

/// Returns Σ m d d of a body with these principal moments of inertia.
fn second_moments([x, y, z]: [f64; 3], orientation: Quaternion<f64>) -> [[f64; 3]; 3] {
    let along = [0.5 * (y + z - x), 0.5 * (z + x - y), 0.5 * (x + y - z)];
    let axes =
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|e| orientation.rotate(Vec3::<f64>::from(e)).f64());
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| along[k] * axes[k][i] * axes[k][j]).sum()))
}

/// Returns the spread of rigid bodies whose beads have no mass. Of other bodies, each particle has its mass.
fn spread(frame: &Frame<'_>) -> Spread {
    let arrays = (frame.int_array("body"), frame.array("inert"), frame.array("quaternion"));
    let (Some((1, body)), Some((3, inert)), Some((4, orientation))) = arrays else { return Spread::new() };
    let mass = frame.mass();
    let with_beads: BTreeSet<i32> =
        body.iter().zip(mass).filter(|(b, m)| **b >= 0 && **m == 0.0).map(|(b, _)| *b).collect();
    let centers = (0..body.len()).filter(|i| mass[*i] > 0.0 && with_beads.contains(&body[*i]));
    let (inert, orientation) = (inert.as_chunks::<3>().0, orientation.as_chunks::<4>().0);
    centers
        .map(|i| {
            let [x, y, z, w] = orientation[i];
            (i as u32, second_moments(inert[i], Quaternion::new(x, y, z, w)))
        })
        .collect()
}

/// Returns the eigenvalues of the gyration tensor and the squared end-to-end distance of a linear molecule.
fn shape(molecules: &Whole, part: &Part, mass: &[f64], spread: &Spread) -> ([f64; 3], Option<f64>) {
    let places = || molecules.members(part).iter().map(|t| (mass[*t as usize], molecules.place[*t as usize]));
    let total: f64 = places().map(|(m, _)| m).sum();
    // coordinates relative to the first particle keep full precision far from the origin
    let start = molecules.place[molecules.members(part)[0] as usize];
    let from = |p: [f64; 3]| -> [f64; 3] { std::array::from_fn(|k| p[k] - start[k]) };
    let mut middle = [0.0; 3];
    for (m, p) in places() {
        middle.iter_mut().zip(from(p)).for_each(|(c, x)| *c += m * x / total);
    }
    let mut s = [[0.0; 3]; 3];
    for (m, p) in places() {
        let p = from(p);
        let d: [f64; 3] = std::array::from_fn(|k| p[k] - middle[k]);
        for (i, row) in s.iter_mut().enumerate() {
            row.iter_mut().zip(d).for_each(|(x, d_j)| *x += m * d[i] * d_j / total);
        }
    }
    let members = molecules.members(part);
    for body in members.iter().filter_map(|t| spread.get(t)) {
        s.as_flattened_mut().iter_mut().zip(body.as_flattened()).for_each(|(x, y)| *x += y / total);
    }
    let ends = part.linear.then(|| {
        let [a, b] = [members[0], members[members.len() - 1]].map(|t| molecules.place[t as usize]);
        (0..3).map(|k| (a[k] - b[k]).powi(2)).sum()
    });
    (eigen(s).map(|(value, _)| value.max(0.0)), ends)
}

/// Returns the mean and the standard error of the mean.
fn mean(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let square: f64 = values.map(|x| (x - mean).powi(2)).sum();
    (mean, (square / (n * (n - 1.0))).sqrt())
}

impl Gyration {
    /// Warns once about molecules that are left out.
    fn warn_of_endless(&mut self, molecules: &Whole) {
        let count = molecules.parts.iter().filter(|p| p.endless).count();
        let first = molecules.parts.iter().find(|p| p.endless).map(|p| molecules.members(p)[0]);
        let (Some(first), Some(host)) = (first, self.host.filter(|_| !self.warned)) else { return };
        self.warned = true;
        let text = format!(
            "Gyration: {count} of {} molecules, the first that of particle {first}, are bonded to their own periodic images; such a \
             molecule has no size and is left out",
            molecules.parts.len()
        );
        host.log(Level::Warn, &text);
    }
}

impl Analyzer for Gyration {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if let Some(longest) = self.longest.as_ref().filter(|l| l.value < self.shortest) {
            return Err(InputError::at(longest.at, "`longest` is less than `shortest`").into());
        }
        Whole::bind(system, needs)?;
        needs.period = self.every;
        self.rows.bind(system, needs, &self.file);
        if let Some(each) = &self.each {
            self.each_rows.bind(system, needs, each);
        }
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        self.rows.start()?;
        if self.each.is_some() { self.each_rows.start() } else { Ok(()) }
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let mut molecules = Whole::of(frame, self.shortest as usize);
        if let Some(longest) = &self.longest {
            molecules.parts.retain(|p| p.range.len() <= longest.value as usize);
        }
        if let Some(part) = molecules.parts.iter().find(|p| !p.connected && frame.shear_offset() != 0.0) {
            let tag = molecules.members(part)[0];
            return Err(Error::Run(format!(
                "the molecule of particle {tag} has parts without a bond between them, whose distance is not known with the displaced \
                 images of Lees-Edwards boundaries; exclude it by `shortest` or `longest`"
            )));
        }
        self.warn_of_endless(&molecules);
        let spread = spread(frame);
        let shape_of = |p: &Part| match p.endless {
            true => ([f64::NAN; 3], None),
            false => shape(&molecules, p, frame.mass(), &spread),
        };
        let shapes: Vec<_> = molecules.parts.iter().map(shape_of).collect();
        let measured = || molecules.parts.iter().zip(&shapes).filter(|(p, _)| !p.endless).map(|(_, s)| s);
        let over = |f: fn(&[f64; 3]) -> f64| mean(measured().map(move |(l, _)| f(l)));
        let (rg2, rg2_error) = over(|l| l.iter().sum());
        let products = over(|[a, b, c]| a * b + b * c + c * a).0;
        let squares = over(|l| l.iter().sum::<f64>().powi(2)).0;
        let ends = measured().filter_map(|(_, e)| *e);
        let (re2, re2_error) = mean(ends.clone());
        let row = vec![
            frame.step().into(),
            frame.time().into(),
            measured().count().into(),
            rg2.into(),
            rg2_error.into(),
            over(|[a, b, c]| a - 0.5 * (b + c)).0.into(),
            over(|[_, b, c]| b - c).0.into(),
            (1.0 - 3.0 * products / squares).into(),
            ends.count().into(),
            re2.into(),
            re2_error.into(),
        ];
        self.rows.append(&NAMES, &[row])?;
        if self.each.is_some() {
            let rows: Vec<_> = (molecules.parts.iter().zip(&shapes).enumerate())
                .map(|(k, (part, (l, ends)))| {
                    let rg2: f64 = l.iter().sum();
                    vec![frame.step().into(), k.into(), part.range.len().into(), rg2.into(), (*ends).into()]
                })
                .collect();
            self.each_rows.append(&["step", "molecule", "n", "Rg2", "Re2"], &rows)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()?;
        self.each_rows.finish()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let mut out = self.rows.save()?;
        if self.each.is_some() {
            out.extend(self.each_rows.save()?);
        }
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let rest = self.rows.load(state)?;
        self.each_rows.load(rest).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shapes() {
        let bond = |k| Link { kind: 0, tags: [k, k + 1] };
        // a rod of three particles, whose heavy central particle does not change the shape; a square
        let rod: Vec<[f64; 3]> = (0..3).map(|k| [f64::from(k), f64::from(k), 0.0]).collect();
        let m = Whole::new(&rod, &[[0; 3]; 3], [20.0; 3], None, &[bond(0), bond(1)], 2);
        let (l, ends) = shape(&m, &m.parts[0], &[1.0, 2.0, 1.0], &Spread::new());
        assert!((l[0] - 1.0).abs() < 1e-14 && l[1] < 1e-14 && ends == Some(8.0), "{l:?}");
        let square = [[0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
        let ring = [bond(0), bond(1), bond(2), Link { kind: 0, tags: [3, 0] }];
        let m = Whole::new(&square, &[[0; 3]; 4], [20.0; 3], None, &ring, 2);
        let (l, ends) = shape(&m, &m.parts[0], &[1.0; 4], &Spread::new());
        assert!((l[0] - 0.25).abs() < 1e-14 && (l[1] - 0.25).abs() < 1e-14 && l[2] == 0.0 && ends.is_none());
        let (mean, error) = mean([1.0, 2.0, 3.0].into_iter());
        assert!((mean - 2.0).abs() < 1e-15 && (error - (1.0f64 / 3.0).sqrt()).abs() < 1e-15);
    }
}
