//! The generator of sites.

use crate::geometry::{LINEAR, NORMAL, place_site};
use crate::kind::SiteKind;
use crate::{ATOMS, FORM, MOST, NUMBERS, USES};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::{Array, Values, intern, wrap};
use std::collections::HashSet;

/// Makes particles virtual sites, which `VirtualSites` places.
///
/// Each row of `sites` makes one particle of every molecule a site: its position follows from those of the particles `from`, as
/// `kind` says. i, j, k, l are these particles in order, r_ij = r_j − r_i:
///
/// | `kind` | GROMACS | position of the site |
/// |---|---|---|
/// | `Two(a)` | 2 | r_i + a r_ij |
/// | `TwoFd(d)` | 2fd | r_i + d r_ij/\|r_ij\| |
/// | `Three(a, b)` | 3 | r_i + a r_ij + b r_ik |
/// | `ThreeFd(a, d)` | 3fd | r_i + d t/\|t\|, t = r_ij + a r_jk |
/// | `ThreeFad(theta, d)` | 3fad | r_i + d cos θ r_ij/\|r_ij\| + d sin θ p/\|p\|, p = r_jk − (r_ij·r_jk) r_ij/r_ij², θ in degrees |
/// | `ThreeOut(a, b, c)` | 3out | r_i + a r_ij + b r_ik + c r_ij × r_ik |
/// | `FourFdn(a, b, c)` | 4fdn | r_i + c m/\|m\|, m = (a r_ik − r_ij) × (b r_il − r_ij) |
/// | `Center` | n, 1 | mean of up to 8 positions |
/// | `CenterOfMass` | n, 2 | mean weighted with the masses |
/// | `Weights(w: […])` | n, 3 | mean weighted with these numbers, divided by their sum |
///
/// Particles of a molecule are numbered from 0; GROMACS numbers them from 1. A molecule has `atoms` particles with consecutive
/// tags, and `molecules` of them follow each other from the tag `first` on. Use one `Sites` for each sort of molecule. Without
/// `atoms`, numbers are tags. Without `sites` and `types`, the arrays `sites.form`, `sites.atoms` and `sites.numbers` of the state
/// define the sites.
///
/// `types` makes sites of the impropers of some types, which `Sites` removes: the first particle of an improper is the site, and the
/// others construct it. `GalamostXml` reads the node `vsite` as such impropers.
///
/// Sites are particles of the state and must have the mass 0, and the particles that construct them have mass. A site cannot
/// construct another one. `Sites` moves the sites to their positions. Nearest images are used: a molecule must be smaller than
/// half the box. Place it after the generator that creates the particles, and before `Velocities`.
///
/// ```ron
/// Sites(atoms: 4, molecules: 216, sites: [ (site: 3, from: [0, 1, 2], kind: Three(a: 0.13, b: 0.13)) ], bonds: "site")
/// ```
#[component(Generator, "Sites")]
#[derive(Clone, Debug, Params)]
pub struct Sites {
    /// Sites of a molecule.
    sites: Option<Vec<Spanned<Row>>>,
    /// Construction of the sites of these improper types, from up to three particles.
    types: Option<TypeMap<Spanned<SiteKind>>>,
    /// Number of particles of a molecule, sites included. If omitted, numbers are tags.
    #[param(at_least = 1.0)]
    atoms: Option<u32>,
    /// Number of molecules. If omitted, molecules continue to the last particle.
    #[param(at_least = 1.0)]
    molecules: Option<u32>,
    /// Tag of the first particle of the first molecule.
    #[param(default = 0)]
    first: u32,
    /// Type of bonds that are added between each site and its particles, so that `neighbors: (exclude: [Bonds])` leaves out
    /// their pair forces. Bonded forces list it as `"site": None`. If omitted, none are added.
    bonds: Option<String>,
}

/// A site of a molecule.
#[derive(Clone, Debug, Params)]
pub struct Row {
    /// Number of the site in the molecule.
    site: u32,
    /// Numbers of the particles that construct it.
    from: Vec<u32>,
    /// Construction of its position, such as `Two(a: 0.5)`.
    kind: SiteKind,
}

