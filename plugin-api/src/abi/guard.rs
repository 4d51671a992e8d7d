//! The guard at the boundary, on the plugin's side: plain Rust traits in, tables of `extern "C"` functions out.
//!
//! A panic never crosses: it is caught here, inside the plugin, and becomes [`Error::Panic`] with its text and place.

use super::adapter::{AnalyzerAdapter, ForceAdapter, GeneratorAdapter, SamplerAdapter, UpdaterAdapter};
use crate::abi::{
    Analyzer1, Bonded1, Component1, Force1, Generator1, Integrator1, Layouts1, Library1, Opaque, Pair1,
    PrefixTypeTrait, ROption, RResult, RSlice, RStr, RString, RVec, Root, RootRef, Sampler1, Table, Updater1, Wire,
    WireError, WireHost, WireObject, WirePair, WireSnapshot,
};
use crate::component::{Kind, Needs, Registration, SystemInfo, from_ron, to_ron};
use crate::error::{Error, Position, Result};
use crate::params::Source;
use crate::services::Host;
use crate::wire::to_wire;
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

thread_local! {
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; a panic becomes an error that names the component.
pub fn guard<T>(component: &str, f: impl FnOnce() -> Result<T>) -> Result<T> {
    static QUIET: Once = Once::new();
    // the hook belongs to this library alone: it notes the place instead of printing to the terminal
    QUIET.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
            PANIC_PLACE.with(|p| *p.borrow_mut() = place);
        }));
    });
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        Err(Error::Panic { component: component.into(), method: "", message: panic_message(payload) })
    })
}

/// A panic that was caught on another thread, with its text and place.
pub(crate) struct CaughtPanic(pub String);

/// Text and place of a panic, on the thread where it was caught.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    if let Some(CaughtPanic(text)) = payload.downcast_ref() {
        return text.clone();
    }
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".into());
    // the value's own destructor may panic, which nobody would catch any more
    std::mem::forget(payload);
    let place = PANIC_PLACE.with(|p| p.borrow_mut().take()).unwrap_or_else(|| "unknown place".into());
    format!("{text} ({place})")
}

/// A component behind the boundary.
pub struct Object(pub WireObject);

/// What the guard needs of every component.
pub trait Common: Send + Sized + 'static {
    /// Learns the system and says what it needs.
    ///
    /// # Errors
    /// Mistakes of the input that show only now.
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs>;
    /// Gets the engine's services.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// State for a checkpoint, beyond what the engine keeps.
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
    fn load(&mut self, state: &[u8]) -> Result<()> {
        if state.is_empty() {
            Ok(())
        } else {
            Err(Error::Run("a checkpoint holds state for a component that has none".into()))
        }
    }
    /// The run ended well.
    ///
    /// # Errors
    /// Whatever keeps it from ending.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// The table of its kind.
    fn table(name: &str) -> Option<Table>;
}

/// A component with its name, as it lies behind the pointer.
struct Named<A> {
    name: &'static str,
    inner: A,
}

/// Calls a method of the object behind the pointer, guarded.
pub(crate) fn call<A, T>(this: *mut Opaque, f: impl FnOnce(&mut A) -> Result<T>) -> Result<T> {
    // SAFETY: the engine hands back the pointer that `Object::new` gave it, and never uses one object from two
    // threads unless the table says so (then `shared` below is used)
    let named = unsafe { &mut *this.cast::<Named<A>>() };
    guard(named.name, || f(&mut named.inner))
}

/// Calls a method that several threads may be in at once.
pub(crate) fn shared<A, T>(this: *mut Opaque, f: impl FnOnce(&A) -> Result<T>) -> Result<T> {
    // SAFETY: as in `call`; only shared references are made while the object is used from several threads
    let named = unsafe { &*this.cast::<Named<A>>() };
    guard(named.name, || f(&named.inner))
}

impl Object {
    /// Hands a component to the engine.
    pub fn new<A: Common>(name: &'static str, inner: A) -> Self {
        Self(WireObject {
            this: Box::into_raw(Box::new(Named { name, inner })).cast(),
            interface: Tables::<A>::interface,
            drop: Tables::<A>::drop,
        })
    }
}

struct Tables<A>(PhantomData<A>);

impl<A: Common> Tables<A> {
    const COMPONENT: &'static Component1 =
        &Component1 { bind: Self::bind, save: Self::save, load: Self::load, start: Self::start, finish: Self::finish };

