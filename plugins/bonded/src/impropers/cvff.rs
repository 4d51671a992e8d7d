//! Improper potential of the consistent valence force field.

use galamost_plugin_api::prelude::*;

/// Parameters of one improper type.
#[derive(Clone, Debug, Params)]
pub struct CvffParameters {
    /// Amplitude k, half of the barrier.
    #[param(unit = "energy")]
    k: f64,
    /// Sign d, 1 or −1.
    #[param(at_least = -1.0, at_most = 1.0)]
    d: i32,
    /// Multiplicity n.
    #[param(at_least = 0.0, at_most = 6.0)]
    n: u32,
}

/// Coefficients k d of U = k [1 + d cos(n φ)], k, and n.
#[derive(Debug, PairParams)]
pub struct CvffImproper<real> {
    amplitude: real,
    k: real,
    #[param(at_least = 0.0, at_most = 6.0)]
    n: real,
}

impl RowInput for CvffParameters {
    type Settings = NoSettings;
    type Row = CvffImproper<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<CvffImproper<f64>, String> {
        if self.d == 0 {
            return Err("d must be 1 or -1".into());
        }
        Ok(CvffImproper { amplitude: self.k * f64::from(self.d), k: self.k, n: f64::from(self.n) })
    }
}

/// Improper of the consistent valence force field: U(φ) = k [1 + d cos(n φ)], d = 1 or −1.
///
/// φ is the angle of a dihedral of the four particles in their order: between the planes of the first three and of the last
/// three. This is `improper_style cvff` of LAMMPS, with its parameters in its order. `d: -1, n: 2` keeps the particles in a
/// plane, φ = 0 or ±180°.
///
/// Reference: Dauber-Osguthorpe et al., Proteins 4 (1988) 31, doi:10.1002/prot.340040106.
///
/// ```ron
/// CvffImproper(impropers: { "A-A-A-A": (k: 2.0, d: -1, n: 2), "A-A-A-B": (k: 1.0, d: 1, n: 3), "A-A-B-B": (k: 0.5, d: 1, n: 1),
///     "A-B-B-B": (k: 0.5, d: -1, n: 4), "B-B-B-B": (k: 0.2, d: 1, n: 6) })
/// ```
#[improper_potential("CvffImproper", input = CvffParameters)]
fn cvff_improper(phi: real, p: &CvffImproper<real>) -> (real, real) {
    let x = p.n * phi;
    (-p.amplitude * p.n * x.sin(), p.k + p.amplitude * x.cos())
}
