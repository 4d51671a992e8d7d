//! Appends states to a file as frames.

use crate::forces::Quantities;
use crate::gsd::layer::Layer;
use crate::gsd::orientation;
use crate::single;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::output::check_not_shortened;
use galamost_plugin_api::resume::RESTORE;
use galamost_plugin_api::snapshot::{Link, Snapshot, Values};
use hoomd_gsd::file_layer::{GsdFile, Mode, Type, WriteError};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Size of a type name in bytes, including the terminating 0.
pub const NAME_SIZE: usize = 64;

/// First chunk of every file. The library cannot search an index that begins with another chunk than the first one it
/// named.
const FIRST: &str = "configuration/step";

type Failure = Box<dyn std::error::Error>;

/// A file, with the number of chunks in its index and in the memory of the library, and the number for which the index has room.
struct Frames {
    file: GsdFile,
    chunks: u64,
    room: u64,
}

impl Frames {
    fn write_scalars<T: Type>(&mut self, name: &str, data: impl IntoIterator<Item = T>) -> Result<(), WriteError> {
        self.chunks += 1;
        self.file.write_scalars(name, data)
    }

    fn write_arrays<T: Type, const M: usize>(
        &mut self,
        name: &str,
        data: impl IntoIterator<Item = [T; M]>,
    ) -> Result<(), WriteError> {
        self.chunks += 1;
        self.file.write_arrays(name, data)
    }

    /// Ends a frame. If the index has no room for it, all frames before it are synced first, then this one: the bytes of the file
    /// follow from its frames only, and not from when they were synced.
    fn end_frame(&mut self) -> Result<(), Failure> {
        let grows = self.chunks > self.room;
        if grows {
            self.file.sync_all()?;
        }
        self.file.end_frame()?;
        if grows {
            self.file.sync_all()?;
            while self.room <= self.chunks {
                self.room *= 2;
            }
        }
        Ok(())
    }
}

/// A file open for appending frames.
pub struct Trajectory {
    path: PathBuf,
    /// `None` after an error, when nothing more may be written.
    file: Option<Frames>,
    /// Number of frames for which [`Self::append`] has returned no error.
    accepted: u64,
    /// Number of frames on disk.
    synced: u64,
    /// What the last frame is recognized by; see [`mark`].
    last: Vec<u8>,
    /// Length of the file at that time.
    length: u64,
    /// The file, also if its name leads to another one by now.
    handle: File,
    last_sync: Instant,
    /// Longest time that frames stay in memory.
    pub sync_interval: Duration,
}

impl std::fmt::Debug for Trajectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trajectory({}, {} frames)", self.path.display(), self.synced)
    }
}

/// The number of particles by whose positions a frame is recognized.
const MARKED: usize = 4;

/// Returns what a frame is recognized by: its step and some positions.
fn mark(step: u64, positions: impl Iterator<Item = f32>) -> Vec<u8> {
    let positions = positions.take(3 * MARKED).flat_map(f32::to_le_bytes);
    step.to_le_bytes().into_iter().chain(positions).collect()
}

/// Returns the mark of a frame of a file.
fn mark_in(layer: &Layer, frame: u64) -> std::result::Result<Vec<u8>, String> {
    let numbers = |name: &str| match layer.find(frame, name) {
        Some(e) => layer.numbers(e),
        None => Ok(vec![]),
    };
    let step = numbers(FIRST)?.first().copied().unwrap_or(0.0) as u64;
    Ok(mark(step, numbers("particles/position")?.into_iter().map(|x| x as f32)))
}

/// Returns an error with its causes; the library's last cause is the operating system's error.
fn error_chain(e: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(e), |e| e.source()).map(ToString::to_string);
    causes.collect::<Vec<_>>().join(": ")
}

