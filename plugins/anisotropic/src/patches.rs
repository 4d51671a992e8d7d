//! Particles with several patches.

use crate::inverse_distance;
use crate::janus::{edge_warning, patch};
use crate::patch_file;
use galamost_plugin_api::pair::Row;
use galamost_plugin_api::params::TypePairs;
use galamost_plugin_api::prelude::*;
use std::f64::consts::FRAC_PI_2;

/// Maximum number of patches per particle.
pub const MAX_PATCHES: usize = 6;
/// Number of patch pairs of two particles.
const PAIRS: usize = MAX_PATCHES * MAX_PATCHES;
/// Maximum number of particle types: their rows must fit into a multiprocessor's shared memory.
const MAX_TYPES: usize = 6;

/// One patch of a particle type.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Patch {
    /// Patch type, used in `attraction`.
    pub name: String,
    /// Half opening angle β.
    #[param(unit = "degree", above = 0.0, at_most = 180.0)]
    pub beta_deg: f64,
    /// Direction from the center in the body frame.
    pub direction: [f64; 3],
}

/// Attraction between two patch types.
#[derive(Clone, Copy, Debug, PartialEq, Params)]
pub struct Attraction {
    /// Attraction strength α_A.
    #[param(unit = "energy", at_least = 0.0)]
    pub alpha_a: f64,
    /// Exponent ν of the patch profile, as in `Janus`.
    #[param(default = 0.5, above = 0.0, at_most = 16.0)]
    pub nu: f64,
}

/// Patches of each particle type and the attractions between patch types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Particle types with their patches.
    pub patches: Vec<(String, Vec<Patch>)>,
    /// Attraction of each pair of patch types.
    pub attraction: Vec<([String; 2], Attraction)>,
}

impl Layout {
    fn patches_of(&self, type_name: &str) -> &[Patch] {
        self.patches.iter().find(|(name, _)| name == type_name).map_or(&[], |(_, p)| p)
    }

    fn between(&self, a: &str, b: &str) -> Option<Attraction> {
        self.attraction.iter().find(|([x, y], _)| (x == a && y == b) || (x == b && y == a)).map(|(_, n)| *n)
    }

    /// Returns an error message if the layout is inconsistent.
    fn error(&self) -> Option<String> {
        for (type_name, patches) in &self.patches {
            if patches.len() > MAX_PATCHES {
                return Some(format!(
                    "particle type {type_name} has {} patches; the maximum is {MAX_PATCHES}",
                    patches.len()
                ));
            }
            if let Some(p) = patches.iter().find(|p| p.direction.iter().all(|x| *x == 0.0)) {
                return Some(format!(
                    "the direction of patch {} of particle type {type_name} is the zero vector",
                    p.name
                ));
            }
        }
        let mut names: Vec<&str> = vec![];
        for patch in self.patches.iter().flat_map(|(_, p)| p) {
            if !names.contains(&&*patch.name) {
                names.push(&patch.name);
            }
        }
        if let Some(name) = self.attraction.iter().flat_map(|(pair, _)| pair).find(|n| !names.contains(&n.as_str())) {
            return Some(format!("unknown patch type {name}; the patch types are {}", names.join(", ")));
        }
        for (k, a) in names.iter().enumerate() {
            for b in &names[k..] {
                if self.between(a, b).is_none() {
                    return Some(format!(
                        "missing attraction of the patch types ({a}, {b}); for no attraction set `alpha_a: 0.0`"
                    ));
                }
            }
        }
        None
    }
}

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct PatchSettings {
    /// Patches of each particle type; types that are not listed have none.
    patches: Option<TypeMap<Vec<Patch>>>,
    /// Attraction of each pair of patch types.
    attraction: Option<TypePairs<Attraction>>,
    /// File with the GALAMOST blocks `Patches` and `PatchParams`, instead of `patches` and `attraction`.
    file: Option<Spanned<String>>,
    #[param(skip)]
    layout: Layout,
}

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct PatchesInput {
    /// Repulsion strength α_R.
    #[param(unit = "energy", above = 0.0)]
    alpha_r: f64,
}