    extern "C" fn interface(_: *mut Opaque, name: RStr<'_>) -> ROption<Table> {
        match name.as_str() {
            "component/1" => ROption::RSome(Table::new(Self::COMPONENT)),
            other => A::table(other).into(),
        }
    }
    extern "C" fn drop(this: *mut Opaque) {
        // SAFETY: the engine destroys an object once
        let named = unsafe { Box::from_raw(this.cast::<Named<A>>()) };
        let name = named.name;
        // a panic in a destructor has nowhere to go
        let _ = guard(name, || {
            drop(named);
            Ok(())
        });
    }
    extern "C" fn bind(this: *mut Opaque, system: RStr<'_>) -> Wire<RString> {
        to_wire(call::<A, _>(this, |a| Ok(to_ron(&a.bind(&from_ron(system.as_str())?)?))))
    }
    extern "C" fn save(this: *mut Opaque) -> Wire<RVec<u8>> {
        to_wire(call::<A, _>(this, A::save))
    }
    extern "C" fn load(this: *mut Opaque, state: RSlice<'_, u8>) -> Wire<()> {
        to_wire(call::<A, _>(this, |a| a.load(state.as_slice())))
    }
    extern "C" fn start(this: *mut Opaque, host: *const WireHost) -> Wire<()> {
        to_wire(call::<A, _>(this, |a| {
            // SAFETY: the engine keeps its services alive as long as the object
            let host = unsafe { Host::new(host) }?;
            a.start(host)
        }))
    }
    extern "C" fn finish(this: *mut Opaque) -> Wire<()> {
        to_wire(call::<A, _>(this, A::finish))
    }
}

/// The root module of a plugin.
pub fn root() -> RootRef {
    Root { interface: library_interface }.leak_into_prefix()
}

extern "C" fn library_interface(name: RStr<'_>) -> ROption<Table> {
    const LIBRARY: &Library1 = &Library1 { describe, create };
    const LAYOUTS: &Layouts1 = &Layouts1 { structs };
    match name.as_str() {
        "layouts/1" => ROption::RSome(Table::new(LAYOUTS)),
        "library/1" => ROption::RSome(Table::new(LIBRARY)),
        _ => ROption::RNone,
    }
}

extern "C" fn structs() -> RString {
    to_ron(&crate::layout::crossing()).into()
}

extern "C" fn describe() -> Wire<RString> {
    to_wire(guard("the plugin", || Ok(to_ron(&Registration::all().iter().map(|r| r.info()).collect::<Vec<_>>()))))
}

extern "C" fn create(kind: u32, name: RStr<'_>, text: RStr<'_>, line: u32, column: u32) -> Wire<WireObject> {
    let name = name.as_str();
    let made = guard(name, || {
        let kind = Kind::from_u32(kind).ok_or_else(|| Error::Run(format!("there is no kind number {kind}")))?;
        let found = Registration::all().into_iter().find(|r| r.name == name && r.kind == kind);
        let r = found.ok_or_else(|| Error::Run(format!("this library has no {kind} `{name}`")))?;
        let source = Source { text: text.as_str(), start: Position { line, column } };
        (r.create)(r.name, source.value())
    });
    match made {
        Ok(object) => RResult::ROk(object.0),
        Err(e) => RResult::RErr(WireError::from(e)),
    }
}

