//! The rows of a table that a run adds to. Rows that were read are not read again.

use crate::output::numbers::significant;
use crate::output::series::{Series, SeriesCells, is_parquet, size_on_disk};
use crate::plot::{default_x, default_y};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Number of bytes that are read at once.
const CHUNK: usize = 1 << 22;
/// Largest number of points of a curve; of longer ones, every second, fourth, … row is kept.
const MOST_POINTS: usize = 4096;
/// Largest size in bytes of a Parquet table, which is read as a whole.
const LARGEST_PARQUET: u64 = 50_000_000;
/// Largest number of curves.
const MOST_CURVES: usize = 3;

/// A column over time, thinned out to at most 4096 points.
#[derive(Clone, Debug, Default)]
pub struct LiveCurve {
    /// Name of the column.
    pub name: String,
    /// Points, evenly spaced in rows.
    pub points: Vec<(f64, f64)>,
    /// Rows per point.
    stride: usize,
    /// Rows so far.
    rows: usize,
    /// Value of the last row.
    last: Option<f64>,
}

impl LiveCurve {
    /// Makes an empty curve.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), stride: 1, ..Self::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, x: f64, y: f64) {
        self.last = Some(y);
        if self.rows.is_multiple_of(self.stride) && x.is_finite() && y.is_finite() {
            self.points.push((x, y));
        }
        self.rows += 1;
        if self.points.len() >= MOST_POINTS {
            let mut k = 0;
            self.points.retain(|_| {
                k += 1;
                k % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Returns the value of the last row as text.
    pub fn last_value(&self) -> Option<String> {
        self.last.map(|v| significant(v, 5))
    }

    /// Returns the range of values to show: that of the later half of the points where a transient at the start would hide it,
    /// otherwise that of all points.
    pub fn range(&self) -> [f64; 2] {
        let extent = |points: &[(f64, f64)]| {
            points.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], p| [l.min(p.1), h.max(p.1)])
        };
        let ([low, high], all) = (extent(&self.points[self.points.len() / 2..]), extent(&self.points));
        let [low, high] = if high > low && all[1] - all[0] > 4.0 * (high - low) {
            [low - 0.5 * (high - low), high + 0.5 * (high - low)]
        } else {
            all
        };
        match high - low {
            d if !d.is_finite() => [0.0, 1.0],
            d if d <= 1e-12 * high.abs().max(low.abs()) => {
                [low - 0.05 * low.abs().max(1e-9), high + 0.05 * high.abs().max(1e-9)]
            }
            d => [low - 0.05 * d, high + 0.05 * d],
        }
    }
}

/// A table and what was read of it.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// Device and number of the file, which a new file of the same name does not have.
    identity: (u64, u64),
    /// Bytes that were read, up to the end of a line.
    offset: u64,
    /// The line of names.
    header: String,
    /// Name of the horizontal axis.
    pub x: String,
    /// The columns that are shown.
    pub curves: Vec<LiveCurve>,
    /// Whether this is not a table with a row for each step, or a Parquet table too large to be read again and again.
    ignored: bool,
    /// Step of the last row.
    pub step: Option<f64>,
    /// When the file was changed last.
    pub modified: SystemTime,
}

