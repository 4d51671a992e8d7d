//! Analyzers read the state every n steps and write output.

use crate::abi::services::Host;
use crate::error::{Error, Result};
use crate::kinds::component::{Needs, SystemInfo};
use crate::snapshot::{Array, Link, Snapshot, Values};
use crate::tilt::{image_shift, nearest};

pub use crate::abi::calls::{FrameArray, FrameCall, FrameColumn, Thermo};

/// The state at one step. Particles are in tag order.
///
/// The columns are borrowed for the call of [`Analyzer::analyze`]. Copy what later calls need:
///
/// ```
/// # use galamost_plugin_api::prelude::*;
/// struct Last(Vec<[f64; 3]>);
///
/// fn keep(last: &mut Last, frame: &Frame<'_>) {
///     last.0 = frame.position().to_vec();
/// }
/// ```
///
/// ```compile_fail
/// # use galamost_plugin_api::prelude::*;
/// struct Last<'a>(&'a [[f64; 3]]);
///
/// fn keep<'a>(last: &mut Last<'a>, frame: &Frame<'_>) {
///     last.0 = frame.position();
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    call: &'a FrameCall<'a>,
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $ty:ty;)+) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> &'a [$ty] {
            self.call.$name.slice()
        }
    )+};
}

impl<'a> Frame<'a> {
    /// Wraps a call.
    pub fn new(call: &'a FrameCall<'a>) -> Self {
        Self { call }
    }
    /// Returns the time step.
    pub fn step(&self) -> u64 {
        self.call.step
    }
    /// Returns the time since the start of the run.
    pub fn time(&self) -> f64 {
        self.call.time
    }
    /// Returns the number of dimensions, 2 or 3.
    pub fn dimensions(&self) -> u32 {
        self.call.dimensions
    }
    /// Returns the box lengths. The box is centered at the origin.
    pub fn box_length(&self) -> [f64; 3] {
        self.call.box_length
    }
    /// Returns the tilt factors xy, xz, yz of the box; 0 for a rectangular box. See [`crate::tilt`].
    pub fn tilt(&self) -> [f64; 3] {
        self.call.tilt
    }
    /// Returns the displacement along x of the image above in y, −L/2 … L/2, in a box that Lees-Edwards boundaries shear; otherwise 0.
    pub fn shear_offset(&self) -> f64 {
        self.call.shear_offset
    }
    /// Returns the nearest image of a difference of two positions, for distances below half the shortest height of the box. It
    /// knows tilt factors and the displaced images of Lees-Edwards boundaries.
    pub fn nearest(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        let length = self.box_length();
        let n = if length[1] > 0.0 { (y / length[1]).round_ties_even() } else { 0.0 };
        nearest([x - n * self.shear_offset(), y, z], length, self.tilt())
    }
    /// Returns the unwrapped position of a particle. In a box that Lees-Edwards boundaries shear, it jumps along x by the
    /// displacement of the images when the particle crosses the boundary along y.
    pub fn unwrapped(&self, tag: usize) -> [f64; 3] {
        let shift = image_shift(self.image()[tag], self.box_length(), self.tilt());
        std::array::from_fn(|k| self.position()[tag][k] + shift[k])
    }
    /// Returns the thermodynamic quantities of the whole system.
    ///
    /// # Errors
    /// Returns an error if the component did not set `wants.thermo`.
    pub fn thermo(&self) -> Result<&'a Thermo> {
        self.call.thermo.ok_or_else(|| Error::Run("`wants.thermo` was not set".into()))
    }
    columns! {
        /// Positions in the box: −L/2 ≤ x < L/2 in a rectangular one.
        position: [f64; 3];
        /// Images: unwrapped position = position + L image; see [`Self::unwrapped`].
        image: [i32; 3];
        /// Velocities.
        velocity: [f64; 3];
        /// Particle types.
        type_id: u32;
        /// Masses.
        mass: f64;
        /// Bonds.
        bonds: Link<2>;
        /// Angles.
        angles: Link<3>;
        /// Dihedrals.
        dihedrals: Link<4>;
        /// Impropers.
        impropers: Link<4>;
    }
    /// Returns the potential energy of each force component, with its name.
    pub fn energies(&self) -> impl Iterator<Item = (&'a str, f64)> {
        let (names, values) = (self.call.energy_names.slice(), self.call.energies.slice());
        names.iter().zip(values).map(|(n, e)| (std::str::from_utf8(n.slice()).unwrap_or("?"), *e))
    }
    /// Returns an optional array of floating-point numbers: values per particle, values.
    pub fn array(&self, name: &str) -> Option<(usize, &'a [f64])> {
        self.find(name).filter(|a| a.ints.slice().is_empty()).map(|a| (a.width as usize, a.reals.slice()))
    }
    /// Returns an optional array of integers: values per particle, values. Arrays whose names contain a dot are private to a component,
    /// and analyzers do not get them.
    pub fn int_array(&self, name: &str) -> Option<(usize, &'a [i32])> {
        self.find(name).filter(|a| a.reals.slice().is_empty()).map(|a| (a.width as usize, a.ints.slice()))
    }
    fn find(&self, name: &str) -> Option<&'a FrameArray<'a>> {
        self.call.arrays.slice().iter().find(|a| a.name.slice() == name.as_bytes())
    }
    /// Returns a copy of the state; `system` provides the type names.
    ///
    /// Requires `wants.particles` and `wants.topology`; otherwise parts of the copy are empty.
    pub fn snapshot(&self, system: &SystemInfo) -> Snapshot {
        let arrays = self.call.arrays.slice().iter().map(|a| {
            let values = match a.ints.slice() {
                [] => Values::Real(a.reals.slice().into()),
                ints => Values::Int(ints.into()),
            };
            (String::from_utf8_lossy(a.name.slice()).into_owned(), Array { width: a.width, values })
        });
        Snapshot {
            step: self.step(),
            dimensions: self.dimensions(),
            box_length: self.box_length(),
            tilt: self.tilt(),
            types: system.types.clone(),
            position: self.position().into(),
            image: self.image().into(),
            velocity: self.velocity().into(),
            type_id: self.type_id().into(),
            mass: self.mass().into(),
            arrays: arrays.collect(),
            bond_types: system.bond_types.clone(),
            bonds: self.bonds().into(),
            angle_types: system.angle_types.clone(),
            angles: self.angles().into(),
            dihedral_types: system.dihedral_types.clone(),
            dihedrals: self.dihedrals().into(),
            improper_types: system.improper_types.clone(),
            impropers: self.impropers().into(),
        }
    }
    /// Returns the call itself, for analyzers that read device memory.
    pub fn call(&self) -> &'a FrameCall<'a> {
        self.call
    }
}

/// Reads the state every n steps. Fields of the struct are its parameters (`#[derive(Params)]`).
pub trait Analyzer: Send + Sized + 'static {
    /// Receives the facts of the system. An analyzer must set its period, and the data that it reads.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Receives the engine's services. Open files here.
    ///
    /// # Errors
    /// Returns an error if the component cannot start.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Reads one frame and writes output.
    ///
    /// # Errors
    /// Returns an error that ends the run, for example a full disk.
    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()>;
    /// Writes final results; called once, after the last step or an error of the run, and before the last `save`.
    ///
    /// # Errors
    /// Returns an error if the results cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns the state to store in a checkpoint; empty if there is none.
    ///
    /// # Errors
    /// Returns an error if the state cannot be saved.
    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(vec![])
    }
    /// Restores the state that [`Self::save`] returned.
    ///
    /// # Errors
    /// Returns an error if the state does not belong to this component.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}