/// Patches of both particles and their attractions.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[allow(non_camel_case_types)]
pub struct PatchRow<real> {
    alpha_r: real,
    /// Numbers of patches of i and j.
    count_i: real,
    count_j: real,
    /// Directions in the body frames.
    axis_i: [real; 3 * MAX_PATCHES],
    axis_j: [real; 3 * MAX_PATCHES],
    /// cos β.
    cos_i: [real; MAX_PATCHES],
    cos_j: [real; MAX_PATCHES],
    /// π/2β.
    q_i: [real; MAX_PATCHES],
    q_j: [real; MAX_PATCHES],
    /// α_A and ν of patch k of i and patch l of j at MAX_PATCHES k + l.
    alpha_a: [real; PAIRS],
    nu: [real; PAIRS],
}

impl Row for PatchRow<f64> {
    type As<R: Real> = PatchRow<R>;
    fn cast<R: Real>(&self) -> PatchRow<R> {
        PatchRow {
            alpha_r: R::lit(self.alpha_r),
            count_i: R::lit(self.count_i),
            count_j: R::lit(self.count_j),
            axis_i: self.axis_i.map(R::lit),
            axis_j: self.axis_j.map(R::lit),
            cos_i: self.cos_i.map(R::lit),
            cos_j: self.cos_j.map(R::lit),
            q_i: self.q_i.map(R::lit),
            q_j: self.q_j.map(R::lit),
            alpha_a: self.alpha_a.map(R::lit),
            nu: self.nu.map(R::lit),
        }
    }
    fn numbers(&self) -> Vec<f64> {
        let mut all = vec![self.alpha_r, self.count_i, self.count_j];
        for part in [&self.axis_i[..], &self.axis_j, &self.cos_i, &self.cos_j, &self.q_i, &self.q_j] {
            all.extend(part);
        }
        all.extend(self.alpha_a.iter().chain(&self.nu));
        all
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Self {
        // both particles are of one type
        let patches: Vec<Patch> = ["a", "b", "b"]
            .into_iter()
            .map(|name| Patch {
                name: name.into(),
                beta_deg: 60.0 + 60.0 * random(),
                direction: std::array::from_fn(|_| random() - 0.5),
            })
            .collect();
        let attraction = [["a", "a"], ["a", "b"], ["b", "b"]]
            .map(|pair| (pair.map(String::from), Attraction { alpha_a: 88.0 + 150.0 * random(), nu: 2.0 + random() }));
        row(&Layout { patches: vec![("A".into(), patches)], attraction: attraction.into() }, 396.0, ["A", "A"])
    }
}

/// Returns the row of the types of i and j.
fn row(layout: &Layout, alpha_r: f64, types: [&str; 2]) -> PatchRow<f64> {
    let [patches_i, patches_j] = types.map(|t| layout.patches_of(t));
    let mut row = PatchRow {
        alpha_r,
        count_i: patches_i.len() as f64,
        count_j: patches_j.len() as f64,
        axis_i: [0.0; 3 * MAX_PATCHES],
        axis_j: [0.0; 3 * MAX_PATCHES],
        cos_i: [0.0; MAX_PATCHES],
        cos_j: [0.0; MAX_PATCHES],
        q_i: [0.0; MAX_PATCHES],
        q_j: [0.0; MAX_PATCHES],
        alpha_a: [0.0; PAIRS],
        nu: [1.0; PAIRS],
    };
    for (patches, axis, cos, q) in [
        (patches_i, &mut row.axis_i, &mut row.cos_i, &mut row.q_i),
        (patches_j, &mut row.axis_j, &mut row.cos_j, &mut row.q_j),
    ] {
        for (k, p) in patches.iter().enumerate() {
            let (beta, n) = (p.beta_deg.to_radians(), Vec3::<f64>::from(p.direction));
            axis[3 * k..3 * k + 3].copy_from_slice(&(n / n.norm()).f64());
            (cos[k], q[k]) = (beta.cos(), FRAC_PI_2 / beta);
        }
    }
    for (k, a) in patches_i.iter().enumerate() {
        for (l, b) in patches_j.iter().enumerate() {
            if let Some(n) = layout.between(&a.name, &b.name) {
                (row.alpha_a[MAX_PATCHES * k + l], row.nu[MAX_PATCHES * k + l]) = (n.alpha_a, n.nu);
            }
        }
    }
    row
}

impl RowInput for PatchesInput {
    type Settings = PatchSettings;
    type Row = PatchRow<f64>;
    const OWN_CUTOFF: bool = true;

