//! Surfaces with initiators in a liquid of monomers.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Geometry of the surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surface {
    /// Sphere around the center of the box.
    Sphere { radius: f64 },
    /// Plane through the center of the box.
    Plane { normal: Axis },
}

impl FromValue for Surface {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let name = value.name();
        if !matches!(name, Some("Sphere" | "Plane")) {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let mut fields = Fields::new(value, errors)?;
        let surface = match name {
            Some("Sphere") => {
                fields.required("radius", Range { above: 0.0, ..Range::ANY }).map(|radius| Self::Sphere { radius })
            }
            _ => fields.required("normal", Range::ANY).map(|normal| Self::Plane { normal }),
        };
        fields.finish();
        surface
    }
    fn describe() -> String {
        "`Sphere(radius: 10.0)` or `Plane(normal: Z)`".into()
    }
}

/// Builds a surface with initiators in a liquid of monomers, the initial state of a brush. Sets the box.
///
/// The surface is a hollow sphere around the center of the box, or a plane through it. Its particles have the areal
/// density `sites`: on a sphere they form a golden-angle spiral, on a plane a lattice of nearly square cells. Of them,
/// `initiators` per area, evenly distributed, are initiators; the others are wall particles. Monomers fill the rest of
/// the box: their number is `density` times the volume of the box minus that of the sphere. They occupy a simple cubic
/// lattice without the sites closer than `gap` to the surface, from which a random surplus is removed.
///
/// | particles | type | `h_init` | `h_cris` |
/// |---|---|---|---|
/// | wall | `wall` | 0 | 1 |
/// | initiators | `initiator` | 1 | 1 |
/// | monomers | `monomer` | 0 | 0 |
///
/// Wall and initiator particles come first, then monomers. No integrator should move wall and initiator particles. Add
/// `LinkTypes` after this generator to declare bond types.
///
/// ```ron
/// InitiatorSurface(box: [12.0, 12.0, 12.0], surface: Sphere(radius: 3.0), initiators: 0.5, density: 0.6)
/// ```
#[component(Generator, "InitiatorSurface")]
#[derive(Clone, Debug, Params)]
pub struct InitiatorSurface {
    /// Box lengths.
    #[param(name = "box", unit = "length", above = 0.0)]
    box_length: [f64; 3],
    /// Geometry: `Sphere(radius: 10.0)` or `Plane(normal: Z)`.
    surface: Spanned<Surface>,
    /// Areal density Σ of initiators.
    #[param(unit = "length⁻²", at_least = 0.0)]
    initiators: Spanned<f64>,
    /// Areal density of surface particles, including initiators.
    #[param(default = 1.0, unit = "length⁻²", above = 0.0)]
    sites: f64,
    /// Number density of monomers.
    #[param(unit = "length⁻³", at_least = 0.0)]
    density: Spanned<f64>,
    /// Smallest distance of a monomer from the surface.
    #[param(default = 1.0, unit = "length", at_least = 0.0)]
    gap: f64,
    /// Type of the wall particles.
    #[param(default = "S".to_string())]
    wall: String,
    /// Type of the initiators.
    #[param(default = "I".to_string())]
    initiator: String,
    /// Type of the monomers.
    #[param(default = "M".to_string())]
    monomer: String,
}

/// Returns π (√5 − 1), the complement of the golden angle.
fn golden() -> f64 {
    PI * (5f64.sqrt() - 1.0)
}

impl InitiatorSurface {
    /// Returns the area of the surface.
    fn area(&self) -> f64 {
        match self.surface.value {
            Surface::Sphere { radius } => 4.0 * PI * radius * radius,
            Surface::Plane { normal } => {
                self.box_length.iter().enumerate().filter(|(k, _)| *k != normal as usize).map(|(_, l)| l).product()
            }
        }
    }

    /// Returns the number of monomers.
    fn wanted(&self) -> f64 {
        let volume: f64 = self.box_length.iter().product();
        let taken =
            if let Surface::Sphere { radius } = self.surface.value { 4.0 / 3.0 * PI * radius.powi(3) } else { 0.0 };
        (self.density.value * (volume - taken)).round()
    }

