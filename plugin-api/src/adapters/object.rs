//! The guard at the boundary, on the plugin's side: plain Rust traits in, tables of `extern "C"` functions out.
//!
//! A panic never crosses: it is caught here, inside the plugin, and becomes [`crate::error::Error::Panic`] with its text and place.

use crate::abi::panic::guard;
use crate::abi::services::Host;
use crate::abi::wire::{from_ron, to_ron, to_wire};
use crate::abi::{
    Component1, Object, Opaque, ROption, RSlice, RStr, RString, RVec, TablePointer, Wire, WireHost, WireObject,
};
use crate::error::{Error, Result};
use crate::kinds::component::{Needs, SystemInfo};
use std::marker::PhantomData;

/// What the guard needs of every component.
pub trait ComponentInterface: Send + Sized + 'static {
    /// Learns the system and says what it needs.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs>;
    /// Receives the engine's services.
    ///
    /// # Errors
    /// Returns an error if the component cannot start.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// State for a checkpoint, beyond what the engine keeps.
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
    fn load(&mut self, state: &[u8]) -> Result<()> {
        if state.is_empty() {
            Ok(())
        } else {
            Err(Error::Run("a checkpoint holds state for a component that has none".into()))
        }
    }
    /// Writes final results; called once after the last step.
    ///
    /// # Errors
    /// Returns an error if the results cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// The table of its kind.
    fn table(name: &str) -> Option<TablePointer>;
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
    pub fn new<A: ComponentInterface>(name: &'static str, inner: A) -> Self {
        Self(WireObject {
            this: Box::into_raw(Box::new(Named { name, inner })).cast(),
            interface: Tables::<A>::interface,
            drop: Tables::<A>::drop,
        })
    }
}

struct Tables<A>(PhantomData<A>);

impl<A: ComponentInterface> Tables<A> {
    const COMPONENT: &'static Component1 =
        &Component1 { bind: Self::bind, save: Self::save, load: Self::load, start: Self::start, finish: Self::finish };

    extern "C" fn interface(_: *mut Opaque, name: RStr<'_>) -> ROption<TablePointer> {
        match name.as_str() {
            "component/1" => ROption::RSome(TablePointer::new(Self::COMPONENT)),
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