    fn bind(settings: &mut PatchSettings, system: &SystemInfo) -> Result<()> {
        let s = settings;
        s.layout = match (&s.file, &s.patches, &s.attraction) {
            (Some(file), None, None) => patch_file::read(&system.path(&file.value))?,
            (None, Some(patches), Some(attraction)) => Layout {
                patches: patches.iter().map(|(name, p)| (name.into(), p.clone())).collect(),
                attraction: attraction.iter().map(|(pair, _, n)| (pair.clone(), *n)).collect(),
            },
            _ => return Err(Error::input("give either `patches` and `attraction`, or `file`")),
        };
        let types = &system.types;
        if types.len() > MAX_TYPES {
            return Err(Error::input(format!(
                "the system has {} particle types; `Patches` supports {MAX_TYPES}",
                types.len()
            )));
        }
        if let Some((name, _)) = s.layout.patches.iter().find(|(name, _)| !types.contains(name)) {
            let message = format!("there is no particle type \"{name}\"; the particle types are {}", types.join(", "));
            return Err(Error::input(message));
        }
        s.layout.error().map_or(Ok(()), |m| Err(Error::input(m)))
    }
    fn row(&self, settings: &PatchSettings) -> std::result::Result<PatchRow<f64>, String> {
        // a row without patches
        self.row_between(settings, ["", ""])
    }
    fn row_between(&self, settings: &PatchSettings, types: [&str; 2]) -> std::result::Result<PatchRow<f64>, String> {
        Ok(row(&settings.layout, self.alpha_r, types))
    }
    fn warning(&self, settings: &PatchSettings) -> Option<String> {
        let mut all = settings.layout.attraction.iter();
        let warning = all.find_map(|(_, a)| edge_warning(self.alpha_r, a.alpha_a, a.nu))?;
        Some(match &settings.file {
            Some(file) => format!("{}: {warning}", file.value),
            None => warning,
        })
    }
    fn cutoff(&self, _: &PatchSettings, _: &SystemInfo) -> Option<f64> {
        Some(1.0)
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<PatchRow<f64>> {
        Some(Row::sample(random))
    }
}

/// Soft particles with several patches: U = (α_R/2)(1 − r)² − Σ_kl f_kl^ν (α_A/2)(r − r²) for r < 1.
///
/// The sum runs over the patches k of one and l of the other particle. f_kl = cos(π θ_k/2β_k) cos(π θ_l/2β_l) if θ_k ≤ β_k
/// and θ_l ≤ β_l, else 0. θ_k is the angle between patch k and the direction to the other particle. The cutoff is 1.
///
/// β belongs to a patch, α_A and ν to a pair of patch types, α_R to a pair of particle types. Directions are given in the
/// body frame, whose orientation is the particle's `quaternion`. One patch along z is a Janus particle; patches along z and
/// −z are a triblock Janus particle. On ν < 1 see `Janus`; the check warns if ν < ½, also about a file.
///
/// Limits: up to six patches per particle and six particle types.
///
/// `file` reads the GALAMOST blocks `Patches` and `PatchParams`:
///
/// ```xml
/// <Patches>
/// A 0
/// B 3
/// p1 45  0         0   1
/// p2 45  0.866025  0  -0.5
/// p2 45 -0.866025  0  -0.5
/// </Patches>
/// <PatchParams>
/// p1 p1 220.0 0.5
/// p1 p2 220.0 0.5
/// p2 p2 220.0 0.5
/// </PatchParams>
/// ```
///
/// `Patches` lists each particle type with the number of its patches, then the patch type, β in degrees and direction of each
/// patch. `PatchParams` lists pairs of patch types with α_A and ν.
///
/// Reference: Zhu, Liu, Li, Qian, Milano & Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365 (one and
/// two patches); the sum over patches and the file format: GALAMOST manual, "multiple patch particle model".
///
/// ```ron
/// Patches(
///     patches: { "A": [
///         (name: "p", beta_deg: 45.0, direction: [0.0, 0.0, 1.0]),
///         (name: "p", beta_deg: 45.0, direction: [0.866025, 0.0, -0.5]),
///         (name: "p", beta_deg: 45.0, direction: [-0.866025, 0.0, -0.5]),
///     ] },
///     attraction: { ("p", "p"): (alpha_a: 220.0, nu: 2.0) },
///     pairs: {
///         ("A", "A"): (alpha_r: 396.0),
///         ("A", "B"): (alpha_r: 396.0),
///         ("B", "B"): (alpha_r: 396.0),
///     },
/// )
/// ```
#[oriented_pair_potential("Patches", input = PatchesInput)]
fn patches(
    r: Vec3<real>,
    r2: real,
    quaternion_i: Quaternion<real>,
    quaternion_j: Quaternion<real>,
    p: &PatchRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let inv_r = inverse_distance(r2);
    let e = r * inv_r;
    let distance = r2 * inv_r;
    let well = 0.5 * (distance - r2);
    // patch directions are compared in the body frames
    let body_i = quaternion_i.rotate_back(e);
    let body_j = quaternion_j.rotate_back(e);
    let mut depth = 0.0;
    let mut pull_i = Vec3::new(0.0, 0.0, 0.0);
    let mut pull_j = Vec3::new(0.0, 0.0, 0.0);
    for k in 0..(p.count_i as usize) {
        let n = Vec3::new(p.axis_i[3 * k], p.axis_i[3 * k + 1], p.axis_i[3 * k + 2]);
        let c = -n.dot(body_i);
        if c >= p.cos_i[k] {
            let (a, a_slope) = patch(c, p.q_i[k]);
            for l in 0..(p.count_j as usize) {
                let m = Vec3::new(p.axis_j[3 * l], p.axis_j[3 * l + 1], p.axis_j[3 * l + 2]);
                let d = m.dot(body_j);
                if d >= p.cos_j[l] {
                    let (b, b_slope) = patch(d, p.q_j[l]);
                    let f = a * b;
                    let nu = p.nu[MAX_PATCHES * k + l];
                    let strength = p.alpha_a[MAX_PATCHES * k + l];
                    // as in `Janus`: f^(ν−1) diverges at the edge
                    let f_min = if nu < 1.0 { 1e-4 } else { 1e-20 };
                    if f > f_min {
                        let term = f.powf(nu) * strength;
                        let du_df = -nu * term / f * well;
                        depth += term;
                        pull_i += n * (du_df * a_slope * b);
                        pull_j += m * (du_df * a * b_slope);
                    }
                }
            }
        }
    }
    let n = quaternion_i.rotate(pull_i);
    let m = quaternion_j.rotate(pull_j);
    let across = (n - e * n.dot(e)) - (m - e * m.dot(e));
    let du_dr = -p.alpha_r * (1.0 - distance) - depth * 0.5 * (1.0 - 2.0 * distance);
    let u = 0.5 * p.alpha_r * (1.0 - distance) * (1.0 - distance) - depth * well;
    (across * inv_r - e * du_dr, n.cross(e), u)
}
