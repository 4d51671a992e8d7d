//! Statistics of several tables as one table: a row for each run.

use super::{Skip, Statistics, read_statistics, too_short};
use crate::common::{file_failure, input_error};
use crate::output::parameters::{Parameter, differing, run_of_table};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use std::path::{Path, PathBuf};
use tracing::warn;

/// Returns the tables that the arguments name. An argument that is no file is a pattern with `*`, `?` and `[…]`.
///
/// # Errors
/// Returns an error if a pattern is invalid or matches nothing.
pub fn tables(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = vec![];
    for argument in arguments {
        let text = argument.to_string_lossy();
        if argument.exists() || !text.contains(['*', '?', '[']) {
            found.push(argument.clone());
            continue;
        }
        let paths = glob::glob(&text).map_err(|e| input_error(argument, format!("invalid pattern: {e}")))?;
        let matching: Vec<PathBuf> = paths.filter_map(Result::ok).collect();
        if matching.is_empty() {
            return Err(input_error(argument, "no file matches this pattern"));
        }
        found.extend(matching);
    }
    Ok(found)
}

/// Name of the column that lists the means that are not of equilibrium.
const LATE: &str = "not_equilibrated";

/// Returns a name for the mean of each column, so that neither it nor that of the standard error is another column's.
fn mean_names(head: &[String], columns: &[&Statistics]) -> Vec<String> {
    let mut used = head.to_vec();
    used.push(LATE.into());
    let name_of = |s: &&Statistics| {
        let mut name = s.name.clone();
        while used.contains(&name) || used.contains(&format!("{name}_error")) {
            name += "_mean";
        }
        used.extend([name.clone(), format!("{name}_error")]);
        name
    };
    columns.iter().map(name_of).collect()
}

/// The statistics of one table.
pub struct Run {
    /// The table.
    pub table: PathBuf,
    /// Its columns.
    pub statistics: Vec<Statistics>,
}

/// Statistics of the tables of several runs.
pub struct Runs {
    /// The runs, in the order of the arguments.
    pub runs: Vec<Run>,
    /// What differs between them.
    pub parameters: Vec<Parameter>,
}

impl Runs {
    /// Computes the statistics of all tables. Leaves out tables that are too short, with a warning.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read or if all tables are too short.
    pub fn of(tables: &[PathBuf], columns: &[String], skip: Skip) -> Result<Self, Failure> {
        let (mut runs, mut short) = (vec![], vec![]);
        for table in tables {
            let (series, statistics) = read_statistics(table, columns, skip)?;
            if statistics.is_empty() {
                short.push(Diagnostic::new(table, None, too_short(&series, columns, skip)?));
                continue;
            }
            runs.push(Run { table: table.clone(), statistics });
        }
        if runs.is_empty() {
            return Err(Failure::Input(short));
        }
        for mistake in short {
            warn!("{mistake}; the table is left out");
        }
        Ok(Self::new(runs))
    }

    /// Reads from the records of the runs what differs between them.
    pub fn new(runs: Vec<Run>) -> Self {
        let records: Vec<_> = runs.iter().map(|r| run_of_table(&r.table)).collect();
        Self { runs, parameters: differing(&records) }
    }

    /// Returns the columns of all runs, in the order in which they first appear.
    pub fn columns(&self) -> Vec<&Statistics> {
        let mut all: Vec<&Statistics> = vec![];
        for s in self.runs.iter().flat_map(|r| &r.statistics) {
            if !all.iter().any(|o| o.name == s.name) {
                all.push(s);
            }
        }
        all
    }

    /// Returns the table as CSV: table, parameters, rows used and skipped, mean and standard error of each column, and the
    /// columns that are not in equilibrium. A mean whose name is that of another column, such as a parameter, has the name
    /// `NAME_mean`.
    ///
    /// # Errors
    /// Returns an error if the text cannot be built.
    pub fn csv(&self) -> Result<String, Failure> {
        let columns = self.columns();
        let mut head = vec!["run".to_string()];
        head.extend(self.parameters.iter().map(|p| p.name.clone()));
        head.extend(["rows".into(), "skipped".into()]);
        let names = mean_names(&head, &columns);
        for (name, s) in names.iter().zip(&columns) {
            let unit = s.unit.as_ref().map_or(String::new(), |u| format!(" ({u})"));
            head.extend([format!("{name}{unit}"), format!("{name}_error{unit}")]);
        }
        head.push(LATE.into());
        let mut out = csv::Writer::from_writer(vec![]);
        let failed = |e: csv::Error| file_failure(Path::new("the table"), e);
        out.write_record(&head).map_err(failed)?;
        for (k, run) in self.runs.iter().enumerate() {
            let mut row = vec![run.table.to_string_lossy().into_owned()];
            row.extend(self.parameters.iter().map(|p| p.values[k].clone()));
            let first = run.statistics.first();
            row.extend([first.map_or(0, |s| s.rows).to_string(), first.map_or(0, |s| s.skipped).to_string()]);
            let mut late = vec![];
            for (name, column) in names.iter().zip(&columns) {
                let own = run.statistics.iter().find(|s| s.name == column.name);
                row.push(own.map_or(String::new(), |s| s.mean.to_string()));
                row.push(own.map_or(String::new(), |s| s.error.error.to_string()));
                if own.is_some_and(|s| !s.constant && !s.is_equilibrated()) {
                    late.push(name.as_str());
                }
            }
            row.push(late.join(" "));
            out.write_record(&row).map_err(failed)?;
        }
        let bytes = out.into_inner().map_err(|e| file_failure(Path::new("the table"), e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