impl Trajectory {
    /// Creates a file; an existing file is overwritten.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn create(path: &Path) -> Result<Self> {
        let application = concat!("galamost ", env!("CARGO_PKG_VERSION"));
        let file = GsdFile::create(path, application, "hoomd", (1, 4));
        Self::new(path, file.map_err(|e| Error::io(path, error_chain(&e)))?)
    }

    /// Resumes with the first `frames` frames of a file of `n` particles and removes later frames.
    ///
    /// # Errors
    /// Returns an error if the file is not a trajectory of this system, or the operating system's error.
    pub fn resume(path: &Path, frames: u64, n: u64) -> Result<Self> {
        let wrong = |message: String| Error::io(path, message);
        let layer = Self::checked(path, frames, n, true)?;
        let last = if frames > 0 { mark_in(&layer, frames - 1).map_err(wrong)? } else { vec![] };
        // always truncate: a killed run may have left data that the index does not list
        layer.cut(frames).map_err(wrong)?;
        let file = GsdFile::open(path, Mode::Write);
        let mut t = Self::new(path, file.map_err(|e| wrong(error_chain(&e)))?)?;
        t.last = last;
        Ok(t)
    }

    /// Checks that a file has at least `frames` frames of `n` particles, and that the last of these has this mark, if it is known.
    ///
    /// # Errors
    /// As [`Self::resume`].
    pub fn check(path: &Path, frames: u64, n: u64, mark: &[u8]) -> Result<()> {
        let layer = Self::checked(path, frames, n, false)?;
        let found = mark_in(&layer, frames.saturating_sub(1)).map_err(|message| Error::io(path, message))?;
        if frames > 0 && !mark.is_empty() && found != mark {
            let message = format!(
                "frame {} is not that of the checkpoint: another run has written the file; {RESTORE}",
                frames - 1
            );
            return Err(Error::io(path, message));
        }
        Ok(())
    }

    fn checked(path: &Path, frames: u64, n: u64, writable: bool) -> Result<Layer> {
        let wrong = |message: String| Error::io(path, format!("{message}; {RESTORE}"));
        let layer = Layer::open(path, writable).map_err(wrong)?;
        let found = layer.find(0, "particles/N").map(|e| layer.numbers(e)).transpose().map_err(wrong)?;
        if layer.schema != "hoomd" || !layer.begins_with(FIRST) || found.as_deref() != Some(&[n as f64]) {
            return Err(wrong(format!("is not a trajectory of these {n} particles")));
        }
        if layer.frames() < frames {
            return Err(wrong(format!("has {} frames, but the checkpoint expects {frames}", layer.frames())));
        }
        Ok(layer)
    }

    fn new(path: &Path, file: GsdFile) -> Result<Self> {
        let (chunks, room) = Layer::open(path, true).map_err(|e| Error::io(path, e))?.chunks();
        let mut t = Self {
            path: path.into(),
            accepted: file.n_frames(),
            synced: file.n_frames(),
            last: vec![],
            file: Some(Frames { file, chunks, room }),
            length: 0,
            handle: File::open(path).map_err(|e| Error::io(path, e))?,
            last_sync: Instant::now(),
            sync_interval: Duration::from_secs(2),
        };
        t.length = t.length_now();
        Ok(t)
    }

    fn length_now(&self) -> u64 {
        self.handle.metadata().map_or(0, |m| m.len())
    }

    /// Checks that no other program has shortened the file. The library reads it through a memory map: beyond the end of the file,
    /// that ends the program.
    fn check_length(&mut self) -> Result<()> {
        let checked = check_not_shortened(&self.handle, &self.path, self.length);
        if checked.is_err() {
            // dropping it would read the file
            std::mem::forget(self.file.take());
        }
        checked
    }

    /// Returns the number of frames on disk.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns the mark of the last frame, with which [`Self::check`] recognizes it; empty without frames.
    pub fn last(&self) -> &[u8] {
        &self.last
    }

    /// Appends a frame. The first frame is synced at once; others when the sync interval has passed, or when the
    /// library has written data because its buffer was full (large frames).
    ///
    /// # Errors
    /// Returns the operating system's error; the file then ends with the last synced frame. Returns an error if another program has
    /// shortened the file.
    pub fn append(&mut self, s: &Snapshot, velocity: bool, quantities: Quantities, log: &[(&str, f64)]) -> Result<()> {
        self.check_length()?;
        let Some(file) = &mut self.file else {
            return Err(Error::io(&self.path, "an earlier frame could not be written"));
        };
        single::require(s, velocity).map_err(Error::input)?;
        let mut written = frame(file, s, velocity, log).map_err(Failure::from);
        if written.is_ok() {
            written = particle_log(file, s, quantities).map_err(Failure::from);
        }
        if let Err(e) = written.and_then(|()| file.end_frame()) {
            return Err(self.fail(&*e));
        }
        if self.synced == 0 || self.last_sync.elapsed() >= self.sync_interval || self.length_now() > self.length {
            self.sync()?;
        }
        self.accepted += 1;
        self.last = mark(s.step, s.position.iter().flatten().map(|x| *x as f32));
        Ok(())
    }

    /// Syncs all frames to disk.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn sync(&mut self) -> Result<()> {
        self.check_length()?;
        let Some(file) = &mut self.file else { return Ok(()) };
        match file.file.sync_all() {
            Ok(()) => {
                self.synced = file.file.n_frames();
                self.length = self.length_now();
                self.last_sync = Instant::now();
                Ok(())
            }
            Err(e) => Err(self.fail(&e)),
        }
    }

    /// Checks that no frame was lost in memory when the file could not be written. A run that resumes from a checkpoint repeats only
    /// the frame for which [`Self::append`] has returned an error.
    ///
    /// # Errors
    /// Returns an error if a checkpoint of this step would miss frames.
    pub fn require_all(&self) -> Result<()> {
        let lost = self.accepted.saturating_sub(self.synced);
        if lost == 0 {
            return Ok(());
        }
        let message = format!(
            "{lost} of {} frames could not be written; a checkpoint of this step would miss them",
            self.accepted
        );
        Err(Error::io(&self.path, message))
    }

    /// Closes the file after an error and removes incomplete frames.
    pub fn fail(&mut self, e: &dyn std::error::Error) -> Error {
        let mut message = error_chain(e);
        // dropping it would write again, after bytes that its index does not list
        std::mem::forget(self.file.take());
        if let Err(e) = Layer::open(&self.path, true).and_then(|layer| layer.cut(self.synced)) {
            message.push_str(&format!("; and the file {e}"));
        }
        self.length = self.length_now();
        Error::io(&self.path, message)
    }
}