    /// Returns the sites of the surface, and for each whether it is an initiator.
    fn sites(&self) -> (Vec<[f64; 3]>, Vec<bool>) {
        match self.surface.value {
            Surface::Sphere { radius } => {
                let area = self.area();
                let n = (self.sites * area).round().max(1.0) as usize;
                let wanted = (self.initiators.value * area).round() as usize;
                let site = |k: usize| {
                    let z = 1.0 - (2.0 * k as f64 + 1.0) / n as f64;
                    let (rho, angle) = ((1.0 - z * z).sqrt(), golden() * k as f64);
                    [radius * rho * angle.cos(), radius * rho * angle.sin(), radius * z]
                };
                let initiates = |k: usize| (k + 1) * wanted / n > k * wanted / n;
                ((0..n).map(site).collect(), (0..n).map(initiates).collect())
            }
            Surface::Plane { normal } => {
                let [a, b] = [1, 2].map(|k| (normal as usize + k) % 3);
                let (la, lb) = (self.box_length[a], self.box_length[b]);
                let spacing = self.sites.sqrt().recip();
                let (na, nb) = ((la / spacing).round().max(1.0) as usize, (lb / spacing).round().max(1.0) as usize);
                let wanted = (self.initiators.value * la * lb).round() as usize;
                let mut sites = vec![];
                let mut rank = vec![];
                for x in 0..na {
                    for y in 0..nb {
                        let mut r = [0.0; 3];
                        r[a] = ((x as f64 + 0.5) / na as f64 - 0.5) * la;
                        r[b] = ((y as f64 + 0.5) / nb as f64 - 0.5) * lb;
                        // a two-dimensional low-discrepancy sequence: sites with the smallest values are evenly
                        // distributed
                        let even = (x as f64 * 0.754_877_666_246_692_8 + y as f64 * 0.569_840_290_998_053_3).fract();
                        rank.push((even, sites.len()));
                        sites.push(r);
                    }
                }
                rank.sort_by(|p, q| p.0.total_cmp(&q.0).then(p.1.cmp(&q.1)));
                let mut initiates = vec![false; sites.len()];
                rank.iter().take(wanted).for_each(|(_, k)| initiates[*k] = true);
                (sites, initiates)
            }
        }
    }

    /// Returns whether a monomer may be at `r`.
    fn free(&self, r: [f64; 3]) -> bool {
        match self.surface.value {
            Surface::Sphere { radius } => r.iter().map(|x| x * x).sum::<f64>() >= (radius + self.gap).powi(2),
            Surface::Plane { normal } => r[normal as usize].abs() >= self.gap,
        }
    }

    /// Returns the sites of monomers: the coarsest lattice with enough sites, minus a random surplus.
    fn monomers(&self, key: RandomKey) -> Result<Vec<[f64; 3]>> {
        let volume: f64 = self.box_length.iter().product();
        let wanted = self.wanted() as usize;
        if wanted == 0 {
            return Ok(vec![]);
        }
        let mut spacing = (volume / wanted as f64).cbrt();
        // refine the lattice until it has enough free sites
        for _ in 0..400 {
            let n = self.box_length.map(|l| (l / spacing).floor().max(1.0) as u32);
            let mut sites = vec![];
            for x in 0..n[0] {
                for y in 0..n[1] {
                    for z in 0..n[2] {
                        let r = std::array::from_fn(|k| {
                            ((f64::from([x, y, z][k]) + 0.5) / f64::from(n[k]) - 0.5) * self.box_length[k]
                        });
                        if self.free(r) {
                            sites.push(r);
                        }
                    }
                }
            }
            if sites.len() >= wanted {
                return Ok(thin(sites, wanted, key));
            }
            spacing *= 0.995;
        }
        let text = format!(
            "the box cannot hold {wanted} monomers at a distance of {} from the surface; reduce `density` or `gap`",
            self.gap
        );
        Err(InputError::at(self.density.at, text).into())
    }
}

/// Removes a random surplus and keeps the order of the remaining sites.
fn thin(sites: Vec<[f64; 3]>, wanted: usize, key: RandomKey) -> Vec<[f64; 3]> {
    let mut draws: Vec<(u32, u32)> = (0..sites.len() as u32).map(|k| (key.single(0, k, 0)[0], k)).collect();
    draws.sort_unstable();
    let mut keep = vec![false; sites.len()];
    draws.iter().take(wanted).for_each(|(_, k)| keep[*k as usize] = true);
    sites.into_iter().zip(keep).filter_map(|(site, keep)| keep.then_some(site)).collect()
}

