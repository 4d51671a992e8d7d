//! The generator of sites.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::intern;
use galamost_sites::{FORM, Row, SiteKind, Table};
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
/// | `ThreeFad(theta_deg, d)` | 3fad | r_i + d cos θ r_ij/\|r_ij\| + d sin θ p/\|p\|, p = r_jk − (r_ij·r_jk) r_ij/r_ij², θ = `theta_deg` |
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
            for site in (0..s.len()).filter(|i| table.is_site(*i)) {
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
