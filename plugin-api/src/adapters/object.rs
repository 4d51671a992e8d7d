//! Components as objects that cross the boundary.
//!
//! A panic never crosses the boundary. It is caught here, inside the plugin, and becomes [`crate::error::Error::Panic`]
//! with its text and source location.

use crate::abi::panic::guard;
use crate::abi::services::Host;
use crate::abi::wire::{from_ron, to_ron, to_wire};
use crate::abi::{
    Component1, Object, Opaque, ROption, RSlice, RStr, RString, RVec, TablePointer, Wire, WireHost, WireObject,
};
use crate::error::{Error, Result};
use crate::kinds::component::{Needs, SystemInfo};
use std::marker::PhantomData;

/// Methods of `component/1`, which every component has.
pub trait ComponentInterface: Send + Sized + 'static {
    /// Receives the facts of the system and returns what the component needs.
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
    /// Returns the state for a checkpoint, in addition to what the engine stores.
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
            Err(Error::Run("the checkpoint contains state for a component without state".into()))
        }
    }
    /// Writes final results; called once after the last step.
    ///
    /// # Errors
    /// Returns an error if the results cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns the table of the component's kind, if `name` is its name.
    fn table(name: &str) -> Option<TablePointer>;
}

/// The target of an object's pointer: the component and its name.
struct Named<A> {
    name: &'static str,
    inner: A,
}

/// Calls a method of the object and catches panics.
pub(crate) fn call<A, T>(this: *mut Opaque, f: impl FnOnce(&mut A) -> Result<T>) -> Result<T> {
    // SAFETY: the pointer comes from `Object::new`; the engine uses an object from one thread at a time, except for
    // methods that the table declares as shared (those use `shared` below)
    let named = unsafe { &mut *this.cast::<Named<A>>() };
    guard(named.name, || f(&mut named.inner))
}

/// Calls a method that several threads may run at the same time, and catches panics.
pub(crate) fn shared<A, T>(this: *mut Opaque, f: impl FnOnce(&A) -> Result<T>) -> Result<T> {
    // SAFETY: as in `call`; only shared references exist while several threads use the object
    let named = unsafe { &*this.cast::<Named<A>>() };
    guard(named.name, || f(&named.inner))
}

impl Object {
    /// Creates the object of a component.
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
        // SAFETY: the engine drops an object once
        let named = unsafe { Box::from_raw(this.cast::<Named<A>>()) };
        let name = named.name;
        // a panic in a destructor is caught and dropped
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
            // SAFETY: the engine's services outlive the object
            let host = unsafe { Host::new(host) }?;
            a.start(host)
        }))
    }
    extern "C" fn finish(this: *mut Opaque) -> Wire<()> {
        to_wire(call::<A, _>(this, A::finish))
    }
}
