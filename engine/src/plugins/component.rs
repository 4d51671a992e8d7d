//! Components of a run, and their functions behind the plugin boundary.

use super::library::Library;
use super::rank_objects::RankObjects;
use crate::activity::announce;
use crate::pipeline::Entry;
use galamost_plugin_api::abi::{
    AbiTable, Analyzer1, Bonded1, Component1, Force1, Generator1, Integrator1, Opaque, Pair1, ROption, RSlice,
    Sampler1, Updater1, Wire, WireCode, WireHost, WireObject, WireSnapshot,
};
use galamost_plugin_api::analyzer::FrameCall;
use galamost_plugin_api::bonded::BondedCall;
use galamost_plugin_api::component::{ComponentInfo, Kind, Needs, SystemInfo};
use galamost_plugin_api::error::{Error, Position, Result};
use galamost_plugin_api::force::ForceCall;
use galamost_plugin_api::generator::GeneratorContext;
use galamost_plugin_api::integrator::{GroupInfo, ParticleCall, ProgramInfo, ScalarCall};
use galamost_plugin_api::pair::{PairCall, PairConfiguration, PairOutput};
use galamost_plugin_api::params::Source;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::updater::UpdateCall;
use galamost_plugin_api::views::Sums;
use galamost_plugin_api::wire::from_wire;
use std::path::PathBuf;

/// The largest number of groups in a run: the bits of a group word.
pub const MAX_GROUPS: u32 = 32;

/// A component of a run.
pub struct Component {
    /// Current name, even if the pipeline uses a former one.
    pub name: String,
    /// Names of earlier versions.
    pub former_names: Vec<String>,
    /// Kind.
    pub kind: Kind,
    /// Number in the run: part of the key of its random numbers, and its identity in faults.
    pub id: u32,
    /// Position in the pipeline file.
    pub at: Position,
    /// File of the plugin that contains it.
    pub library: PathBuf,
    /// Its needs, known after [`Self::bind`].
    pub needs: Needs,
    /// First slot in [`galamost_plugin_api::views::Globals::values`].
    pub first_varying: u32,
    /// Bit of its group in the group words; [`MAX_GROUPS`] for all particles.
    pub group: u32,
    /// Its objects for other ranks.
    pub(super) ranks: RankObjects,
    object: WireObject,
    base: &'static Component1,
    table: Tables,
    /// The remainder of a pair potential of long range.
    long_range: Option<&'static Force1>,
}

