//! Reads a state from a frame.

use crate::gsd::layer::{Entry, Layer};
use crate::gsd::orientation::angular_momentum;
use crate::names::joined;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values, wrap_tilted};
use galamost_text::{Shape, tilted};
use std::path::Path;

/// Largest distance outside the box, in box lengths, that single precision can explain.
const TOLERANCE: f64 = 1e-6;

/// Opens a trajectory.
///
/// # Errors
/// Returns a message that completes "the file …".
pub fn open(path: &Path) -> Result<Layer, String> {
    let layer = Layer::open(path, false)?;
    if layer.schema != "hoomd" || !(1..=2).contains(&layer.version.0) {
        let (major, minor) = layer.version;
        return Err(format!("has the schema {} {major}.{minor}; expected hoomd 1 or 2", layer.schema));
    }
    Ok(layer)
}

/// Reads a frame; negative numbers count from the end.
///
/// # Errors
/// Returns a message that completes "the file …".
pub fn read(layer: &Layer, frame: i64) -> Result<Snapshot, String> {
    Reader { layer, frame: index(layer, frame)? }.state()
}

/// Returns the index of a frame; negative numbers count from the end.
fn index(layer: &Layer, frame: i64) -> Result<u64, String> {
    let frames = layer.frames();
    let number = if frame < 0 { frames.checked_add_signed(frame) } else { u64::try_from(frame).ok() };
    number.filter(|f| *f < frames).ok_or_else(|| format!("has {frames} frames; frame {frame} does not exist"))
}

/// Returns a warning if a frame has topology that is not read.
///
/// # Errors
/// Returns a message that completes "the file …".
pub fn ignored(layer: &Layer, frame: i64) -> Result<Option<String>, String> {
    let reader = Reader { layer, frame: index(layer, frame)? };
    let mut found = vec![];
    for (group, words) in [("constraints", "constraints"), ("pairs", "special pairs")] {
        let n: u32 = reader.number(&format!("{group}/N"))?.unwrap_or(0);
        if n > 0 {
            found.push(format!("{n} {words}"));
        }
    }
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    Ok((!found.is_empty()).then(|| format!("{} are not read", joined(&found))))
}

/// Converts a number of a file to an integer.
///
/// # Errors
/// Returns a message that completes "the file …" if it is not an integer of this type.
fn whole<T: TryFrom<i64>>(name: &str, x: f64) -> Result<T, String> {
    let fits = (x.fract() == 0.0).then_some(x as i64).and_then(|x| T::try_from(x).ok());
    fits.ok_or_else(|| format!("is damaged: {name} contains {x}"))
}

/// Converts rows of numbers to rows of integers.
fn wholes<T: TryFrom<i64> + Copy + Default, const W: usize>(
    name: &str,
    rows: Vec<[f64; W]>,
) -> Result<Vec<[T; W]>, String> {
    let one = |row: [f64; W]| {
        let mut out = [T::default(); W];
        for (to, x) in out.iter_mut().zip(row) {
            *to = whole(name, x)?;
        }
        Ok(out)
    };
    rows.into_iter().map(one).collect()
}

struct Reader<'l> {
    layer: &'l Layer,
    frame: u64,
}

