//! A component of a run, as the engine calls it over the boundary.

use super::library::Library;
use crate::pipeline::Entry;
use galamost_plugin_api::abi::{
    Analyzer1, Bonded1, Component1, Force1, Generator1, Integrator1, Opaque, Pair1, ROption, RSlice, Sampler1,
    Updater1, Wire, WireCode, WireHost, WireObject, WireSnapshot,
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

/// Groups that a run can tell apart: bits of a word.
pub const MAX_GROUPS: u32 = 32;

/// A component of a run.
pub struct Component {
    /// Current name, even if the pipeline uses a former one.
    pub name: String,
    /// Names of earlier versions.
    pub former_names: Vec<String>,
    /// Kind.
    pub kind: Kind,
    /// Its number in the run: part of the key of its random numbers, and how faults name it.
    pub id: u32,
    /// Where it stands in the pipeline.
    pub at: Position,
    /// The library it comes from.
    pub library: PathBuf,
    /// What it answered when it was bound.
    pub needs: Needs,
    /// Its first slot in [`galamost_plugin_api::views::Globals::values`].
    pub first_varying: u32,
    /// Bit of its group in the state's words, 32 for all particles.
    pub group: u32,
    object: WireObject,
    base: &'static Component1,
    table: Tables,
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

// SAFETY: the object behind the pointer is Send (the guard asks for it); tables whose methods are called from several
// threads at once (pair, bonded, integrator) only make shared references to it, and their types are Sync
unsafe impl Send for Component {}
// SAFETY: as above
unsafe impl Sync for Component {}

impl Drop for Component {
    fn drop(&mut self) {
        (self.object.drop)(self.object.this);
    }
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} #{}", self.name, self.id)
    }
}

fn get<T: 'static + galamost_plugin_api::abi::AbiTable>(object: &WireObject, library: &Library) -> Result<&'static T> {
    let fail = |message: String| Error::Plugin { path: library.path.clone(), message };
    match (object.interface)(object.this, T::NAME.into()) {
        ROption::RSome(t) => t.get::<T>().map_err(|long| fail(library.shorten(&long))),
        ROption::RNone => Err(fail(format!("a component has no table `{}`;\n{}", T::NAME, library.rebuild()))),
    }
}

/// What a call returned; a panic is told with the method, which the plugin's side does not know.
pub(super) fn called<T>(method: &'static str, answer: Wire<T>) -> Result<T> {
    from_wire(answer).map_err(|e| match e {
        Error::Panic { component, message, .. } => Error::Panic { component, method, message },
        e => e,
    })
}

impl Component {
    /// What a call during a run returned: its error names the component. (While a pipeline is checked, the place in the
    /// file does.)
    fn told<T>(&self, method: &'static str, answer: impl FnOnce() -> Wire<T>) -> Result<T> {
        let answer = {
            let _inside = crate::activity::enter(self.id);
            answer()
        };
        called(method, answer).map_err(|e| match e {
            Error::Run(message) if !message.contains(&self.name) => Error::Run(format!("{}: {message}", self.name)),
            e => e,
        })
    }

    /// Returns whether this is the component's current or a former name.
    pub fn has_name(&self, name: &str) -> bool {
        self.name == name || self.former_names.iter().any(|n| n == name)
    }

    /// Makes the component of a pipeline entry.
    ///
    /// # Errors
    /// The mistakes of its parameters.
    pub fn create(library: &Library, info: &ComponentInfo, entry: &Entry, id: u32) -> Result<Self> {
        let source = Source { text: &entry.text, start: entry.at };
        let kind = info.kind;
        let object = library.create(kind, &info.name, source.value())?;
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
            object,
            base,
            table,
        })
    }

    /// Tells it the system.
    ///
    /// # Errors
    /// The mistakes that show only now.
    pub fn bind(&mut self, system: &SystemInfo) -> Result<()> {
        let text = ron::to_string(system).map_err(|e| Error::Run(e.to_string()))?;
        let answer = called("bind", (self.base.bind)(self.object.this, text.as_str().into()))?;
        self.needs = ron::from_str(answer.as_str()).map_err(|e| Error::Run(format!("{}: {e}", self.name)))?;
        Ok(())
    }

    /// Gives it the engine's services.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    pub fn start(&self, host: &WireHost) -> Result<()> {
        self.told("start", || (self.base.start)(self.object.this, host))
    }

    /// Its state for a checkpoint.
    ///
    /// # Errors
    /// Whatever keeps it from saving.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.told("save", || (self.base.save)(self.object.this)).map(|v| v.into_vec())
    }

    /// Its state from a checkpoint.
    ///
    /// # Errors
    /// The state does not fit.
    pub fn load(&self, state: &[u8]) -> Result<()> {
        self.told("load", || (self.base.load)(self.object.this, RSlice::from_slice(state)))
    }

    /// The run ended.
    ///
    /// # Errors
    /// Whatever keeps it from ending.
    pub fn finish(&self) -> Result<()> {
        self.told("finish", || (self.base.finish)(self.object.this))
    }
}

macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident of $method:ident: $kind:ident($table:ident);)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $part<'a> {
                /// The component.
                pub component: &'a Component,
                this: *mut Opaque,
                table: &'static $table,
            }
            // SAFETY: as for `Component`
            unsafe impl Send for $part<'_> {}
            // SAFETY: as for `Component`
            unsafe impl Sync for $part<'_> {}
        )+
        impl Component {
            $(
                $(#[$doc])*
                pub fn $method(&self) -> Option<$part<'_>> {
                    match self.table {
                        Tables::$kind(table) => Some($part { component: self, this: self.object.this, table }),
                        _ => None,
                    }
                }
            )+
        }
    };
}
parts! {
    /// A component as a generator.
    GeneratorPart of generator: Generator(Generator1);
    /// A component as a pair potential.
    PairPart of pair: Pair(Pair1);
    /// A component as a bonded potential.
    BondedPart of bonded: Bonded(Bonded1);
    /// A component as a force with its own kernels.
    ForcePart of force: Force(Force1);
    /// A component as an integrator.
    IntegratorPart of integrator: Integrator(Integrator1);
    /// A component as an updater.
    UpdaterPart of updater: Updater(Updater1);
    /// A component as an analyzer.
    AnalyzerPart of analyzer: Analyzer(Analyzer1);
    /// A component as a sampler.
    SamplerPart of sampler: Sampler(Sampler1);
}

impl GeneratorPart<'_> {
    /// Changes the snapshot.
    ///
    /// # Errors
    /// What is wrong with the input.
    pub fn generate(&self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        let text = ron::to_string(context).map_err(|e| Error::Run(e.to_string()))?;
        let mut wire: WireSnapshot = std::mem::take(snapshot).into();
        let result = called("generate", (self.table.generate)(self.this, text.as_str().into(), &mut wire));
        *snapshot = wire.into();
        result
    }

    /// Number of whole frames of its file, if it reads trajectories.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn frames(&self, context: &GeneratorContext) -> Result<Option<u64>> {
        let text = ron::to_string(context).map_err(|e| Error::Run(e.to_string()))?;
        called("frames", (self.table.count)(self.this, text.as_str().into())).map(Into::into)
    }
    /// As [`Self::generate`], but a certain frame, which [`Self::frames`] must have.
    ///
    /// # Errors
    /// What is wrong with the input.
    pub fn frame(&self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        let text = ron::to_string(context).map_err(|e| Error::Run(e.to_string()))?;
        let mut wire: WireSnapshot = std::mem::take(snapshot).into();
        let result = called("frame", (self.table.read)(self.this, text.as_str().into(), number, &mut wire));
        *snapshot = wire.into();
        result
    }
}

impl PairPart<'_> {
    /// What a particle of type `i` feels of one of type `j`.
    ///
    /// # Errors
    /// A panic of the plugin.
    pub fn interaction(&self, i: u32, j: u32, pose: &PairConfiguration) -> Result<PairOutput<f64>> {
        let p = self
            .component
            .told("evaluate", || (self.table.evaluate)(self.this, i, j, std::ptr::from_ref(pose).cast()))?;
        Ok(PairOutput { force: p.force.into(), torque: p.torque.into(), energy: p.energy })
    }
    /// (F/r, U) of two types at r², not turned.
    ///
    /// # Errors
    /// A panic of the plugin.
    pub fn evaluate(&self, i: u32, j: u32, r2: f64) -> Result<(f64, f64)> {
        let r = r2.sqrt();
        let felt = self.interaction(i, j, &PairConfiguration { r: [r, 0.0, 0.0], ..PairConfiguration::default() })?;
        Ok((felt.force.x / r, felt.energy))
    }
    /// The CPU loop.
    ///
    /// # Errors
    /// A panic of the plugin.
    ///
    /// # Safety
    /// `call` must describe valid host arrays.
    pub unsafe fn cpu(&self, call: &PairCall, sums: &mut Sums) -> Result<()> {
        self.component.told("cpu", || {
            (self.table.cpu)(self.this, std::ptr::from_ref(call).cast(), std::ptr::from_mut(sums).cast())
        })
    }
    /// Source and rows for a device.
    ///
    /// # Errors
    /// The plugin's words.
    pub fn device(&self, precision: Precision) -> Result<WireCode> {
        self.component.told("device", || (self.table.device)(self.this, precision as u32))
    }
}