impl Drop for Trajectory {
    fn drop(&mut self) {
        let _ = self.check_length();
    }
}

/// Writes the chunks of a frame. A missing chunk means "as in frame 0", so unchanged data are omitted.
fn frame(file: &mut Frames, s: &Snapshot, velocity: bool, log: &[(&str, f64)]) -> Result<(), WriteError> {
    let f32x3 = |x: &[f64; 3]| x.map(|x| x as f32);
    file.write_scalars(FIRST, [s.step])?;
    changed(file, "configuration/dimensions", [[s.dimensions as u8]].into_iter())?;
    let [lx, ly, lz] = f32x3(&s.box_length);
    let [xy, xz, yz] = f32x3(&s.tilt);
    changed(file, "configuration/box", [lx, ly, lz, xy, xz, yz].into_iter().map(|x| [x]))?;

    changed(file, "particles/N", [[s.len() as u32]].into_iter())?;
    changed(file, "particles/types", s.types.iter().map(|t| padded(t)))?;
    changed(file, "particles/typeid", s.type_id.iter().map(|k| [*k]))?;
    changed(file, "particles/mass", s.mass.iter().map(|m| [*m as f32]))?;
    changed(file, "particles/image", s.image.iter().copied())?;
    arrays(file, s, velocity)?;
    file.write_arrays("particles/position", s.position.iter().map(f32x3))?;
    if velocity {
        file.write_arrays("particles/velocity", s.velocity.iter().map(f32x3))?;
    }
    links(file, "bonds", &s.bonds, &s.bond_types)?;
    links(file, "angles", &s.angles, &s.angle_types)?;
    links(file, "dihedrals", &s.dihedrals, &s.dihedral_types)?;
    // files of systems without impropers stay as they were
    if !s.improper_types.is_empty() {
        links(file, "impropers", &s.impropers, &s.improper_types)?;
    }
    for (name, value) in log {
        file.write_scalars(&format!("log/{name}"), [*value])?;
    }
    Ok(())
}