impl Reader<'_> {
    /// Returns a chunk of this frame, or of frame 0.
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.layer.find(self.frame, name).or_else(|| self.layer.find(0, name))
    }

    /// Returns the single integer of a chunk.
    fn number<T: TryFrom<i64>>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(e) = self.entry(name) else { return Ok(None) };
        if (e.rows, e.columns) != (1, 1) {
            return Err(format!("is damaged: {name} has {} × {} values, expected one", e.rows, e.columns));
        }
        self.layer.numbers(e)?.first().map(|x| whole(name, *x)).transpose()
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        self.entry(name).map(|e| self.layer.texts(e)).transpose()
    }

    /// Returns `n` rows of `W` numbers of a group. Frame 0 only counts if its group has the same size.
    fn rows<const W: usize>(&self, group: &str, name: &str, n: usize) -> Result<Option<Vec<[f64; W]>>, String> {
        let name = format!("{group}/{name}");
        let here = self.layer.find(self.frame, &name);
        let Some(e) = here.or_else(|| self.layer.find(0, &name).filter(|e| e.rows == n as u64)) else {
            return Ok(None);
        };
        if e.rows != n as u64 || e.columns as usize != W {
            let (rows, columns) = (e.rows, e.columns);
            return Err(format!("is damaged: {name} has {rows} × {columns} values, expected {n} × {W}"));
        }
        Ok(Some(self.layer.numbers(e)?.as_chunks().0.to_vec()))
    }

    fn state(&self) -> Result<Snapshot, String> {
        let mut s = Snapshot {
            step: self.number("configuration/step")?.unwrap_or(0),
            dimensions: self.number("configuration/dimensions")?.unwrap_or(3),
            ..Snapshot::default()
        };
        self.box_length(&mut s)?;
        let n: u32 = self.number("particles/N")?.unwrap_or(0);
        let n = n as usize;
        let Some(position) = self.rows("particles", "position", n)? else {
            return Err(format!("has no positions in frame {}", self.frame));
        };
        s.position = position.into();
        s.image = match self.rows("particles", "image", n)? {
            Some(rows) => wholes("particles/image", rows)?,
            None => vec![[0; 3]; n],
        }
        .into();
        self.wrap(&mut s)?;
        s.velocity = self.rows("particles", "velocity", n)?.unwrap_or_else(|| vec![[0.0; 3]; n]).into();
        s.mass = self.rows::<1>("particles", "mass", n)?.map_or_else(|| vec![1.0; n], Vec::into_flattened).into();
        s.types = self.texts("particles/types")?.unwrap_or_else(|| vec!["A".into()]);
        s.type_id = match self.rows::<1>("particles", "typeid", n)? {
            Some(rows) => wholes("particles/typeid", rows)?.into_flattened(),
            None => vec![0; n],
        }
        .into();
        self.arrays(&mut s, n)?;
        (s.bond_types, s.bonds) = self.links("bonds")?;
        (s.angle_types, s.angles) = self.links("angles")?;
        (s.dihedral_types, s.dihedrals) = self.links("dihedrals")?;
        (s.improper_types, s.impropers) = self.links("impropers")?;
        Ok(s)
    }

    fn box_length(&self, s: &mut Snapshot) -> Result<(), String> {
        let Some(e) = self.entry("configuration/box") else { return Err("has no box".into()) };
        let values = self.layer.numbers(e)?;
        let [lx, ly, lz, tilts @ ..] = values.as_slice() else {
            return Err(format!("is damaged: configuration/box has {} values", values.len()));
        };
        s.box_length = [*lx, *ly, *lz];
        // tilts of this format are ratios
        if tilted(tilts, &[1.0]) {
            let [xy, xz, yz] = tilts else {
                return Err(format!("is damaged: configuration/box has {} values", values.len()));
            };
            s.tilt = [*xy, *xz, *yz];
        }
        if s.dimensions == 2 {
            // files of older programs have a meaningless lz
            let flat = Shape::of(s).flat();
            (s.box_length, s.tilt) = (flat.length, flat.tilt);
        }
        Ok(())
    }

    fn wrap(&self, s: &mut Snapshot) -> Result<(), String> {
        for tag in 0..s.position.len() {
            let (x, frame) = (s.position[tag], self.frame);
            if x.iter().any(|x| !x.is_finite()) {
                return Err(format!(
                    "is damaged: particle {tag} of frame {frame} is at {x:?}, which is not a finite number"
                ));
            }
            if !wrap_tilted(&mut s.position[tag], &mut s.image[tag], s.box_length, s.tilt, TOLERANCE) {
                return Err(format!("has particle {tag} of frame {frame} outside the box, at {x:?}"));
            }
        }
        Ok(())
    }

    fn arrays(&self, s: &mut Snapshot, n: usize) -> Result<(), String> {
        let mut real = |name: &str, width: u32, values: Vec<f64>| {
            s.arrays.insert(name.into(), Array { width, values: Values::Real(values) });
        };
        if let Some(charge) = self.rows::<1>("particles", "charge", n)? {
            real("charge", 1, charge.into_flattened());
        }
        if let Some(diameter) = self.rows::<1>("particles", "diameter", n)? {
            real("diameter", 1, diameter.into_flattened());
        }
        if let Some(inert) = self.rows::<3>("particles", "moment_inertia", n)? {
            real("inert", 3, inert.into_flattened());
        }
        if let Some(orientation) = self.rows::<4>("particles", "orientation", n)? {
            let quaternion: Vec<[f64; 4]> = orientation.into_iter().map(|[w, x, y, z]| [x, y, z, w]).collect();
            if let Some(momentum) = self.rows::<4>("particles", "angmom", n)? {
                let rows = quaternion.iter().zip(momentum);
                real("angular_momentum", 3, rows.flat_map(|(q, p)| angular_momentum(*q, p)).collect());
            }
            real("quaternion", 4, quaternion.into_flattened());
        }
        if let Some(body) = self.rows::<1>("particles", "body", n)? {
            let body = wholes("particles/body", body)?.into_flattened();
            s.arrays.insert("body".into(), Array { width: 1, values: Values::Int(body) });
        }
        Ok(())
    }

    fn links<const N: usize>(&self, group: &str) -> Result<(Vec<String>, Vec<Link<N>>), String> {
        let types = self.texts(&format!("{group}/types"))?.unwrap_or_default();
        let n: u32 = self.number(&format!("{group}/N"))?.unwrap_or(0);
        let n = n as usize;
        if n == 0 {
            return Ok((types, vec![]));
        }
        let Some(tags) = self.rows::<N>(group, "group", n)? else {
            return Err(format!("has no {group}/group in frame {}", self.frame));
        };
        let tags = wholes(&format!("{group}/group"), tags)?;
        let kinds = match self.rows::<1>(group, "typeid", n)? {
            Some(rows) => wholes(&format!("{group}/typeid"), rows)?.into_flattened(),
            None => vec![0; n],
        };
        Ok((types, kinds.into_iter().zip(tags).map(|(kind, tags)| Link { kind, tags }).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::{whole, wholes};

    #[test]
    fn numbers_that_are_no_indices_are_refused() {
        assert_eq!((whole::<u32>("n", 7.0), whole::<i32>("n", -1.0)), (Ok(7), Ok(-1)));
        let damaged =
            |x: f64| whole::<u32>("bonds/typeid", x).is_err_and(|e| e.starts_with("is damaged: bonds/typeid"));
        assert!([-1.0, 0.5, f64::NAN, f64::INFINITY, 4294967296.0, 1e300].into_iter().all(damaged));
        assert_eq!(wholes::<u32, 2>("group", vec![[0.0, 1.0], [2.0, 3.0]]), Ok(vec![[0, 1], [2, 3]]));
        assert!(wholes::<u32, 2>("group", vec![[0.0, 1.0], [2.0, -3.0]]).is_err());
    }
}