impl Generator for Sites {
    fn generate(&mut self, _: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if s.is_empty() {
            return Err(Error::input("Sites needs particles: place it after the generator that creates them"));
        }
        let mut table = Table::of(s)?;
        if let Some(rows) = &self.sites {
            let (size, molecules) = self.molecules(s)?;
            for row in rows {
                row.value.check(size, s).map_err(|m| InputError::at(row.at, m))?;
                for molecule in 0..molecules {
                    let base = self.first as usize + molecule * size;
                    table.add(&row.value, base, s).map_err(|m| InputError::at(row.at, m))?;
                }
            }
        } else if self.types.is_none() && !s.arrays.contains_key(FORM) {
            return Err(Error::input("particles have no array `sites.form`; give `sites` or `types`"));
        }
        if let Some(types) = &self.types {
            take(types, &mut table, s)?;
        }
        table.link(s).map_err(Error::input)?;
        table.place(s).map_err(Error::input)?;
        if let Some(name) = &self.bonds {
            let kind = intern(&mut s.bond_types, name);
            // a file of an earlier run, or an earlier `Sites`, has some of them
            let pair = |[a, b]: [u32; 2]| [a.min(b), a.max(b)];
            let mut known: HashSet<[u32; 2]> =
                s.bonds.iter().filter(|b| b.kind == kind).map(|b| pair(b.tags)).collect();
            for site in (0..s.len()).filter(|i| table.form[*i] != 0) {
                for tags in table.atoms(site).into_iter().map(|atom| [atom as u32, site as u32]) {
                    if known.insert(pair(tags)) {
                        s.bonds.push(Link { kind, tags });
                    }
                }
            }
        }
        table.write(s);
        Ok(())
    }
}

impl Sites {
    /// Returns the size of a molecule and the number of molecules.
    fn molecules(&self, s: &Snapshot) -> Result<(usize, usize)> {
        let (n, first) = (s.len(), self.first as usize);
        let left = n.checked_sub(first).filter(|left| *left > 0);
        let left = left.ok_or_else(|| Error::input(format!("`first` is {first}, and the last tag is {}", n - 1)))?;
        let Some(size) = self.atoms.map(|a| a as usize) else {
            return match self.molecules {
                Some(m) if m > 1 => {
                    Err(Error::input("`molecules` needs `atoms`, the number of particles of a molecule"))
                }
                _ => Ok((left, 1)),
            };
        };
        match self.molecules.map(|m| m as usize) {
            None if !left.is_multiple_of(size) => Err(Error::input(format!(
                "{left} particles from the tag {first} on are not whole molecules of {size}; set `molecules`"
            ))),
            None => Ok((size, left / size)),
            Some(m) if m * size > left => Err(Error::input(format!(
                "{m} molecules of {size} particles from the tag {first} on need {} particles; there are {n}",
                first + m * size
            ))),
            Some(m) => Ok((size, m)),
        }
    }
}

/// Adds a site for each improper of these types, and removes these types.
fn take(types: &TypeMap<Spanned<SiteKind>>, table: &mut Table, s: &mut Snapshot) -> Result<()> {
    let mut errors = Errors::default();
    let kinds = types.bind_some("improper", &s.improper_types, &mut errors);
    let kinds: Vec<_> = kinds.into_iter().map(Option::flatten).collect();
    if !errors.0.is_empty() {
        return Err(Error::Input(errors.0));
    }
    for link in &s.impropers {
        let Some(kind) = kinds[link.kind as usize] else { continue };
        let n = kind.value.particles().1.min(3);
        let [site, from @ ..] = link.tags;
        let from = from[..n].to_vec();
        let row = Row { site, from, kind: kind.value.clone() };
        row.check(s.len(), s).and_then(|()| table.add(&row, 0, s)).map_err(|m| InputError::at(kind.at, m))?;
    }
    // the other types keep their order
    let before = |k: usize| kinds[..k].iter().filter(|kind| kind.is_none()).count() as u32;
    let numbers: Vec<u32> = (0..kinds.len()).map(before).collect();
    s.impropers.retain(|link| kinds[link.kind as usize].is_none());
    s.impropers.iter_mut().for_each(|link| link.kind = numbers[link.kind as usize]);
    let mut kept = kinds.iter().map(|k| k.is_none());
    s.improper_types.retain(|_| kept.next().unwrap_or(true));
    Ok(())
}

