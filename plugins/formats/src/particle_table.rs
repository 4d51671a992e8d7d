//! The `ParticleTable` analyzer.

use crate::lammps_dump::columns::{Cells, Column, Entry, choose, name_of};
use galamost_measure::{Cell, GrowingTable};
use galamost_plugin_api::prelude::*;

/// Writes a table with a row for each particle and sample: `step`, `time`, and the columns that `columns` lists.
///
/// The columns are those of `LammpsDump`, with `element` as text: positions, velocities, forces, energies, virials and others.
/// The file is CSV, or a folder of Parquet files if its name ends in `.parquet`, for pandas, polars or DuckDB. A table grows by
/// the number of particles with each sample; use `LammpsDump` or `Gsd` for trajectories of large systems.
///
/// ```ron
/// ParticleTable(every: 100, file: "particles.parquet", columns: ["id", "element", "x", "y", "z", "energy"])
/// ```
#[component(Analyzer, "ParticleTable")]
#[derive(Debug, Params)]
pub struct ParticleTable {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    file: String,
    /// Columns, in order.
    columns: Spanned<Vec<String>>,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    chosen: Vec<Column>,
    #[param(skip)]
    rows: GrowingTable,
}

impl Analyzer for ParticleTable {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        self.system = system.clone();
        self.rows.bind(system, needs, &self.file);
        self.chosen = choose(&self.columns, system, needs)?;
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.rows.start()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let names: Vec<&str> = ["step", "time"].into_iter().chain(self.chosen.iter().map(|c| name_of(*c))).collect();
        let snapshot = frame.snapshot(&self.system);
        let cells = Cells::new(&snapshot, &self.chosen);
        let cell = |column: &Column, tag: usize| match cells.of(*column, tag) {
            Entry::Number(x) => Cell::from(x),
            Entry::Whole(n) => Cell::from(n),
            Entry::Text(text) => Cell::from(text),
        };
        let row = |tag: usize| {
            let first = [Cell::from(frame.step()), Cell::from(frame.time())];
            first.into_iter().chain(self.chosen.iter().map(|c| cell(c, tag))).collect()
        };
        let rows: Vec<Vec<Cell>> = (0..snapshot.len()).map(row).collect();
        self.rows.append(&names, &rows)
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.save()
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.rows.load(state).map(drop)
    }
}
