//! Analyzers read the state every n steps and write.

use crate::abi::AnalyzerAdapter;
use crate::component::{Kind, Needs, Registration, SystemInfo};
use crate::device::DevicePtr;
use crate::error::{Error, Result};
use crate::force::parse;
use crate::guard::Object;
use crate::params::{FromValue, Params};
use crate::services::Host;
use crate::snapshot::{Array, Link, Snapshot, Values};
use crate::views::{LinkView, ListView, StateView};

/// A column of values, one entry per particle or link, in tag order.
#[repr(C)]
#[derive(Debug, galamost_plugin_macros::Layout)]
pub struct Column<T> {
    data: *const T,
    len: usize,
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Column<T> {}

impl<T> Column<T> {
    /// Nothing.
    pub const EMPTY: Self = Self { data: std::ptr::null(), len: 0 };

    /// A column over a slice, which must outlive it.
    pub fn new(slice: &[T]) -> Self {
        Self { data: slice.as_ptr(), len: slice.len() }
    }

    /// The values.
    ///
    /// # Safety
    /// The slice it was made of must still be there.
    unsafe fn slice<'a>(self) -> &'a [T] {
        if self.data.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller's word
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Values of the whole system at one step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, galamost_plugin_macros::Layout)]
pub struct Thermo {
    /// Number of particles.
    pub n: u64,
    /// Degrees of freedom that kT is computed with.
    pub degrees_of_freedom: f64,
    /// Kinetic energy of translation.
    pub kinetic: f64,
    /// kT = 2 K / degrees of freedom.
    pub kt: f64,
    /// Degrees of freedom of rotation; 0 if nothing turns.
    pub rotational_degrees_of_freedom: f64,
    /// Kinetic energy of rotation.
    pub rotational_kinetic: f64,
    /// kT of rotation.
    pub rotational_kt: f64,
    /// Potential energy of all components.
    pub potential: f64,
    /// Pressure: trace of the tensor over the dimensions.
    pub pressure: f64,
    /// Pressure tensor xx, xy, xz, yy, yz, zz: (Σ m v v + virial)/V.
    pub pressure_tensor: [f64; 6],
    /// Total momentum.
    pub momentum: [f64; 3],
    /// Volume (area in two dimensions).
    pub volume: f64,
    /// What the equations of motion conserve: K + U and the integrators' share.
    pub conserved: f64,
    /// 0.
    pub reserved: [f64; 8],
}

/// An optional per-particle array in a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, galamost_plugin_macros::Layout)]
pub struct ArrayColumn {
    name: Column<u8>,
    width: u32,
    reals: Column<f64>,
    ints: Column<i32>,
}

impl ArrayColumn {
    /// Numbers.
    pub fn reals(name: &str, width: u32, values: &[f64]) -> Self {
        Self { name: Column::new(name.as_bytes()), width, reals: Column::new(values), ints: Column::EMPTY }
    }
    /// Whole numbers.
    pub fn ints(name: &str, width: u32, values: &[i32]) -> Self {
        Self { name: Column::new(name.as_bytes()), width, reals: Column::EMPTY, ints: Column::new(values) }
    }
}

/// One call of an analyzer; [`Frame`] is how authors see it.
#[repr(C)]
#[derive(Clone, Copy, Debug, galamost_plugin_macros::Layout)]
pub struct FrameCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 2 or 3.
    pub dimensions: u32,
    /// Step.
    pub step: u64,
    /// Time since the start of the run.
    pub time: f64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// If wanted: the whole system's values.
    pub thermo: *const Thermo,
    /// If `thermo` is wanted: the potential energy of each force component, in the order of the pipeline.
    pub energies: Column<f64>,
    /// Names of these components.
    pub energy_names: Column<Column<u8>>,
    /// If wanted: positions.
    pub position: Column<[f64; 3]>,
    /// Images.
    pub image: Column<[i32; 3]>,
    /// Velocities.
    pub velocity: Column<[f64; 3]>,
    /// Types.
    pub kind: Column<u32>,
    /// Masses.
    pub mass: Column<f64>,
    /// Optional arrays.
    pub arrays: Column<ArrayColumn>,
    /// If wanted: bonds.
    pub bonds: Column<Link<2>>,
    /// Angles.
    pub angles: Column<Link<3>>,
    /// Dihedrals.
    pub dihedrals: Column<Link<4>>,
    /// The state on the run's device, for analyzers with kernels of their own.
    pub state: StateView,
    /// The neighbor list.
    pub list: ListView,
    /// Bonds on the run's device.
    pub bond_view: LinkView,
    /// 0.
    pub reserved: [DevicePtr<u8>; 8],
}