/// Writes what forces determine of the particles.
fn particle_log(file: &mut Frames, s: &Snapshot, quantities: Quantities) -> Result<(), WriteError> {
    for (name, width) in quantities.arrays() {
        let Some(Values::Real(v)) = s.arrays.get(name).map(|a| &a.values) else { continue };
        let chunk = format!("log/particles/{name}");
        match width {
            1 => file.write_scalars(&chunk, v.iter().copied())?,
            3 => file.write_arrays(&chunk, v.as_chunks::<3>().0.iter().copied())?,
            _ => file.write_arrays(&chunk, v.as_chunks::<6>().0.iter().copied())?,
        }
    }
    Ok(())
}

fn arrays(file: &mut Frames, s: &Snapshot, velocity: bool) -> Result<(), WriteError> {
    let reals = |name: &str, width: u32| match s.arrays.get(name) {
        Some(a) if a.width == width => match &a.values {
            Values::Real(v) => Some(v.as_slice()),
            Values::Int(_) => None,
        },
        _ => None,
    };
    if let Some(charge) = reals("charge", 1) {
        changed(file, "particles/charge", charge.iter().map(|q| [*q as f32]))?;
    }
    if let Some(diameter) = reals("diameter", 1) {
        changed(file, "particles/diameter", diameter.iter().map(|d| [*d as f32]))?;
    }
    if let Some(Values::Int(body)) = s.arrays.get("body").map(|a| &a.values) {
        changed(file, "particles/body", body.iter().map(|b| [*b]))?;
    }
    if let Some(inert) = reals("inert", 3) {
        let rows = inert.as_chunks::<3>().0.iter().map(|i| i.map(|x| x as f32));
        changed(file, "particles/moment_inertia", rows)?;
    }
    // a quaternion contains more information than an axis
    if let Some(quaternion) = reals("quaternion", 4) {
        let rows = quaternion.as_chunks::<4>().0.iter().map(|[x, y, z, w]| [*w, *x, *y, *z].map(|a| a as f32));
        changed(file, "particles/orientation", rows)?;
        if let Some(momentum) = reals("angular_momentum", 3).filter(|_| velocity) {
            let rows = quaternion.as_chunks::<4>().0.iter().zip(momentum.as_chunks::<3>().0);
            let rows = rows.map(|(q, l)| orientation::conjugate_momentum(*q, *l).map(|x| x as f32));
            changed(file, "particles/angmom", rows)?;
        }
        Ok(())
    } else if let Some(axis) = reals("orientation", 3) {
        let rows = axis.as_chunks::<3>().0.iter().map(|a| orientation::of_axis(*a).map(|a| a as f32));
        changed(file, "particles/orientation", rows)
    } else {
        Ok(())
    }
}

fn links<const N: usize>(file: &mut Frames, what: &str, links: &[Link<N>], types: &[String]) -> Result<(), WriteError> {
    changed(file, &format!("{what}/N"), [[links.len() as u32]].into_iter())?;
    changed(file, &format!("{what}/types"), types.iter().map(|t| padded(t)))?;
    changed(file, &format!("{what}/typeid"), links.iter().map(|l| [l.kind]))?;
    changed(file, &format!("{what}/group"), links.iter().map(|l| l.tags))
}

/// Writes a chunk unless it equals that of frame 0. Readers use frame 0 for missing chunks with the same number of
/// rows; empty chunks are not needed.
fn changed<T: Type + PartialEq, const M: usize>(
    file: &mut Frames,
    name: &str,
    values: impl ExactSizeIterator<Item = [T; M]> + Clone,
) -> Result<(), WriteError> {
    let first = file.file.iter_arrays::<T, M>(0, name);
    let same = first.is_ok_and(|first| first.len() == values.len() && first.eq(values.clone()));
    if same || values.len() == 0 { Ok(()) } else { file.write_arrays(name, values) }
}

/// Returns a name padded with 0, truncated if too long.
fn padded(name: &str) -> [i8; NAME_SIZE] {
    let bytes = name.as_bytes();
    std::array::from_fn(|k| if k < NAME_SIZE - 1 { bytes.get(k).map_or(0, |b| *b as i8) } else { 0 })
}
