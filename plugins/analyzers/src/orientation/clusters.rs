//! Clusters of particles that are bonded by distance and patches.

use crate::orientation::chosen::{need_orientations, quaternions, selected_types, tags};
use crate::orientation::pairs::near;
use crate::selection;
use galamost_measure::molecules::joined;
use galamost_measure::{Cell, Table};
use galamost_plugin_api::prelude::*;

/// One patch.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Patch {
    /// Half opening angle β of the patch.
    #[param(unit = "degree", above = 0.0, at_most = 180.0)]
    beta_deg: f64,
    /// Direction of the patch from the center, in the body frame.
    #[param(default = [0.0, 0.0, 1.0])]
    direction: [f64; 3],
}

/// Measures the sizes of clusters of particles.
///
/// Two particles are bonded if they are closer than `r_bond` and, with `patches`, if the line of centers crosses a
/// patch of both. A cluster is a connected set of bonded particles.
///
/// `file` is a CSV table with one row for each sample: `step`, `time`, `particles`, `bonds`, `clusters` (including
/// single particles), `singles`, `mean` = N/clusters, `weight_mean` = Σ s² n_s / Σ s n_s, `largest`. `sizes` writes the
/// size distribution: `step`, `size`, `clusters`, one row for each size that occurs. A file name that ends in
/// `.parquet` selects a folder of Parquet files.
///
/// The system must have three dimensions. With `patches`, only particles of the types listed there are considered; otherwise those of `types`, or all.
///
/// ```ron
/// Clusters(every: 5000, file: "clusters.csv", r_bond: 0.9, sizes: "sizes.csv", patches: { "A": [(beta_deg: 90.0)] })
/// ```
#[component(Analyzer, "Clusters")]
#[derive(Debug, Params)]
pub struct Clusters {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// Output file.
    file: String,
    /// Bond distance: closer particles are bonded.
    #[param(unit = "length", above = 0.0)]
    r_bond: Spanned<f64>,
    /// Output file for the size distribution.
    sizes: Option<String>,
    /// Patches for each particle type that has them.
    patches: Option<Spanned<TypeMap<Vec<Patch>>>>,
    /// Particle types to consider; default: all. Excludes `patches`.
    types: Option<Spanned<Vec<String>>>,
    #[param(skip)]
    selected: Vec<bool>,
    /// For each type its patches as direction and cos β; `None` if only the distance matters.
    #[param(skip)]
    directions: Option<Vec<Vec<(Vec3<f64>, f64)>>>,
    #[param(skip)]
    rows: Vec<Table>,
}

/// Returns the sizes of the clusters of n particles with these bonds.
fn sizes(n: usize, bonds: &[(usize, usize)]) -> Vec<usize> {
    let mut size = vec![0; n];
    for first in joined(n, bonds.iter().map(|(i, j)| [*i as u32, *j as u32])) {
        size[first as usize] += 1;
    }
    size.retain(|s| *s > 0);
    size
}

impl Analyzer for Clusters {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions != 3 {
            return Err(Error::input("requires three dimensions"));
        }
        if self.r_bond.value > system.half_box() {
            let message = format!("`r_bond` {} exceeds half of the shortest box length", self.r_bond.value);
            return Err(InputError::at(self.r_bond.at, message).into());
        }
        self.selected = selected_types(self.types.as_ref(), system)?;
        if let Some(patches) = &self.patches {
            need_orientations(system)?;
            if let Some(types) = &self.types {
                return Err(InputError::at(types.at, "`types` and `patches` exclude each other; remove one").into());
            }
            let mut directions = vec![vec![]; system.types.len()];
            for (name, all) in patches.value.iter() {
                let particle_type = selection::particle_type(name, patches.at, system)?;
                for patch in all {
                    let n = Vec3::<f64>::from(patch.direction);
                    if n.norm() == 0.0 {
                        return Err(InputError::at(
                            patches.at,
                            format!("the `direction` of a patch of type \"{name}\" is zero"),
                        )
                        .into());
                    }
                    directions[particle_type].push((n / n.norm(), patch.beta_deg.to_radians().cos()));
                }
            }
            self.selected = directions.iter().map(|l| !l.is_empty()).collect();
            self.directions = Some(directions);
        }
        needs.period = self.every;
        needs.plain_images = true;
        needs.wants.particles = true;
        for file in std::iter::once(&self.file).chain(&self.sizes) {
            let mut rows = Table::default();
            rows.bind(system, needs, file);
            self.rows.push(rows);
        }
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.rows.iter_mut().try_for_each(Table::start)
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let length = frame.box_length();
        if length.iter().any(|l| self.r_bond.value > 0.5 * l) {
            return Err(Error::Run(format!("`r_bond` {} exceeds half of a box length", self.r_bond.value)));
        }
        let tags = tags(frame, &self.selected);
        let position: Vec<[f64; 3]> = tags.iter().map(|t| frame.position()[*t]).collect();
        let mut bonds = vec![];
        if let Some(directions) = &self.directions {
            let q = quaternions(frame)?;
            let particle_type = frame.type_id();
            let through = |tag: usize, towards: Vec3<f64>| {
                let seen = q[tag].rotate_back(towards);
                directions[particle_type[tag] as usize].iter().any(|(n, cos)| n.dot(seen) >= *cos)
            };
            near(&position, length, self.r_bond.value, |i, j, d, r2| {
                let e = Vec3::<f64>::from(d) / r2.sqrt();
                if through(tags[i], e) && through(tags[j], e * -1.0) {
                    bonds.push((i, j));
                }
            });
        } else {
            near(&position, length, self.r_bond.value, |i, j, _, _| bonds.push((i, j)));
        }
        let mut found = sizes(tags.len(), &bonds);
        found.sort_unstable();
        let n = tags.len() as f64;
        let squares: f64 = found.iter().map(|s| (s * s) as f64).sum();
        let per = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        let step = frame.step();
        let mut row: Vec<Cell> = vec![step.into(), frame.time().into()];
        let singles = found.iter().filter(|s| **s == 1).count();
        row.extend([tags.len(), bonds.len(), found.len(), singles].map(Cell::from));
        row.extend([per(n, found.len() as f64), per(squares, n)].map(Cell::from));
        row.push((*found.last().unwrap_or(&0)).into());
        let names = ["step", "time", "particles", "bonds", "clusters", "singles", "mean", "weight_mean", "largest"];
        let distribution = found.chunk_by(|a, b| a == b).map(|c| vec![step.into(), c[0].into(), c.len().into()]);
        let tables = [(&names[..], vec![row]), (&["step", "size", "clusters"], distribution.collect())];
        for (rows, (names, lines)) in self.rows.iter_mut().zip(tables) {
            rows.append(names, &lines)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.iter_mut().try_for_each(Table::finish)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let mut all = vec![];
        for rows in &mut self.rows {
            all.extend(rows.save()?);
        }
        Ok(all)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.rows.iter_mut().try_fold(state, |rest, rows| rows.load(rest)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_make_clusters() {
        let mut found = sizes(8, &[(0, 1), (3, 2), (1, 2), (6, 7), (7, 6)]);
        found.sort_unstable();
        assert_eq!(found, [1, 1, 2, 4]);
        assert!(sizes(0, &[]).is_empty());
    }
}
