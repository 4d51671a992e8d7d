//! Particle–field energies, forces and virials in Fourier space, by plain sums.

use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::f64::consts::{PI, TAU};

/// Parameters of the pipeline.
#[derive(Clone, Copy)]
pub struct Setting {
    pub paper: bool,
    pub grid: [usize; 3],
    pub rho0: f64,
    pub filter: f64,
    /// C and α.
    pub charges: Option<(f64, f64)>,
}

pub const PLAIN: Setting = Setting { paper: false, grid: [6, 5, 4], rho0: 2.0, filter: 0.0, charges: None };
pub const INV_KAPPA: f64 = 8.0;
pub const KT: f64 = 1.5;
pub const CHI: [[f64; 2]; 2] = [[0.5, 4.0], [4.0, -1.0]];

impl Setting {
    pub fn text(&self) -> String {
        let Self { grid, rho0, .. } = self;
        let scheme = if self.paper { "Paper" } else { "Variational" };
        let filter = if self.filter > 0.0 { format!("filter: {:?}, ", self.filter) } else { String::new() };
        let charges = self
            .charges
            .map_or(String::new(), |(c, alpha)| format!("electrostatics: (coulomb: {c:?}, alpha: {alpha:?}), "));
        format!(
            "MdScf(scheme: {scheme}, grid: {grid:?}, density: {rho0:?}, kappa: {:?}, kT: {KT}, {filter}{charges}chi: {{ \
             (\"A\", \"A\"): {:?}, (\"B\", \"A\"): {:?}, (\"B\", \"B\"): {:?} }})",
            1.0 / INV_KAPPA,
            CHI[0][0],
            CHI[0][1],
            CHI[1][1]
        )
    }
}

pub fn charge(s: &Snapshot) -> &[f64] {
    match &s.arrays["charge"].values {
        Values::Real(q) => q,
        Values::Int(_) => panic!("charges are numbers"),
    }
}

/// Vertices around a particle with its shares, and the slopes of the shares.
pub fn shares(s: &Snapshot, i: usize, grid: [usize; 3]) -> Vec<([usize; 3], f64, [f64; 3])> {
    let mut out = vec![];
    let at: [f64; 3] = std::array::from_fn(|k| (s.position[i][k] / s.box_length[k] + 0.5) * grid[k] as f64);
    for corner in 0..8usize {
        let upper = |k: usize| corner >> k & 1;
        let vertex = std::array::from_fn(|k| (at[k].floor() as usize + upper(k)) % grid[k]);
        let weight = |k: usize| {
            let d = at[k] - at[k].floor();
            if upper(k) == 1 { d } else { 1.0 - d }
        };
        let slope = |k: usize| {
            let inverse = grid[k] as f64 / s.box_length[k];
            let own = if upper(k) == 1 { inverse } else { -inverse };
            (0..3).map(|j| if j == k { own } else { weight(j) }).product::<f64>()
        };
        out.push((vertex, (0..3).map(weight).product(), std::array::from_fn(slope)));
    }
    out
}

type Complex = (f64, f64);

/// Grids of numbers of particles, and of charge, in Fourier space: Σ_v n(v) exp(−i k r).
pub struct Reference {
    pub s: Snapshot,
    pub setting: Setting,
    pub vertices: Vec<[usize; 3]>,
    pub waves: Vec<[Complex; 3]>,
}

/// Wave number of a mode, between −n/2 and n/2.
pub fn signed(m: usize, n: usize) -> f64 {
    if 2 * m > n { m as f64 - n as f64 } else { m as f64 }
}

impl Reference {
    pub fn new(s: &Snapshot, setting: Setting) -> Self {
        let [nx, ny, nz] = setting.grid;
        let vertices: Vec<[usize; 3]> = (0..nx * ny * nz).map(|v| [v % nx, v / nx % ny, v / (nx * ny)]).collect();
        let mut grids = vec![[0.0; 3]; vertices.len()];
        for i in 0..s.len() {
            for ([x, y, z], w, _) in shares(s, i, setting.grid) {
                let v = (z * ny + y) * nx + x;
                grids[v][s.type_id[i] as usize] += w;
                grids[v][2] += w * charge(s)[i];
            }
        }
        let sum: f64 = grids.iter().map(|g| g[0] + g[1]).sum();
        assert!((sum - s.len() as f64).abs() < 1e-9);
        let mut r = Self { s: s.clone(), setting, vertices, waves: vec![] };
        r.waves = (0..grids.len())
            .map(|m| {
                let mut w = [(0.0, 0.0); 3];
                for (v, g) in grids.iter().enumerate() {
                    let (sin, cos) = r.phase(m, v).sin_cos();
                    for (w, g) in w.iter_mut().zip(g) {
                        *w = (w.0 + g * cos, w.1 - g * sin);
                    }
                }
                w
            })
            .collect();
        r
    }

    pub fn phase(&self, m: usize, v: usize) -> f64 {
        (0..3).map(|k| TAU * (self.vertices[m][k] * self.vertices[v][k]) as f64 / self.setting.grid[k] as f64).sum()
    }