#[derive(Clone, Copy)]
enum Tables {
    Generator(&'static Generator1),
    Pair(&'static Pair1),
    Bonded(&'static Bonded1),
    Force(&'static Force1),
    Integrator(&'static Integrator1),
    Updater(&'static Updater1),
    Analyzer(&'static Analyzer1),
    Sampler(&'static Sampler1),
}

// SAFETY: the object is Send (`ComponentInterface` of the plugin API), and this is its only owner
unsafe impl Send for Component {}
// SAFETY: the object is Sync, and all functions of its tables except `bind` and `drop` use it by shared reference (`adapters`
// of the plugin API); those two are called with `&mut self`, when no handle exists
unsafe impl Sync for Component {}

impl Drop for Component {
    fn drop(&mut self) {
        announce(&self.name, "drop");
        (self.object.drop)(self.object.this);
    }
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} #{}", self.name, self.id)
    }
}

fn get<T: 'static + AbiTable>(object: &WireObject, library: &Library) -> Result<&'static T> {
    let fail = |message: String| Error::Plugin { path: library.path.clone(), message };
    match (object.interface)(object.this, T::NAME.into()) {
        ROption::RSome(t) => t.get::<T>().map_err(|long| fail(library.shorten(&long))),
        ROption::RNone => Err(fail(format!("a component has no table `{}`;\n{}", T::NAME, library.rebuild()))),
    }
}

/// Converts the answer of a plugin. Adds the method's name to a panic, because the plugin's side does not know it.
pub(super) fn receive<T>(method: &'static str, answer: Wire<T>) -> Result<T> {
    from_wire(answer).map_err(|e| match e {
        Error::Panic { component, message, .. } => Error::Panic { component, method, message },
        e => e,
    })
}

impl Component {
    /// Calls a method during a run. The component's name is added to errors. (During a check, the position in the file
    /// identifies the component.)
    fn call<T>(&self, method: &'static str, answer: impl FnOnce() -> Wire<T>) -> Result<T> {
        let answer = {
            let _activity = crate::activity::enter(self.id, &self.name, method);
            answer()
        };
        receive(method, answer).map_err(|e| match e {
            Error::Run(message) if !message.contains(&self.name) => Error::Run(format!("{}: {message}", self.name)),
            e => e,
        })
    }

    /// Returns whether this is the component's current or a former name.
    pub fn has_name(&self, name: &str) -> bool {
        self.name == name || self.former_names.iter().any(|n| n == name)
    }

    /// Creates the component of a pipeline entry.
    ///
    /// # Errors
    /// Returns the errors of its parameters.
    pub fn create(library: &Library, info: &ComponentInfo, entry: &Entry, id: u32) -> Result<Self> {
        let source = Source { text: &entry.text, start: entry.at };
        let kind = info.kind;
        let activity = crate::activity::enter(id, &info.name, "create");
        let object = library.create(kind, &info.name, source.value())?;
        drop(activity);
        let base = get(&object, library)?;
        let table = match kind {
            Kind::Generator => Tables::Generator(get(&object, library)?),
            Kind::Pair => Tables::Pair(get(&object, library)?),
            Kind::Bonded => Tables::Bonded(get(&object, library)?),
            Kind::Force => Tables::Force(get(&object, library)?),
            Kind::Integrator => Tables::Integrator(get(&object, library)?),
            Kind::Updater => Tables::Updater(get(&object, library)?),
            Kind::Analyzer => Tables::Analyzer(get(&object, library)?),
            Kind::Sampler => Tables::Sampler(get(&object, library)?),
        };
        let long_range = match (object.interface)(object.this, Force1::NAME.into()) {
            ROption::RSome(_) if kind == Kind::Pair => Some(get(&object, library)?),
            _ => None,
        };
        Ok(Self {
            name: info.name.clone(),
            former_names: info.former_names.clone(),
            kind,
            id,
            at: entry.at,
            library: library.path.clone(),
            needs: Needs::default(),
            first_varying: 0,
            group: MAX_GROUPS,
            ranks: RankObjects::of(library, info, entry),
            object,
            base,
            table,
            long_range,
        })
    }

    /// Binds the component to a system.
    ///
    /// # Errors
    /// Returns the errors of its parameters that depend on the system.
    pub fn bind(&mut self, system: &SystemInfo) -> Result<()> {
        let text = ron::to_string(system).map_err(|e| Error::Run(e.to_string()))?;
        let activity = crate::activity::enter(self.id, &self.name, "bind");
        let answer = receive("bind", (self.base.bind)(self.object.this, text.as_str().into()))?;
        drop(activity);
        self.needs = ron::from_str(answer.as_str()).map_err(|e| Error::Run(format!("{}: {e}", self.name)))?;
        self.add_torques();
        self.ranks.bound(system, &self.needs, self.kind)
    }

    /// Starts the component with the engine's services.
    ///
    /// # Errors
    /// Returns the component's error.
    pub fn start(&self, host: &WireHost) -> Result<()> {
        self.call("start", || (self.base.start)(self.object.this, host))
    }

    /// Returns the component's state for a checkpoint.
    ///
    /// # Errors
    /// Returns the component's error.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.call("save", || (self.base.save)(self.object.this)).map(|v| v.into_vec())
    }

    /// Restores the component's state from a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the state does not fit.
    pub fn load(&self, state: &[u8]) -> Result<()> {
        self.ranks.loaded(state);
        self.call("load", || (self.base.load)(self.object.this, RSlice::from_slice(state)))
    }

    /// Ends the run for the component: it writes and closes its files.
    ///
    /// # Errors
    /// Returns the component's error.
    pub fn finish(&self) -> Result<()> {
        self.call("finish", || (self.base.finish)(self.object.this))
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident of $method:ident: $kind:ident($table:ident);)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $handle<'a> {
                /// The component.
                pub component: &'a Component,
                this: *mut Opaque,
                table: &'static $table,
            }
            // SAFETY: a handle is a shared reference to the component, which is Sync
            unsafe impl Send for $handle<'_> {}
            // SAFETY: a shared reference to a handle gives shared references to the component, which is Sync
            unsafe impl Sync for $handle<'_> {}
        )+
        impl Component {
            $(
                $(#[$doc])*
                pub fn $method(&self) -> Option<$handle<'_>> {
                    match self.table {
                        Tables::$kind(table) => Some($handle { component: self, this: self.object.this, table }),
                        _ => None,
                    }
                }
            )+
        }
    };
}
handles! {
    /// A component as a generator.
    GeneratorHandle of generator: Generator(Generator1);
    /// A component as a pair potential.
    PairHandle of pair: Pair(Pair1);
    /// A component as a bonded potential.
    BondedHandle of bonded: Bonded(Bonded1);
    /// A component as a force with its own kernels.
    ForceHandle of own_force: Force(Force1);
    /// A component as an integrator.
    IntegratorHandle of integrator: Integrator(Integrator1);
    /// A component as an updater.
    UpdaterHandle of updater: Updater(Updater1);
    /// A component as an analyzer.
    AnalyzerHandle of analyzer: Analyzer(Analyzer1);
    /// A component as a sampler.
    SamplerHandle of sampler: Sampler(Sampler1);
}

impl Component {
    /// A component as a force with its own kernels, also the remainder of a pair potential of long range.
    pub fn force(&self) -> Option<ForceHandle<'_>> {
        let remainder = |table| ForceHandle { component: self, this: self.object.this, table };
        self.own_force().or(self.long_range.map(remainder))
    }
}

impl GeneratorHandle<'_> {
    /// Modifies the snapshot.
    ///
    /// # Errors
    /// Returns the errors of the input.
    pub fn generate(&self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        let text = ron::to_string(context).map_err(|e| Error::Run(e.to_string()))?;
        let mut wire: WireSnapshot = std::mem::take(snapshot).into();
        let activity = crate::activity::enter(self.component.id, &self.component.name, "generate");
        let result = receive("generate", (self.table.generate)(self.this, text.as_str().into(), &mut wire));
        drop(activity);
        *snapshot = wire.into();
        result
    }