impl Row {
    /// Checks the numbers in a row.
    fn check(&self, size: usize, s: &Snapshot) -> std::result::Result<(), String> {
        if let Some(number) = self.from.iter().chain([&self.site]).find(|k| **k as usize >= size) {
            return Err(format!("unknown particle {number}: a molecule has the particles 0 to {}", size - 1));
        }
        if self.from.contains(&self.site) {
            return Err(format!("the site {} is among the particles that construct it", self.site));
        }
        if let Some(k) = (1..self.from.len()).find(|k| self.from[..*k].contains(&self.from[*k])) {
            return Err(format!("`from` lists the particle {} twice", self.from[k]));
        }
        let ((least, most), n, name) = (self.kind.particles(), self.from.len(), self.kind.name());
        if n < least || n > most {
            let numbers = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            return Err(format!("{name} needs {numbers} particles in `from`, not {n}"));
        }
        if self.kind.leaves_plane() && s.dimensions == 2 {
            return Err(format!("{name} requires three dimensions"));
        }
        Ok(())
    }
}

/// The arrays of sites, in tag order.
struct Table {
    form: Vec<i32>,
    relative: Vec<i32>,
    numbers: Vec<f64>,
    uses: Vec<i32>,
}

impl Table {
    /// Reads the arrays of a state; zeros if it has none.
    fn of(s: &Snapshot) -> Result<Self> {
        let n = s.len();
        let wrong = |name: &str, width: usize| {
            Error::input(format!("the array `{name}` must have {width} values for each particle"))
        };
        let integers = |name: &str, width: usize| match s.arrays.get(name).map(|a| &a.values) {
            None => Ok(vec![0; n * width]),
            Some(Values::Int(v)) if v.len() <= n * width && v.len().is_multiple_of(width) => {
                Ok(v.iter().copied().chain(std::iter::repeat(0)).take(n * width).collect())
            }
            Some(_) => Err(wrong(name, width)),
        };
        let numbers = match s.arrays.get(NUMBERS).map(|a| &a.values) {
            None => vec![0.0; n * MOST],
            Some(Values::Real(v)) if v.len() <= n * MOST && v.len().is_multiple_of(MOST) => {
                v.iter().copied().chain(std::iter::repeat(0.0)).take(n * MOST).collect()
            }
            Some(_) => return Err(wrong(NUMBERS, MOST)),
        };
        Ok(Self { form: integers(FORM, 1)?, relative: integers(ATOMS, MOST)?, numbers, uses: vec![0; n * (MOST + 1)] })
    }

    /// Adds the site of a row in the molecule whose first tag is `base`.
    fn add(&mut self, row: &Row, base: usize, s: &Snapshot) -> std::result::Result<(), String> {
        let site = base + row.site as usize;
        if self.form[site] != 0 {
            return Err(format!("particle {site} is a site already"));
        }
        let masses: Vec<f64> = row.from.iter().map(|k| s.mass[base + *k as usize]).collect();
        self.check_masses(site, row.from.iter().map(|k| base + *k as usize), s)?;
        let (form, numbers) = row.kind.form(&masses)?;
        self.form[site] = form as i32;
        for (slot, k) in (MOST * site..).zip(&row.from) {
            self.relative[slot] = *k as i32 - row.site as i32;
        }
        self.numbers[MOST * site..MOST * (site + 1)].copy_from_slice(&numbers);
        Ok(())
    }

    /// Checks that a site has no mass, and that the particles that construct it have some.
    fn check_masses(
        &self,
        site: usize,
        atoms: impl Iterator<Item = usize>,
        s: &Snapshot,
    ) -> std::result::Result<(), String> {
        let m = s.mass[site];
        if m != 0.0 {
            return Err(format!(
                "particle {site} is a site and has the mass {m}; set its mass to 0 in the file or generator"
            ));
        }
        for atom in atoms {
            if self.form[atom] != 0 {
                return Err(format!(
                    "particle {atom} is a site and cannot construct the site {site}; name the particles that construct both"
                ));
            }
            if s.mass[atom] == 0.0 {
                return Err(format!("particle {atom} constructs the site {site} and has no mass"));
            }
        }
        Ok(())
    }

    /// Returns the tags of the particles that construct a site.
    fn atoms(&self, site: usize) -> Vec<usize> {
        let all = self.relative[MOST * site..MOST * (site + 1)].iter();
        all.take_while(|r| **r != 0).map(|r| site.wrapping_add_signed(*r as isize)).collect()
    }

