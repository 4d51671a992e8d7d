//! Clusters of particles that are bonded by distance and patches.

use crate::orientation::chosen::{kinds, need_orientations, quaternions, tags};
use crate::orientation::pairs::near;
use crate::selection::particle_type;
use galamost_measure::molecules::joined;
use galamost_measure::{Cell, Table};
use galamost_plugin_api::prelude::*;

/// One patch.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Look {
    /// β, half the angle that the patch takes up, in degrees.
    #[param(unit = "degree", above = 0.0, at_most = 180.0)]
    beta_deg: f64,
    /// Direction from the center, in the frame of the body.
    #[param(default = [0.0, 0.0, 1.0])]
    direction: [f64; 3],
}

/// Clusters every `every` steps: two particles are bonded if they are nearer than `r_bond` and, where `patches` are given,
/// the line of centers leaves both through a patch; a cluster is what bonds hold together.
///
/// Columns of `file`: `step`, `time`, `particles`, `bonds`, `clusters` (single particles too), `singles`, `mean` = N/clusters,
/// `weight_mean` = Σ s² n_s / Σ s n_s, `largest`. `sizes` gets the distribution: `step`, `size`, `clusters`, one row for each
/// size that occurs. Where the name of a file ends in `.parquet`, the table is a folder of Parquet files. With `patches` only particles of the types named there are looked at, else those of `types`, or all.
///
/// ```ron
/// Clusters(every: 5000, file: "clusters.csv", r_bond: 0.9, sizes: "sizes.csv", patches: { "A": [(beta_deg: 90.0)] })
/// ```
#[component(Analyzer, "Clusters")]
#[derive(Debug, Params)]
pub struct Clusters {
    /// Steps from one sample to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write.
    file: String,
    /// Distance below which particles are bonded.
    #[param(unit = "length", above = 0.0)]
    r_bond: Spanned<f64>,
    /// File for the distribution of sizes.
    sizes: Option<String>,
    /// Patches of each type of particles that has them.
    patches: Option<Spanned<TypeMap<Vec<Look>>>>,
    /// Types of particles to look at; without it all. Not beside `patches`.
    types: Option<Spanned<Vec<String>>>,
    #[param(skip)]
    kinds: Vec<bool>,
    /// For each type its patches: direction and cos β; `None` if distance alone counts.
    #[param(skip)]
    looks: Option<Vec<Vec<(Vec3<f64>, f64)>>>,
    #[param(skip)]
    rows: Vec<Table>,
}

/// Sizes of the clusters of n particles with these bonds.
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
            return Err(Error::input("needs three dimensions"));
        }
        if self.r_bond.value > system.half_box() {
            let message = format!("r_bond {} is more than half the shortest box length", self.r_bond.value);
            return Err(InputError::at(self.r_bond.at, message).into());
        }
        self.kinds = kinds(self.types.as_ref(), system)?;
        if let Some(patches) = &self.patches {
            need_orientations(system)?;
            if let Some(types) = &self.types {
                return Err(InputError::at(types.at, "`patches` says already which types are looked at").into());
            }
            let mut looks = vec![vec![]; system.types.len()];
            for (name, all) in patches.value.iter() {
                let kind = particle_type(name, patches.at, system)?;
                for look in all {
                    let n = Vec3::<f64>::from(look.direction);
                    if n.norm() == 0.0 {
                        return Err(InputError::at(
                            patches.at,
                            format!("a direction of type \"{name}\" has no length"),
                        )
                        .into());
                    }
                    looks[kind].push((n / n.norm(), look.beta_deg.to_radians().cos()));
                }
            }
            self.kinds = looks.iter().map(|l| !l.is_empty()).collect();
            self.looks = Some(looks);
        }
        needs.period = self.every;
        needs.wants.particles = true;
        for file in std::iter::once(&self.file).chain(&self.sizes) {
            let mut rows = Table::default();
            rows.bind(system, file);
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
            return Err(Error::Run(format!("r_bond {} is more than half of a box length", self.r_bond.value)));
        }
        let tags = tags(frame, &self.kinds);
        let position: Vec<[f64; 3]> = tags.iter().map(|t| frame.position()[*t]).collect();
        let mut bonds = vec![];
        if let Some(looks) = &self.looks {
            let q = quaternions(frame)?;
            let kind = frame.type_id();
            let through = |tag: usize, towards: Vec3<f64>| {
                let seen = q[tag].rotate_back(towards);
                looks[kind[tag] as usize].iter().any(|(n, cos)| n.dot(seen) >= *cos)
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