/// Makes the table of one kind; `$this` is the object's pointer.
macro_rules! kind_tables {
    ($($(#[$doc:meta])* $name:ident: $table:ident in $trait:path { $($field:ident: fn($($arg:ident: $ty:ty),*) -> $ret:ty = $body:expr;)+ })+) => {$(
        $(#[$doc])*
        pub fn $name<A: $trait>() -> Table {
            struct T<A>(PhantomData<A>);
            impl<A: $trait> T<A> {
                const TABLE: &'static $table = &$table { $($field: Self::$field),+ };
                $(extern "C" fn $field(this: *mut Opaque, $($arg: $ty),*) -> $ret {
                    let body: fn(*mut Opaque, $($ty),*) -> $ret = $body;
                    body(this, $($arg),*)
                })+
            }
            Table::new(T::<A>::TABLE)
        }
    )+};
}
kind_tables! {
    /// `generator/1`.
    generator_table: Generator1 in crate::generator::Generator {
        generate: fn(context: RStr<'_>, snapshot: &mut WireSnapshot) -> Wire<()> = |this, context, snapshot| {
            to_wire(call::<GeneratorAdapter<A>, _>(this, |a| {
                let mut s = std::mem::take(snapshot).into();
                let result = a.0.generate(&from_ron(context.as_str())?, &mut s);
                *snapshot = s.into();
                result
            }))
        };
        count: fn(context: RStr<'_>) -> Wire<ROption<u64>> = |this, context| {
            to_wire(call::<GeneratorAdapter<A>, _>(this, |a| Ok(ROption::from(a.0.frames(&from_ron(context.as_str())?)?))))
        };
        read: fn(context: RStr<'_>, number: u64, snapshot: &mut WireSnapshot) -> Wire<()> = |this, context, number, snapshot| {
            to_wire(call::<GeneratorAdapter<A>, _>(this, |a| {
                let mut s = std::mem::take(snapshot).into();
                let result = a.0.frame(&from_ron(context.as_str())?, number, &mut s);
                *snapshot = s.into();
                result
            }))
        };
    }
    /// `pair/1`.
    pair_table: Pair1 in crate::pair::Pairing {
        evaluate: fn(i: u32, j: u32, pose: *const Opaque) -> Wire<WirePair> = |this, i, j, pose| {
            to_wire(shared::<A, _>(this, |a| {
                // SAFETY: `pair/1` passes a `Pose`
                let felt = a.evaluate(i, j, unsafe { &*pose.cast() });
                Ok(WirePair { force: felt.force.f64(), torque: felt.torque.f64(), energy: felt.energy })
            }))
        };
        cpu: fn(input: *const Opaque, sums: *mut Opaque) -> Wire<()> = |this, input, sums| {
            // SAFETY: `pair/1` passes a `PairCall` and `Sums`
            to_wire(shared::<A, _>(this, |a| unsafe { a.cpu(&*input.cast(), &mut *sums.cast()) }))
        };
        device: fn(precision: u32) -> Wire<crate::abi::WireCode> = |this, precision| {
            to_wire(shared::<A, _>(this, |a| a.device(crate::precision::Precision::from_u32(precision).unwrap_or_default())))
        };
    }
    /// `bonded/1`.
    bonded_table: Bonded1 in crate::bonded::Bonding {
        cpu: fn(input: *const Opaque, sums: *mut Opaque) -> Wire<()> = |this, input, sums| {
            // SAFETY: `bonded/1` passes a `BondedCall` and `Sums`
            to_wire(shared::<A, _>(this, |a| unsafe { a.cpu(&*input.cast(), &mut *sums.cast()) }))
        };
        device: fn(precision: u32) -> Wire<crate::abi::WireCode> = |this, precision| {
            to_wire(shared::<A, _>(this, |a| a.device(crate::precision::Precision::from_u32(precision).unwrap_or_default())))
        };
    }
    /// `integrator/1`.
    integrator_table: Integrator1 in crate::integrator::Integrating {
        program: fn() -> Wire<RString> = |this| {
            to_wire(shared::<A, _>(this, |a| Ok(to_ron(&a.program()))))
        };
        state: fn(info: RStr<'_>) -> Wire<RVec<u8>> = |this, info| {
            to_wire(shared::<A, _>(this, |a| a.state(&from_ron(info.as_str())?)))
        };
        cpu_particles: fn(phase: u32, input: *const Opaque) -> Wire<()> = |this, phase, input| {
            // SAFETY: `integrator/1` passes a `ParticleCall`
            to_wire(shared::<A, _>(this, |a| unsafe { a.cpu_particles(phase, &*input.cast()) }))
        };
        cpu_scalar: fn(phase: u32, input: *const Opaque) -> Wire<()> = |this, phase, input| {
            // SAFETY: `integrator/1` passes a `ScalarCall`
            to_wire(shared::<A, _>(this, |a| unsafe { a.cpu_scalar(phase, &*input.cast()) }))
        };
        device: fn(precision: u32) -> Wire<crate::abi::WireCode> = |this, precision| {
            to_wire(shared::<A, _>(this, |a| a.device(crate::precision::Precision::from_u32(precision).unwrap_or_default())))
        };
        conserved: fn(state: RSlice<'_, u8>) -> Wire<f64> = |this, state| {
            to_wire(shared::<A, _>(this, |a| Ok(a.conserved(state.as_slice()))))
        };
    }
    /// `force/1`.
    force_table: Force1 in crate::force::Force {
        compute: fn(input: *const Opaque, sums: *mut Opaque) -> Wire<()> = |this, input, sums| {
            // SAFETY: `force/1` passes a `ForceCall` and `Sums`
            to_wire(call::<ForceAdapter<A>, _>(this, |a| unsafe { a.0.compute(&*input.cast(), &mut *sums.cast()) }))
        };
    }
    /// `updater/1`.
    updater_table: Updater1 in crate::updater::Updater {
        update: fn(input: *mut Opaque) -> Wire<()> = |this, input| {
            // SAFETY: `updater/1` passes an `UpdateCall`
            to_wire(call::<UpdaterAdapter<A>, _>(this, |a| unsafe { a.0.update(&mut *input.cast()) }))
        };
    }
    /// `sampler/1`.
    sampler_table: Sampler1 in crate::sampler::Sampler {
        sample: fn(batch: u64) -> Wire<()> = |this, batch| {
            to_wire(call::<SamplerAdapter<A>, _>(this, |a| a.0.sample(batch)))
        };
    }
    /// `analyzer/1`.
    analyzer_table: Analyzer1 in crate::analyzer::Analyzer {
        analyze: fn(input: *const Opaque) -> Wire<()> = |this, input| {
            // SAFETY: `analyzer/1` passes a `FrameCall`
            to_wire(call::<AnalyzerAdapter<A>, _>(this, |a| unsafe { a.0.analyze(&crate::analyzer::Frame::new(&*input.cast())) }))
        };
    }
}