    /// k² of a mode, in a box with this strain.
    pub fn k2(&self, m: usize, strain: [[f64; 3]; 3]) -> f64 {
        let k: [f64; 3] =
            std::array::from_fn(|a| TAU * signed(self.vertices[m][a], self.setting.grid[a]) / self.s.box_length[a]);
        (0..3).map(|a| (k[a] - (0..3).map(|b| strain[a][b] * k[b]).sum::<f64>()).powi(2)).sum()
    }

    /// Factors of a mode: of the filter, twice, and of charges.
    pub fn factors(&self, m: usize, strain: [[f64; 3]; 3]) -> (f64, f64) {
        let k2 = self.k2(m, strain);
        let green = match self.setting.charges {
            Some((c, alpha)) if m > 0 => 4.0 * PI * c / k2 * (-k2 / (4.0 * alpha * alpha)).exp(),
            _ => 0.0,
        };
        ((-self.setting.filter.powi(2) * k2).exp(), green)
    }

    /// W in a box with this strain, to first order in it.
    pub fn energy(&self, strain: [[f64; 3]; 3]) -> f64 {
        let volume = self.s.volume() * (1.0 + (0..3).map(|k| strain[k][k]).sum::<f64>());
        let (count, rho0) = (self.s.len() as f64, self.setting.rho0);
        let mut sum = 0.0;
        for (m, w) in self.waves.iter().enumerate() {
            let (filter, green) = self.factors(m, strain);
            // Σ over modes of |Σ_v n exp|² / vertices is Σ over vertices of n²
            for i in 0..2 {
                for j in 0..2 {
                    let product = w[i].0 * w[j].0 + w[i].1 * w[j].1;
                    sum += 0.5 * (KT * CHI[i][j] + INV_KAPPA) * filter * product / (rho0 * volume);
                }
            }
            sum += 0.5 * green * (w[2].0.powi(2) + w[2].1.powi(2)) / volume;
        }
        sum - INV_KAPPA * count + 0.5 * INV_KAPPA * rho0 * volume
    }

    pub fn virial(&self) -> [f64; 6] {
        std::array::from_fn(|slot| {
            let (a, b) = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)][slot];
            let at = |h: f64| {
                let mut strain = [[0.0; 3]; 3];
                strain[a][b] = h;
                self.energy(strain)
            };
            const H: f64 = 1e-5;
            -(at(H) - at(-H)) / (2.0 * H)
        })
    }

    /// V of both types and the potential of charges, at the vertices.
    pub fn fields(&self) -> Vec<[f64; 3]> {
        let volume = self.s.volume();
        (0..self.vertices.len())
            .map(|v| {
                let mut out = [-INV_KAPPA, -INV_KAPPA, 0.0];
                for (m, w) in self.waves.iter().enumerate() {
                    let (filter, green) = self.factors(m, [[0.0; 3]; 3]);
                    let (sin, cos) = self.phase(m, v).sin_cos();
                    let back = |w: Complex| w.0 * cos - w.1 * sin;
                    for i in 0..2 {
                        for j in 0..2 {
                            out[i] += (KT * CHI[i][j] + INV_KAPPA) * filter * back(w[j]) / (self.setting.rho0 * volume);
                        }
                    }
                    out[2] += green * back(w[2]) / volume;
                }
                out
            })
            .collect()
    }

    /// Forces by the scheme, and Σ V(r_i).
    pub fn forces(&self) -> (Vec<f64>, f64) {
        let fields = self.fields();
        let g = self.setting.grid;
        let at = |v: [usize; 3], i: usize| {
            let f = fields[(v[2] * g[1] + v[1]) * g[0] + v[0]];
            f[self.s.type_id[i] as usize] + if self.setting.charges.is_some() { charge(&self.s)[i] * f[2] } else { 0.0 }
        };
        let (mut out, mut potential) = (vec![], 0.0);
        for i in 0..self.s.len() {
            let mut f = [0.0; 3];
            for (v, w, slope) in shares(&self.s, i, g) {
                potential += w * at(v, i);
                (0..3).for_each(|k| f[k] -= slope[k] * at(v, i));
            }
            if self.setting.paper {
                let p: [f64; 3] =
                    std::array::from_fn(|k| (self.s.position[i][k] / self.s.box_length[k] + 0.5) * g[k] as f64);
                let nearest: [usize; 3] = std::array::from_fn(|k| p[k].round() as usize % g[k]);
                for k in 0..3 {
                    let l = self.s.box_length[k] / g[k] as f64;
                    let d = p[k] - p[k].round();
                    let shifted = |n: usize| {
                        let mut v = nearest;
                        v[k] = (v[k] + n) % g[k];
                        at(v, i)
                    };
                    let (lower, upper) = ((shifted(0) - shifted(g[k] - 1)) / l, (shifted(1) - shifted(0)) / l);
                    f[k] = -((0.5 - d) * lower + (0.5 + d) * upper);
                }
            }
            out.extend(f);
        }
        (out, potential)
    }
}
