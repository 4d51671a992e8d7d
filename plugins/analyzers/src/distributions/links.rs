//! Bond lengths, angles, and dihedral angles of a frame.

use galamost_plugin_api::prelude::*;

/// Kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Bond,
    Angle,
    Dihedral,
}

impl Sort {
    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bond => "bond",
            Self::Angle => "angle",
            Self::Dihedral => "dihedral",
        }
    }

    /// Returns the column name of the variable.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Bond => "r",
            Self::Angle => "theta_deg",
            Self::Dihedral => "phi_deg",
        }
    }

    /// Returns the names of the types.
    pub fn types(self, system: &SystemInfo) -> &[String] {
        match self {
            Self::Bond => &system.bond_types,
            Self::Angle => &system.angle_types,
            Self::Dihedral => &system.dihedral_types,
        }
    }

    /// Calls `f` with the type and the length (bonds) or the angle in degrees of every link: θ in 0 … 180, φ in −180 …
    /// 180, cis = 0.
    pub fn each(self, frame: &Frame<'_>, mut f: impl FnMut(usize, f64)) {
        let position = frame.position();
        let towards = |from: u32, to: u32| {
            let (a, b) = (position[from as usize], position[to as usize]);
            Vec3::<f64>::from(frame.nearest(std::array::from_fn(|k| b[k] - a[k])))
        };
        match self {
            Self::Bond => frame.bonds().iter().for_each(|l| f(l.kind as usize, towards(l.tags[0], l.tags[1]).norm())),
            Self::Angle => {
                for l in frame.angles() {
                    let (a, b) = (towards(l.tags[1], l.tags[0]), towards(l.tags[1], l.tags[2]));
                    // atan2 of sine and cosine: the cosine alone loses digits near 180°
                    f(l.kind as usize, a.cross(b).norm().atan2(a.dot(b)).to_degrees());
                }
            }
            Self::Dihedral => {
                for l in frame.dihedrals() {
                    let [i, j, k, m] = l.tags;
                    let (to_i, back, to_l) = (towards(j, i), towards(k, j), towards(k, m));
                    let (a, b) = (to_i.cross(back), to_l.cross(back));
                    let phi = (b.cross(a).dot(back) / back.norm()).atan2(a.dot(b));
                    f(l.kind as usize, phi.to_degrees());
                }
            }
        }
    }
}

/// Bins of equal width.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bins {
    pub first: f64,
    pub width: f64,
    pub n: usize,
}

impl Bins {
    /// Divides [first, last] into `n` bins.
    pub fn new(first: f64, last: f64, n: u32) -> Self {
        Self { first, width: (last - first) / f64::from(n), n: n as usize }
    }
    /// Returns the bin of a value; the last bin includes its upper limit.
    pub fn index(&self, x: f64) -> Option<usize> {
        let k = (x - self.first) / self.width;
        if k == self.n as f64 {
            return Some(self.n - 1);
        }
        (k >= 0.0 && k < self.n as f64).then_some(k as usize)
    }
    /// Returns the center of a bin.
    pub fn middle(&self, k: usize) -> f64 {
        self.first + (k as f64 + 0.5) * self.width
    }
}