/// The state as an analyzer sees it. Particles are in tag order.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    call: &'a FrameCall,
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $ty:ty;)+) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> &'a [$ty] {
            // SAFETY: the engine keeps the columns of a call alive until it returns
            unsafe { self.call.$name.slice() }
        }
    )+};
}

impl<'a> Frame<'a> {
    /// Wraps a call.
    pub fn new(call: &'a FrameCall) -> Self {
        Self { call }
    }
    /// Step.
    pub fn step(&self) -> u64 {
        self.call.step
    }
    /// Time since the start of the run.
    pub fn time(&self) -> f64 {
        self.call.time
    }
    /// 2 or 3.
    pub fn dimensions(&self) -> u32 {
        self.call.dimensions
    }
    /// Box lengths; the box is centered at 0.
    pub fn box_length(&self) -> [f64; 3] {
        self.call.box_length
    }
    /// Values of the whole system.
    ///
    /// # Errors
    /// The component did not ask for them.
    pub fn thermo(&self) -> Result<&'a Thermo> {
        // SAFETY: the engine keeps what the call points to alive until it returns
        unsafe { self.call.thermo.as_ref() }.ok_or_else(|| Error::Run("`wants.thermo` was not set".into()))
    }
    columns! {
        /// Positions, −L/2 ≤ x < L/2.
        position: [f64; 3];
        /// Images: unwrapped position = position + L image.
        image: [i32; 3];
        /// Velocities.
        velocity: [f64; 3];
        /// Types.
        kind: u32;
        /// Masses.
        mass: f64;
        /// Bonds.
        bonds: Link<2>;
        /// Angles.
        angles: Link<3>;
        /// Dihedrals.
        dihedrals: Link<4>;
    }
    /// Potential energy of each force component, with its name.
    pub fn energies(&self) -> impl Iterator<Item = (&'a str, f64)> {
        // SAFETY: the engine keeps the columns of a call alive until it returns; names are UTF-8
        let (names, values) = unsafe { (self.call.energy_names.slice(), self.call.energies.slice()) };
        names.iter().zip(values).map(|(n, e)| {
            // SAFETY: as above
            (std::str::from_utf8(unsafe { n.slice() }).unwrap_or("?"), *e)
        })
    }
    /// An optional array of numbers: values per particle, values.
    pub fn array(&self, name: &str) -> Option<(usize, &'a [f64])> {
        self.find(name).map(|a| {
            // SAFETY: as above
            (a.width as usize, unsafe { a.reals.slice() })
        })
    }
    /// An optional array of whole numbers: values per particle, values.
    pub fn int_array(&self, name: &str) -> Option<(usize, &'a [i32])> {
        self.find(name).map(|a| {
            // SAFETY: as above
            (a.width as usize, unsafe { a.ints.slice() })
        })
    }
    fn find(&self, name: &str) -> Option<&'a ArrayColumn> {
        // SAFETY: as above
        unsafe { self.call.arrays.slice().iter().find(|a| a.name.slice() == name.as_bytes()) }
    }
    /// A copy of the state, for writers of whole states; `system` has the names of types.
    ///
    /// Both `wants.particles` and `wants.topology` must be set, or parts of it are empty.
    pub fn snapshot(&self, system: &SystemInfo) -> Snapshot {
        // SAFETY: the engine keeps the columns of a call alive until it returns; names are UTF-8
        let arrays = unsafe { self.call.arrays.slice() }.iter().map(|a| unsafe {
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
            types: system.types.clone(),
            position: self.position().into(),
            image: self.image().into(),
            velocity: self.velocity().into(),
            kind: self.kind().into(),
            mass: self.mass().into(),
            arrays: arrays.collect(),
            bond_types: system.bond_types.clone(),
            bonds: self.bonds().into(),
            angle_types: system.angle_types.clone(),
            angles: self.angles().into(),
            dihedral_types: system.dihedral_types.clone(),
            dihedrals: self.dihedrals().into(),
        }
    }
    /// The call itself, for analyzers that read the device.
    pub fn call(&self) -> &'a FrameCall {
        self.call
    }
}

/// Reads state every n steps. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Analyzer: Send + Sized + 'static {
    /// Learns the system; an analyzer says its period and what it wants to see.
    ///
    /// # Errors
    /// Mistakes of the input that show only now.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Gets the engine's services; time to open files.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Looks at the state.
    ///
    /// # Errors
    /// Whatever breaks the run: a full disk.
    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()>;
    /// The run ended well.
    ///
    /// # Errors
    /// Whatever keeps it from ending.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// State for a checkpoint, if there is any.
    ///
    /// # Errors
    /// Whatever keeps it from saving.
    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(vec![])
    }
    /// State from a checkpoint.
    ///
    /// # Errors
    /// The state does not fit.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Registration {
    /// An analyzer.
    pub const fn analyzer<T: Analyzer + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Analyzer,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, AnalyzerAdapter(c))),
        }
    }
}
