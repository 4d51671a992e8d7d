//! Conversion and chain lengths.

use galamost_measure::molecules::joined;
use galamost_measure::{Cell, Table};
use galamost_plugin_api::prelude::*;
use std::collections::BTreeMap;

/// Measures conversion, average chain lengths, and their distribution, one row for each sample.
///
/// A molecule is a set of particles connected by bonds (of the types in `bonds`). Its length n is the number of its
/// particles of the types in `count`. Molecules with n < `shortest` are ignored. `file` is a CSV table:
///
/// | column | meaning |
/// |---|---|
/// | `step`, `time` | step number, time |
/// | `conversion` | Σ min(h_cris, g)/Σ g over particles with g groups (`groups`; empty without it) |
/// | `ends` | number of particles with h_init = 1 |
/// | `molecules` | number of molecules |
/// | `number_average` | Σ n/Σ 1 |
/// | `weight_average` | Σ n²/Σ n |
/// | `dispersity` | weight average/number average |
/// | `largest` | largest n |
/// | `reduced` | weight average without one molecule of the largest length; its maximum marks the gel point |
///
/// Averages over no molecules are 0. `distribution` writes the length distribution: `step`, `length`, `molecules`. A
/// file name that ends in `.parquet` selects a folder of Parquet files.
///
/// ```ron
/// ChainLengths(every: 100, file: "lengths.csv", groups: { "A": 1, "B": 2 }, distribution: "distribution.csv")
/// ```
#[component(Analyzer, "ChainLengths")]
#[derive(Params)]
pub struct ChainLengths {
    /// Steps between samples.
    #[param(at_least = 1)]
    every: u64,
    /// Output file for the averages.
    file: String,
    /// Output file for the distribution.
    distribution: Option<String>,
    /// Number of reactive groups of a particle of each type; default: 0.
    groups: Option<TypeMap<Spanned<u32>>>,
    /// Bond types that connect molecules; default: all.
    bonds: Option<Spanned<Vec<Spanned<String>>>>,
    /// Particle types to count; default: all.
    count: Option<Spanned<Vec<Spanned<String>>>>,
    /// Smallest length of a molecule.
    #[param(default = 1, at_least = 1)]
    shortest: u32,
    #[param(skip)]
    chosen: Chosen,
    #[param(skip)]
    rows: Vec<Table>,
}

const AVERAGES: [&str; 10] = [
    "step",
    "time",
    "conversion",
    "ends",
    "molecules",
    "number_average",
    "weight_average",
    "dispersity",
    "largest",
    "reduced",
];

const DISTRIBUTION: [&str; 3] = ["step", "length", "molecules"];

/// Parameters by type index.
#[derive(Clone, Debug, Default)]
struct Chosen {
    groups: Vec<u32>,
    joins: Vec<bool>,
    counts: Vec<bool>,
}

fn index_of(what: &str, types: &[String], name: &str, at: galamost_plugin_api::error::Position) -> Result<usize> {
    types.iter().position(|t| t == name).ok_or_else(|| {
        let known = if types.is_empty() {
            "the system has none".into()
        } else {
            format!("known types are {}", types.join(", "))
        };
        InputError::at(at, format!("unknown {what} type \"{name}\"; {known}")).into()
    })
}

fn chosen(what: &str, types: &[String], names: Option<&Spanned<Vec<Spanned<String>>>>) -> Result<Vec<bool>> {
    if let Some(list) = names.filter(|list| list.value.is_empty()) {
        let text = format!("the list is empty; name at least one {what} type, or omit the field to select all");
        return Err(InputError::at(list.at, text).into());
    }
    let mut all = vec![names.is_none(); types.len()];
    for name in names.into_iter().flat_map(|list| &list.value) {
        all[index_of(what, types, &name.value, name.at)?] = true;
    }
    Ok(all)
}

/// Returns the number of molecules of each length; `counts` selects the particles to count.
pub fn lengths(n: usize, bonds: impl Iterator<Item = [u32; 2]>, counts: impl Fn(usize) -> bool) -> BTreeMap<u32, u64> {
    let mut size = vec![0u32; n];
    for (_, first) in joined(n, bonds).into_iter().enumerate().filter(|(i, _)| counts(*i)) {
        size[first as usize] += 1;
    }
    let mut found = BTreeMap::new();
    size.into_iter().filter(|n| *n > 0).for_each(|n| *found.entry(n).or_insert(0) += 1);
    found
}