impl Generator for InitiatorSurface {
    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if !s.is_empty() {
            return Err(Error::input("InitiatorSurface sets the box and must be the first generator"));
        }
        if self.initiators.value > self.sites {
            let text = format!("the surface has only {} sites per area; increase `sites`", self.sites);
            return Err(InputError::at(self.initiators.at, text).into());
        }
        if let Surface::Sphere { radius } = self.surface.value
            && let Some(k) = (0..3).find(|k| 2.0 * (radius + self.gap) > self.box_length[*k])
        {
            let text = format!("the sphere and its gap do not fit into the box length {}", self.box_length[k]);
            return Err(InputError::at(self.surface.at, text).into());
        }
        if let Surface::Plane { normal } = self.surface.value
            && 2.0 * self.gap > self.box_length[normal as usize]
        {
            let length = self.box_length[normal as usize];
            let text = format!("the gaps on both sides of the plane do not fit into the box length {length}");
            return Err(InputError::at(self.surface.at, text).into());
        }
        // sites first: they are numbered in whole numbers, which must not overflow
        s.require(self.sites * self.area()).map_err(|m| InputError::at(self.surface.at, m))?;
        s.require(self.wanted()).map_err(|m| InputError::at(self.density.at, m))?;
        (s.dimensions, s.box_length) = (3, self.box_length);
        let [wall, initiator, monomer] = [&self.wall, &self.initiator, &self.monomer].map(|name| s.type_id(name));
        let (mut init, mut cris) = (vec![], vec![]);
        let (sites, initiates) = self.sites();
        for (r, initiates) in sites.into_iter().zip(initiates) {
            s.push(if initiates { initiator } else { wall }, r);
            init.push(i32::from(initiates));
            cris.push(1);
        }
        for r in self.monomers(RandomKey::new(context.seed, context.component))? {
            s.push(monomer, r);
            init.push(0);
            cris.push(0);
        }
        s.arrays.insert("h_init".into(), Array { width: 1, values: Values::Int(init) });
        s.arrays.insert("h_cris".into(), Array { width: 1, values: Values::Int(cris) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::params::Source;

    fn make(text: &str) -> Snapshot {
        let mut errors = Errors::default();
        let value = Source::file(text).value();
        let mut g = InitiatorSurface::from_value(value, &mut errors).unwrap_or_else(|| panic!("{errors:?}"));
        let mut s = Snapshot::default();
        g.generate(&GeneratorContext { seed: 1, ..Default::default() }, &mut s).expect("generated");
        s.check().expect("a valid state");
        s
    }

    /// Returns the number of particles of each type, and the smallest distances between monomers and between
    /// initiators.
    fn measure(s: &Snapshot) -> ([usize; 3], f64, f64) {
        let shortest = |kind: u32| {
            let at: Vec<_> = (0..s.len()).filter(|i| s.type_id[*i] == kind).map(|i| s.position[i]).collect();
            let mut least = f64::INFINITY;
            for (i, a) in at.iter().enumerate() {
                for b in &at[..i] {
                    let d: f64 = (0..3)
                        .map(|k| {
                            let d = a[k] - b[k];
                            (d - s.box_length[k] * (d / s.box_length[k]).round()).powi(2)
                        })
                        .sum();
                    least = least.min(d.sqrt());
                }
            }
            least
        };
        ([0, 1, 2].map(|t| s.type_id.iter().filter(|k| **k == t).count()), shortest(2), shortest(1))
    }

    #[test]
    fn a_sphere_has_its_densities() {
        let s = make(
            "InitiatorSurface(box: [16.0, 16.0, 17.0], surface: Sphere(radius: 5.0), initiators: 0.5, density: 0.85)",
        );
        let (n, monomers, initiators) = measure(&s);
        let area = 4.0 * PI * 25.0;
        let volume = 16.0 * 16.0 * 17.0 - 4.0 / 3.0 * PI * 125.0;
        assert_eq!(
            n,
            [
                (area.round() - (0.5 * area).round()) as usize,
                (0.5 * area).round() as usize,
                (0.85 * volume).round() as usize
            ]
        );
        println!("{n:?}, nearest {monomers} {initiators}");
        assert!(monomers > 0.97 && initiators > 0.75, "{monomers} {initiators}");
        for (r, kind) in s.position.iter().zip(&s.type_id) {
            let r = r.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!(if *kind == 2 { r >= 6.0 } else { (r - 5.0).abs() < 1e-12 });
        }
        let mean: f64 = (0..s.len()).filter(|i| s.type_id[*i] == 1).map(|i| s.position[i][2]).sum();
        assert!(mean.abs() < 5.0, "initiators on one side: {mean}");
    }

    #[test]
    fn a_plane_has_its_densities() {
        let s = make(
            "InitiatorSurface(box: [12.0, 10.0, 14.0], surface: Plane(normal: X), initiators: 0.25, density: 0.7)",
        );
        let (n, monomers, initiators) = measure(&s);
        assert_eq!(n, [105, 35, 1176]);
        println!("nearest {monomers} {initiators}");
        assert!(monomers > 0.9 && initiators > 1.2 && s.position.iter().take(140).all(|r| r[0] == 0.0));
    }

    #[test]
    fn surfaces_that_do_not_fit_are_rejected() {
        let fails = |text: &str| {
            let mut errors = Errors::default();
            let mut g = InitiatorSurface::from_value(Source::file(text).value(), &mut errors).expect("read");
            g.generate(&GeneratorContext::default(), &mut Snapshot::default()).expect_err("a mistake").to_string()
        };
        let text =
            "InitiatorSurface(box: [12.0, 10.0, 14.0], surface: Sphere(radius: 4.5), initiators: 0.5, density: 0.7)";
        assert!(fails(text).contains("do not fit into the box"));
        let text = text.replace("4.5", "3.0").replace("initiators: 0.5", "initiators: 1.5");
        assert!(fails(&text).contains("only 1 sites per area"));
    }
}