    /// Checks all sites and lists the uses of each particle, in the order of the sites' tags.
    fn link(&mut self, s: &Snapshot) -> std::result::Result<(), String> {
        for site in (0..s.len()).rev() {
            if self.form[site] == 0 {
                continue;
            }
            let (form, atoms) = (self.form[site], self.atoms(site));
            if !(LINEAR as i32..=NORMAL as i32).contains(&form) {
                return Err(format!("particle {site}: unknown form {form} of a site"));
            }
            let least = [1, 2, 3, 3, 4][form as usize - 1];
            if atoms.len() < least {
                return Err(format!(
                    "particle {site}: a site of form {form} needs {least} particles, not {}",
                    atoms.len()
                ));
            }
            if let Some(atom) = atoms.iter().find(|a| **a >= s.len()) {
                return Err(format!("particle {site}: unknown particle {atom} constructs this site"));
            }
            self.check_masses(site, atoms.iter().copied(), s)?;
            for (k, atom) in atoms.into_iter().enumerate() {
                let relative = site as i64 - atom as i64;
                // 8 times a difference of tags, and 0 to 7, in 32 bits
                if relative.abs() >= 1 << 28 {
                    return Err(format!(
                        "particle {atom} is too far in the order from the site {site} that it constructs"
                    ));
                }
                let head = (MOST + 1) * atom;
                self.uses[(MOST + 1) * site + k + 1] = self.uses[head];
                self.uses[head] = (8 * relative) as i32 + k as i32;
            }
        }
        Ok(())
    }

    /// Puts all sites in their positions.
    fn place(&self, s: &mut Snapshot) -> std::result::Result<(), String> {
        let half = 0.5 * s.box_length.into_iter().take(s.dimensions as usize).fold(f64::INFINITY, f64::min);
        for site in (0..s.len()).filter(|i| self.form[*i] != 0) {
            let atoms = self.atoms(site);
            let first = atoms[0];
            let (mut arms, mut rates) = ([Vec3::<f64>::zero(); MOST], [Vec3::<f64>::zero(); MOST]);
            for (k, atom) in atoms.iter().enumerate() {
                let nearest = |x: usize| {
                    let (d, l) = (s.position[*atom][x] - s.position[first][x], s.box_length[x]);
                    if l > 0.0 { d - l * (d / l).round() } else { 0.0 }
                };
                arms[k] = Vec3::new(nearest(0), nearest(1), nearest(2));
                rates[k] = Vec3::from(s.velocity[*atom]) - Vec3::from(s.velocity[first]);
            }
            let numbers = &self.numbers[MOST * site..MOST * (site + 1)];
            let (d, rate, defined) = if self.form[site] == LINEAR as i32 {
                let sum =
                    |of: &[Vec3<f64>; MOST]| of.iter().zip(numbers).fold(Vec3::zero(), |sum, (u, w)| sum + *u * *w);
                (sum(&arms), sum(&rates), true)
            } else {
                let p = Vec3::new(numbers[0], numbers[1], numbers[2]);
                place_site(self.form[site] as u32, p, arms[1], arms[2], arms[3], rates[1], rates[2], rates[3])
            };
            if !defined {
                return Err(format!(
                    "the direction of the site {site} is not defined: the particles {atoms:?} that construct it coincide or lie on a line"
                ));
            }
            if d.norm() >= half {
                return Err(format!(
                    "the site {site} is {} from particle {first}, which must be less than half the box length, {half}",
                    d.norm()
                ));
            }
            let (x, v) = (d.f64(), rate.f64());
            s.position[site] = std::array::from_fn(|k| s.position[first][k] + x[k]);
            s.velocity[site] = std::array::from_fn(|k| s.velocity[first][k] + v[k]);
            s.image[site] = s.image[first];
            wrap(&mut s.position[site], &mut s.image[site], s.box_length, 1.0);
        }
        Ok(())
    }

    /// Stores the arrays in a state.
    fn write(self, s: &mut Snapshot) {
        let mut put =
            |name: &str, width: usize, values| s.arrays.insert(name.into(), Array { width: width as u32, values });
        put(FORM, 1, Values::Int(self.form));
        put(ATOMS, MOST, Values::Int(self.relative));
        put(NUMBERS, MOST, Values::Real(self.numbers));
        put(USES, MOST + 1, Values::Int(self.uses));
    }
}