/// Returns number average, weight average, largest length, and weight average without the largest molecule.
fn averages(lengths: &BTreeMap<u32, u64>) -> [f64; 4] {
    let moment = |k: i32| lengths.iter().map(|(n, m)| f64::from(*n).powi(k) * *m as f64).sum::<f64>();
    let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    let largest = lengths.keys().next_back().map_or(0.0, |n| f64::from(*n));
    let reduced = over(moment(2) - largest * largest, moment(1) - largest);
    [over(moment(1), moment(0)), over(moment(2), moment(1)), largest, reduced]
}

impl Analyzer for ChainLengths {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        (needs.wants.particles, needs.wants.topology) = (true, true);
        let mut groups = vec![0; system.types.len()];
        for (name, number) in self.groups.iter().flat_map(|g| g.iter()) {
            groups[index_of("particle", &system.types, name, number.at)?] = number.value;
        }
        self.chosen = Chosen {
            groups,
            joins: chosen("bond", &system.bond_types, self.bonds.as_ref())?,
            counts: chosen("particle", &system.types, self.count.as_ref())?,
        };
        for file in std::iter::once(&self.file).chain(&self.distribution) {
            let mut rows = Table::default();
            rows.bind(system, needs, file);
            self.rows.push(rows);
        }
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        let (i, x) = (Cell::Int(None), Cell::Number(None));
        let averages = [&i, &x, &x, &i, &i, &x, &x, &x, &x, &x].map(Cell::clone);
        let blanks = [(&AVERAGES[..], &averages[..]), (&DISTRIBUTION, &[i.clone(), i.clone(), i])];
        for (rows, (names, blank)) in self.rows.iter_mut().zip(blanks) {
            rows.start()?;
            rows.begin(names, blank)?;
        }
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let (t, kind) = (&self.chosen, frame.type_id());
        let bonds = frame.bonds().iter().filter(|b| t.joins[b.kind as usize]).map(|b| b.tags);
        let mut found = lengths(kind.len(), bonds, |i| t.counts[kind[i] as usize]);
        found.retain(|n, _| *n >= self.shortest);
        let [number, weight, largest, reduced] = averages(&found);
        let state = |name: &str| frame.int_array(name).map_or([].as_slice(), |(_, v)| v);
        let (init, cris) = (state("h_init"), state("h_cris"));
        let (mut all, mut reacted) = (0u64, 0u64);
        for (i, kind) in kind.iter().enumerate() {
            let groups = t.groups[*kind as usize];
            all += u64::from(groups);
            reacted += u64::from(groups.min(cris.get(i).map_or(0, |c| (*c).max(0) as u32)));
        }
        let conversion = (all > 0).then(|| reacted as f64 / all as f64);
        let ends = init.iter().filter(|i| **i == 1).count();
        let molecules: u64 = found.values().sum();
        let dispersity = if number > 0.0 { weight / number } else { 0.0 };
        let (step, time) = (frame.step(), frame.time());
        let mut row: Vec<Cell> = vec![step.into(), time.into(), conversion.into(), ends.into(), molecules.into()];
        row.extend([number, weight, dispersity, largest, reduced].map(Cell::from));
        let distribution = found.iter().map(|(n, m)| vec![step.into(), (*n).into(), (*m).into()]).collect();
        let tables = [(&AVERAGES[..], vec![row]), (&DISTRIBUTION, distribution)];
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
    fn molecules_and_their_averages() {
        // a ring of three, a chain of two, a single particle; particle 6 is not counted
        let bonds = [[0, 1], [1, 2], [2, 0], [4, 3], [3, 6]];
        let found = lengths(7, bonds.into_iter(), |i| i != 6);
        assert_eq!(found, BTreeMap::from([(1, 1), (2, 1), (3, 1)]));
        assert_eq!(averages(&found), [2.0, 14.0 / 6.0, 3.0, 5.0 / 3.0]);
        assert_eq!(averages(&BTreeMap::new()), [0.0; 4]);
    }
}