impl Tail {
    /// Starts with an unread table.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            identity: (0, 0),
            offset: 0,
            header: String::new(),
            x: String::new(),
            curves: vec![],
            ignored: false,
            step: None,
            modified: SystemTime::UNIX_EPOCH,
        }
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads new rows. A table that was replaced or cut is read from its beginning. What cannot be read now, such as a row that
    /// is being written, is read by a later call.
    pub fn update(&mut self) {
        let Ok(metadata) = std::fs::metadata(&self.path) else { return };
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if is_parquet(&self.path) {
            if modified != self.modified
                && size_on_disk(&self.path).is_ok_and(|n| n <= LARGEST_PARQUET)
                && let Ok(series) = Series::read(&self.path)
            {
                *self = Self { modified, ..Self::new(&self.path) };
                self.add(&series);
            }
            return;
        }
        let identity = (metadata.dev(), metadata.ino());
        if identity != self.identity || metadata.len() < self.offset {
            *self = Self { identity, ..Self::new(&self.path) };
        }
        self.modified = modified;
        while !self.ignored && metadata.len() > self.offset && self.read_chunk().is_some_and(|more| more) {}
    }

    /// Reads the complete lines of the next bytes. Returns whether there were any.
    fn read_chunk(&mut self) -> Option<bool> {
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.offset)).ok()?;
        let mut bytes = Vec::new();
        file.take(CHUNK as u64).read_to_end(&mut bytes).ok()?;
        bytes.truncate(bytes.iter().rposition(|b| *b == b'\n')? + 1);
        let text = String::from_utf8(bytes).ok()?;
        self.offset += text.len() as u64;
        let mut rows = text.as_str();
        if self.header.is_empty() {
            let is_comment = |l: &str| l.starts_with('#') || l.trim().is_empty();
            let lines: usize = rows.split_inclusive('\n').take_while(|l| is_comment(l)).map(str::len).sum();
            let (head, rest) = rows[lines..].split_once('\n')?;
            self.header = head.into();
            rows = rest;
        }
        if !rows.is_empty() {
            self.add(&Series::parse(&self.path, &format!("{}\n{rows}", self.header)).ok()?);
        }
        Some(true)
    }

    /// Adds the rows of a table; the first ones determine the columns. A table without a column `step`, or with several rows for
    /// each step, has no curves.
    fn add(&mut self, series: &Series) {
        let steps = series.find("step").and_then(|c| c.numbers()).filter(|s| !s.is_empty());
        self.ignored = steps.is_none();
        let Some(steps) = steps else { return };
        if self.step.is_none() {
            let is_profile = steps.windows(2).any(|w| w[0] == w[1]);
            let x = default_x(series).filter(|x| ["time", "step"].contains(&x.name.as_str()) && !is_profile);
            self.ignored = x.is_none();
            let Some(x) = x else { return };
            self.x = x.name.clone();
            let names = default_y(series, &self.x).into_iter().flatten().take(MOST_CURVES);
            self.curves = names.map(LiveCurve::new).collect();
        }
        let numbers = |name: &str| match series.find(name).map(|c| &c.cells) {
            Some(SeriesCells::Numbers(v)) => v.as_slice(),
            _ => &[],
        };
        let along = numbers(&self.x);
        for curve in &mut self.curves {
            along.iter().zip(numbers(&curve.name)).for_each(|(x, y)| curve.push(*x, *y));
        }
        self.step = steps.last().copied();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn rows_are_read_once_and_replaced_tables_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.csv");
        let add = |text: &str| {
            let mut file = File::options().append(true).create(true).open(&path).expect("a file");
            file.write_all(text.as_bytes()).expect("written");
        };
        let mut tail = Tail::new(&path);
        tail.update();
        assert!(tail.step.is_none() && tail.curves.is_empty());
        add("# run 1\nstep,time,kT,pressure\n0,0.0,1.0,2.0\n10,0.1,1.1,2.1\n20,0.2,1.2,2");
        tail.update();
        let names: Vec<&str> = tail.curves.iter().map(|c| c.name.as_str()).collect();
        assert_eq!((tail.step, tail.x.as_str(), names), (Some(10.0), "time", vec!["kT", "pressure"]));
        // the end of the row that was being written
        add(".2\n");
        tail.update();
        assert_eq!(tail.curves[1].points, [(0.0, 2.0), (0.1, 2.1), (0.2, 2.2)]);
        assert_eq!(tail.curves[0].last_value().as_deref(), Some("1.2"));
        // cut by a resume, as by a new run
        std::fs::write(&path, "step,time,kT,pressure\n0,0.0,5.0,2.0\n").expect("written");
        tail.update();
        assert_eq!((tail.step, tail.curves[0].points.as_slice()), (Some(0.0), &[(0.0, 5.0)][..]));
    }

    #[test]
    fn long_curves_are_thinned_out_evenly() {
        let mut c = LiveCurve::new("kT");
        (0..100_000).for_each(|k| c.push(f64::from(k), 2.0 * f64::from(k)));
        assert!(c.points.len() >= MOST_POINTS / 2 && c.points.len() < MOST_POINTS, "{}", c.points.len());
        assert!(c.points.windows(2).all(|w| w[1].0 - w[0].0 == 32.0));
        assert_eq!((c.points[0], c.last), ((0.0, 0.0), Some(199_998.0)));
    }

    #[test]
    fn a_transient_does_not_hide_the_rest() {
        let mut c = LiveCurve::new("potential");
        (0..100).for_each(|k| c.push(f64::from(k), if k == 0 { 31_000.0 } else { f64::from(k % 2) }));
        let [low, high] = c.range();
        assert!(low > -1.0 && high < 2.0 && low < 0.0 && high > 1.0, "{low} {high}");
        let mut constant = LiveCurve::new("kT");
        constant.push(0.0, 3.0);
        let [low, high] = constant.range();
        assert!(low < 3.0 && high > 3.0);
        let [low, high] = LiveCurve::new("empty").range();
        assert!(low < high);
    }
}