    /// Returns warnings about what was read so far.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    pub fn warnings(&self) -> Result<Vec<String>> {
        let text = ron::to_string(&SystemInfo::default()).map_err(|e| Error::Run(e.to_string()))?;
        let answer = receive("bind", (self.component.base.bind)(self.this, text.as_str().into()))?;
        let needs: Needs = ron::from_str(answer.as_str()).map_err(|e| Error::Run(e.to_string()))?;
        Ok(needs.warnings)
    }

    /// Returns the number of complete frames of its file, if it reads trajectories.
    ///
    /// # Errors
    /// Returns the errors of the file.
    pub fn frames(&self, context: &GeneratorContext) -> Result<Option<u64>> {
        let text = ron::to_string(context).map_err(|e| Error::Run(e.to_string()))?;
        announce(&self.component.name, "frames");
        receive("frames", (self.table.count)(self.this, text.as_str().into())).map(Into::into)
    }
    /// Reads the frame `number`, which must be less than [`Self::frames`].
    ///
    /// # Errors
    /// Returns the errors of the input.
    pub fn frame(&self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        let text = ron::to_string(context).map_err(|e| Error::Run(e.to_string()))?;
        let mut wire: WireSnapshot = std::mem::take(snapshot).into();
        announce(&self.component.name, "frame");
        let result = receive("frame", (self.table.read)(self.this, text.as_str().into(), number, &mut wire));
        *snapshot = wire.into();
        result
    }
}

impl PairHandle<'_> {
    /// Returns force, torque and energy that a particle of type `i` has from one of type `j`.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    pub fn interaction(&self, i: u32, j: u32, pose: &PairConfiguration) -> Result<PairOutput<f64>> {
        let p = self
            .component
            .call("evaluate", || (self.table.evaluate)(self.this, i, j, std::ptr::from_ref(pose).cast()))?;
        Ok(PairOutput { force: p.force.into(), torque: p.torque.into(), energy: p.energy })
    }
    /// Returns (F/r, U) of two types at r², for unrotated particles.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    pub fn evaluate(&self, i: u32, j: u32, r2: f64) -> Result<(f64, f64)> {
        let r = r2.sqrt();
        let at_r = self.interaction(i, j, &PairConfiguration { r: [r, 0.0, 0.0], ..PairConfiguration::default() })?;
        Ok((at_r.force.x / r, at_r.energy))
    }
    /// Runs the loop on the CPU.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    ///
    /// # Safety
    /// The views of `call` describe host arrays of this run that outlive the call; no other thread accesses forces begin …
    /// end meanwhile, types are below the number that `bind` received, and the processor has the extension `isa`.
    pub unsafe fn cpu(&self, call: &PairCall, sums: &mut Sums) -> Result<()> {
        self.component.call("cpu", || {
            (self.table.cpu)(self.this, std::ptr::from_ref(call).cast(), std::ptr::from_mut(sums).cast())
        })
    }
    /// Returns source and parameter rows for a device.
    ///
    /// # Errors
    /// Returns the plugin's error.
    pub fn device(&self, precision: Precision) -> Result<WireCode> {
        self.component.call("device", || (self.table.device)(self.this, precision as u32))
    }
}