impl BondedPart<'_> {
    /// The CPU loop.
    ///
    /// # Errors
    /// A panic of the plugin.
    ///
    /// # Safety
    /// `call` must describe valid host arrays.
    pub unsafe fn cpu(&self, call: &BondedCall, sums: &mut Sums) -> Result<()> {
        self.component.told("cpu", || {
            (self.table.cpu)(self.this, std::ptr::from_ref(call).cast(), std::ptr::from_mut(sums).cast())
        })
    }
    /// Source and rows for a device.
    ///
    /// # Errors
    /// The plugin's words.
    pub fn device(&self, precision: Precision) -> Result<WireCode> {
        self.component.told("device", || (self.table.device)(self.this, precision as u32))
    }
}

impl ForcePart<'_> {
    /// Adds forces.
    ///
    /// # Errors
    /// Whatever breaks the run.
    ///
    /// # Safety
    /// `call` must describe valid arrays of the run's device.
    pub unsafe fn compute(&self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        self.component.told("compute", || {
            (self.table.compute)(self.this, std::ptr::from_ref(call).cast(), std::ptr::from_mut(sums).cast())
        })
    }
}

impl IntegratorPart<'_> {
    /// Its program.
    ///
    /// # Errors
    /// The plugin sent something else.
    pub fn program(&self) -> Result<ProgramInfo> {
        let text = self.component.told("program", || (self.table.program)(self.this))?;
        ron::from_str(text.as_str()).map_err(|e| Error::Run(format!("{}: {e}", self.component.name)))
    }
    /// Its first state.
    ///
    /// # Errors
    /// The group makes no sense.
    pub fn state(&self, group: &GroupInfo) -> Result<Vec<u8>> {
        let text = ron::to_string(group).map_err(|e| Error::Run(e.to_string()))?;
        self.component.told("state", || (self.table.state)(self.this, text.as_str().into())).map(|v| v.into_vec())
    }
    /// A particle phase on the CPU.
    ///
    /// # Errors
    /// A panic of the plugin.
    ///
    /// # Safety
    /// `call` must describe valid host arrays.
    pub unsafe fn cpu_particles(&self, phase: u32, call: &ParticleCall) -> Result<()> {
        self.component
            .told("cpu_particles", || (self.table.cpu_particles)(self.this, phase, std::ptr::from_ref(call).cast()))
    }
    /// A scalar phase on the CPU.
    ///
    /// # Errors
    /// A panic of the plugin.
    ///
    /// # Safety
    /// `call` must describe valid host memory.
    pub unsafe fn cpu_scalar(&self, phase: u32, call: &ScalarCall) -> Result<()> {
        self.component.told("cpu_scalar", || (self.table.cpu_scalar)(self.this, phase, std::ptr::from_ref(call).cast()))
    }
    /// Source for a device.
    ///
    /// # Errors
    /// The plugin's words.
    pub fn device(&self, precision: Precision) -> Result<WireCode> {
        self.component.told("device", || (self.table.device)(self.this, precision as u32))
    }
    /// Its share of the conserved quantity.
    ///
    /// # Errors
    /// A panic of the plugin.
    pub fn conserved(&self, state: &[u8]) -> Result<f64> {
        self.component.told("conserved", || (self.table.conserved)(self.this, RSlice::from_slice(state)))
    }
}

impl UpdaterPart<'_> {
    /// Changes the state.
    ///
    /// # Errors
    /// Whatever breaks the run.
    ///
    /// # Safety
    /// `call` must describe valid arrays of the run's device.
    pub unsafe fn update(&self, call: &mut UpdateCall) -> Result<()> {
        self.component.told("update", || (self.table.update)(self.this, std::ptr::from_mut(call).cast()))
    }
}

impl SamplerPart<'_> {
    /// Draws the batch of this number.
    ///
    /// # Errors
    /// Whatever breaks the run.
    pub fn sample(&self, batch: u64) -> Result<()> {
        self.component.told("sample", || (self.table.sample)(self.this, batch))
    }
}

impl AnalyzerPart<'_> {
    /// Looks at the state.
    ///
    /// # Errors
    /// Whatever breaks the run.
    pub fn analyze(&self, call: &FrameCall) -> Result<()> {
        self.component.told("analyze", || (self.table.analyze)(self.this, std::ptr::from_ref(call).cast()))
    }
}
