//! Components as objects that cross the boundary.
//!
//! A panic never crosses the boundary. It is caught here, inside the plugin, and becomes [`crate::error::Error::Panic`]
//! with its text and source location.
//!
//! Several threads may call an object at the same time. All functions but `bind` and `drop` therefore create only shared
//! references to it, and the object is `Sync`. Authors' methods that take `&mut self` are behind [`Exclusive`].

use crate::abi::panic::guard;
use crate::abi::services::Host;
use crate::abi::wire::{from_ron, to_ron, to_wire};
use crate::abi::{
    Component1, Object, Opaque, ROption, RSlice, RStr, RString, RVec, TablePointer, Wire, WireHost, WireObject,
};
use crate::error::{Error, Result};
use crate::kinds::component::{Needs, SystemInfo};
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Methods of `component/1`, which every component has.
pub trait ComponentInterface: Send + Sync + Sized + 'static {
    /// Receives the facts of the system and returns what the component needs.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs>;
    /// Receives the engine's services.
    ///
    /// # Errors
    /// Returns an error if the component cannot start.
    fn start(&self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Returns the state for a checkpoint, in addition to what the engine stores.
    ///
    /// # Errors
    /// Returns an error if the state cannot be saved.
    fn save(&self) -> Result<Vec<u8>> {
        Ok(vec![])
    }
    /// Restores the state that [`Self::save`] returned.
    ///
    /// # Errors
    /// Returns an error if the state does not belong to this component.
    fn load(&self, state: &[u8]) -> Result<()> {
        if state.is_empty() {
            Ok(())
        } else {
            Err(Error::Run("the checkpoint contains state for a component without state".into()))
        }
    }
    /// Writes final results; called once, after the last step or an error of the run, and before the last `save`.
    ///
    /// # Errors
    /// Returns an error if the results cannot be written.
    fn finish(&self) -> Result<()> {
        Ok(())
    }
    /// Returns the table of the component's kind, if `name` is its name.
    fn table(name: &str) -> Option<TablePointer>;
}

/// A component whose methods change it: one call at a time.
pub struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    pub fn new(component: T) -> Self {
        Self(Mutex::new(component))
    }

    /// Calls a method.
    ///
    /// # Errors
    /// Returns the method's error, or an error if another call has not returned yet.
    pub fn call<R>(&self, f: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        match self.0.try_lock() {
            Ok(mut component) => f(&mut component),
            // after a panic, `finish` may still write results
            Err(TryLockError::Poisoned(e)) => f(&mut e.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Error::Run("a method was called before the previous call returned".into()))
            }
        }
    }

    /// Returns the component, which nothing else uses.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The target of an object's pointer: the component and its name.
struct Named<A> {
    name: &'static str,
    inner: A,
}

/// Calls a method of the object and catches panics. Several threads may do so at the same time.
pub(crate) fn call<A: ComponentInterface, T>(this: *mut Opaque, f: impl FnOnce(&A) -> Result<T>) -> Result<T> {
    // SAFETY: `this` is a `Named<A>` of `Object::new`, because the tables of an object name its own functions; only `bind`
    // and `drop` create other than shared references to it, and both are called when nothing else uses the object
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
        // SAFETY: `this` is the box of `Object::new`; `drop` is the last call of an object
        let named = unsafe { Box::from_raw(this.cast::<Named<A>>()) };
        let name = named.name;
        // a panic in a destructor is caught and dropped
        let _ = guard(name, || {
            drop(named);
            Ok(())
        });
    }
    extern "C" fn bind(this: *mut Opaque, system: RStr<'_>) -> Wire<RString> {
        // SAFETY: `this` is a `Named<A>` of `Object::new`; the engine binds a component before it shares it with others
        let named = unsafe { &mut *this.cast::<Named<A>>() };
        to_wire(guard(named.name, || Ok(to_ron(&named.inner.bind(&from_ron(system.as_str())?)?))))
    }
    extern "C" fn save(this: *mut Opaque) -> Wire<RVec<u8>> {
        to_wire(call::<A, _>(this, A::save))
    }
    extern "C" fn load(this: *mut Opaque, state: RSlice<'_, u8>) -> Wire<()> {
        to_wire(call::<A, _>(this, |a| a.load(state.as_slice())))
    }
    extern "C" fn start(this: *mut Opaque, host: *const WireHost) -> Wire<()> {
        to_wire(call::<A, _>(this, |a| {
            // SAFETY: `component/1` passes the engine's services, which are never freed
            let host = unsafe { Host::new(host) }?;
            a.start(host)
        }))
    }
    extern "C" fn finish(this: *mut Opaque) -> Wire<()> {
        to_wire(call::<A, _>(this, A::finish))
    }
}