impl BondedHandle<'_> {
    /// Runs the loop on the CPU.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    ///
    /// # Safety
    /// The views of `call` must describe host arrays that outlive the call.
    pub unsafe fn cpu(&self, call: &BondedCall, sums: &mut Sums) -> Result<()> {
        self.component.call("cpu", || {
            (self.table.cpu)(self.this, std::ptr::from_ref(call).cast(), std::ptr::from_mut(sums).cast())
        })
    }
    /// Returns source and parameter rows for a device.
    ///
    /// # Errors
    /// Returns the plugin's error.
    pub fn device(&self, precision: Precision) -> Result<WireCode> {
        self.component.call("device", || (self.table.device)(self.this, precision as u32))
    }
}

impl ForceHandle<'_> {
    /// Adds the forces to the force array.
    ///
    /// # Errors
    /// Returns the component's error.
    ///
    /// # Safety
    /// The views of `call` must describe arrays of the run's device that outlive the call.
    pub unsafe fn compute(&self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        self.component.call("compute", || {
            (self.table.compute)(self.this, std::ptr::from_ref(call).cast(), std::ptr::from_mut(sums).cast())
        })
    }
    /// Places particles without mass.
    ///
    /// # Errors
    /// Returns the component's error.
    ///
    /// # Safety
    /// As [`Self::compute`].
    pub unsafe fn place(&self, call: &ForceCall) -> Result<()> {
        self.component.call("place", || (self.table.place)(self.this, std::ptr::from_ref(call).cast()))
    }
}

impl IntegratorHandle<'_> {
    /// Returns the integrator's program.
    ///
    /// # Errors
    /// Returns an error if the plugin's answer is not a program.
    pub fn program(&self) -> Result<ProgramInfo> {
        let text = self.component.call("program", || (self.table.program)(self.this))?;
        ron::from_str(text.as_str()).map_err(|e| Error::Run(format!("{}: {e}", self.component.name)))
    }
    /// Returns the integrator's initial state.
    ///
    /// # Errors
    /// Returns an error if the integrator cannot act on the group.
    pub fn state(&self, group: &GroupInfo) -> Result<Vec<u8>> {
        let text = ron::to_string(group).map_err(|e| Error::Run(e.to_string()))?;
        self.component.call("state", || (self.table.state)(self.this, text.as_str().into())).map(|v| v.into_vec())
    }
    /// Runs a particle phase on the CPU.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    ///
    /// # Safety
    /// The views of `call` must describe host arrays that outlive the call.
    pub unsafe fn cpu_particles(&self, phase: u32, call: &ParticleCall) -> Result<()> {
        self.component
            .call("cpu_particles", || (self.table.cpu_particles)(self.this, phase, std::ptr::from_ref(call).cast()))
    }
    /// Runs a scalar phase on the CPU.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    ///
    /// # Safety
    /// The pointers of `call` must refer to host memory that outlives the call.
    pub unsafe fn cpu_scalar(&self, phase: u32, call: &ScalarCall) -> Result<()> {
        self.component.call("cpu_scalar", || (self.table.cpu_scalar)(self.this, phase, std::ptr::from_ref(call).cast()))
    }
    /// Returns the source for a device.
    ///
    /// # Errors
    /// Returns the plugin's error.
    pub fn device(&self, precision: Precision) -> Result<WireCode> {
        self.component.call("device", || (self.table.device)(self.this, precision as u32))
    }
    /// Returns the integrator's contribution to the conserved quantity.
    ///
    /// # Errors
    /// Returns an error if the plugin panics.
    pub fn conserved(&self, state: &[u8]) -> Result<f64> {
        self.component.call("conserved", || (self.table.conserved)(self.this, RSlice::from_slice(state)))
    }
}

impl UpdaterHandle<'_> {
    /// Lets the updater modify the state.
    ///
    /// # Errors
    /// Returns the component's error.
    ///
    /// # Safety
    /// The views of `call` must describe arrays of the run's device that outlive the call.
    pub unsafe fn update(&self, call: &mut UpdateCall) -> Result<()> {
        self.component.call("update", || (self.table.update)(self.this, std::ptr::from_mut(call).cast()))
    }
}

impl SamplerHandle<'_> {
    /// Draws the batch with this number.
    ///
    /// # Errors
    /// Returns the component's error.
    pub fn sample(&self, batch: u64) -> Result<()> {
        self.component.call("sample", || (self.table.sample)(self.this, batch))
    }
}

impl AnalyzerHandle<'_> {
    /// Evaluates a sample.
    ///
    /// # Errors
    /// Returns the component's error.
    pub fn analyze(&self, call: &FrameCall<'_>) -> Result<()> {
        self.component.call("analyze", || (self.table.analyze)(self.this, std::ptr::from_ref(call).cast()))
    }
}
