//! Tables of `extern "C"` functions, one for each kind.

use super::bonded::BondedInterface;
use super::integrator::IntegratorInterface;
use super::object::call;
use super::pair::PairInterface;
use super::simple::{AnalyzerAdapter, ForceInterface, GeneratorAdapter, SamplerAdapter, UpdaterAdapter};
use crate::abi::wire::{from_ron, to_ron, to_wire};
use crate::abi::{
    Analyzer1, Bonded1, Force1, Generator1, Integrator1, Opaque, Pair1, ROption, RSlice, RStr, RString, RVec, Sampler1,
    TablePointer, Updater1, Wire, WireCode, WirePair, WireSnapshot,
};
use crate::device::precision::Precision;
use crate::error::{Error, Result};
use crate::kinds::analyzer::{Analyzer, Frame, FrameCall};
use crate::kinds::generator::Generator;
use crate::kinds::sampler::Sampler;
use crate::kinds::updater::Updater;
use crate::snapshot::Snapshot;
use std::marker::PhantomData;

/// Returns an error if the generator does not accept the box of a snapshot.
fn accepts<G: Generator>(s: &Snapshot) -> Result<()> {
    if G::TRICLINIC || !s.is_tilted() {
        return Ok(());
    }
    Err(Error::input("does not support triclinic boxes"))
}

/// Defines the table of each kind; `this` is the pointer to the object.
macro_rules! kind_tables {
    ($($(#[$doc:meta])* $name:ident: $table:ident in $trait:path { $($field:ident: fn($($arg:ident: $ty:ty),*) -> $ret:ty = $body:expr;)+ })+) => {$(
        $(#[$doc])*
        pub fn $name<A: $trait>() -> TablePointer {
            struct T<A>(PhantomData<A>);
            impl<A: $trait> T<A> {
                const TABLE: &'static $table = &$table { $($field: Self::$field),+ };
                $(extern "C" fn $field(this: *mut Opaque, $($arg: $ty),*) -> $ret {
                    let body: fn(*mut Opaque, $($ty),*) -> $ret = $body;
                    body(this, $($arg),*)
                })+
            }
            TablePointer::new(T::<A>::TABLE)
        }
    )+};
}
kind_tables! {
    /// `generator/1`.
    generator_table: Generator1 in Generator {
        generate: fn(context: RStr<'_>, snapshot: &mut WireSnapshot) -> Wire<()> = |this, context, snapshot| {
            to_wire(call::<GeneratorAdapter<A>, _>(this, |a| {
                let mut s: Snapshot = std::mem::take(snapshot).into();
                let result = a.0.call(|g| {
                    accepts::<A>(&s)?;
                    g.generate(&from_ron(context.as_str())?, &mut s)
                });
                *snapshot = s.into();
                result
            }))
        };
        count: fn(context: RStr<'_>) -> Wire<ROption<u64>> = |this, context| {
            to_wire(call::<GeneratorAdapter<A>, _>(this, |a| a.0.call(|g| g.frames(&from_ron(context.as_str())?)).map(ROption::from)))
        };
        read: fn(context: RStr<'_>, number: u64, snapshot: &mut WireSnapshot) -> Wire<()> = |this, context, number, snapshot| {
            to_wire(call::<GeneratorAdapter<A>, _>(this, |a| {
                let mut s = std::mem::take(snapshot).into();
                let result = a.0.call(|g| g.frame(&from_ron(context.as_str())?, number, &mut s));
                *snapshot = s.into();
                result
            }))
        };
    }
    /// `pair/1`.
    pair_table: Pair1 in PairInterface {
        evaluate: fn(i: u32, j: u32, pose: *const Opaque) -> Wire<WirePair> = |this, i, j, pose| {
            to_wire(call::<A, _>(this, |a| {
                // SAFETY: `pair/1` passes a `PairConfiguration`
                let felt = a.evaluate(i, j, unsafe { &*pose.cast() });
                Ok(WirePair { force: felt.force.f64(), torque: felt.torque.f64(), energy: felt.energy })
            }))
        };
        cpu: fn(input: *const Opaque, sums: *mut Opaque) -> Wire<()> = |this, input, sums| {
            // SAFETY: `pair/1` passes a `PairCall` whose views are valid host arrays, and `Sums`; the ranges of calls at the
            // same time are disjoint
            to_wire(call::<A, _>(this, |a| unsafe { a.cpu(&*input.cast(), &mut *sums.cast()) }))
        };
        device: fn(precision: u32) -> Wire<WireCode> = |this, precision| {
            to_wire(call::<A, _>(this, |a| a.device(Precision::from_u32(precision).unwrap_or_default())))
        };
    }
    /// `bonded/1`.
    bonded_table: Bonded1 in BondedInterface {
        cpu: fn(input: *const Opaque, sums: *mut Opaque) -> Wire<()> = |this, input, sums| {
            // SAFETY: `bonded/1` passes a `BondedCall` whose views are valid host arrays, and `Sums`; the ranges of calls at
            // the same time are disjoint
            to_wire(call::<A, _>(this, |a| unsafe { a.cpu(&*input.cast(), &mut *sums.cast()) }))
        };
        device: fn(precision: u32) -> Wire<WireCode> = |this, precision| {
            to_wire(call::<A, _>(this, |a| a.device(Precision::from_u32(precision).unwrap_or_default())))
        };
    }
    /// `integrator/1`.
    integrator_table: Integrator1 in IntegratorInterface {
        program: fn() -> Wire<RString> = |this| {
            to_wire(call::<A, _>(this, |a| Ok(to_ron(&a.program()))))
        };
        state: fn(info: RStr<'_>) -> Wire<RVec<u8>> = |this, info| {
            to_wire(call::<A, _>(this, |a| a.state(&from_ron(info.as_str())?)))
        };
        cpu_particles: fn(phase: u32, input: *const Opaque) -> Wire<()> = |this, phase, input| {
            // SAFETY: `integrator/1` passes a `ParticleCall` whose views are valid host arrays; the ranges of calls at the
            // same time are disjoint
            to_wire(call::<A, _>(this, |a| unsafe { a.cpu_particles(phase, &*input.cast()) }))
        };
        cpu_scalar: fn(phase: u32, input: *const Opaque) -> Wire<()> = |this, phase, input| {
            // SAFETY: `integrator/1` passes a `ScalarCall` with addresses of host memory that nothing else uses meanwhile
            to_wire(call::<A, _>(this, |a| unsafe { a.cpu_scalar(phase, &*input.cast()) }))
        };
        device: fn(precision: u32) -> Wire<WireCode> = |this, precision| {
            to_wire(call::<A, _>(this, |a| a.device(Precision::from_u32(precision).unwrap_or_default())))
        };
        conserved: fn(state: RSlice<'_, u8>) -> Wire<f64> = |this, state| {
            to_wire(call::<A, _>(this, |a| Ok(a.conserved(state.as_slice()))))
        };
    }
    /// `force/1`.
    force_table: Force1 in ForceInterface {
        compute: fn(input: *const Opaque, sums: *mut Opaque) -> Wire<()> = |this, input, sums| {
            // SAFETY: `force/1` passes a `ForceCall` whose views are valid arrays of the device, and `Sums`
            to_wire(call::<A, _>(this, |a| unsafe { a.compute(&*input.cast(), &mut *sums.cast()) }))
        };
        place: fn(input: *const Opaque) -> Wire<()> = |this, input| {
            // SAFETY: `force/1` passes a `ForceCall` whose views are valid arrays of the device
            to_wire(call::<A, _>(this, |a| unsafe { a.place(&*input.cast()) }))
        };
    }
    /// `updater/1`.
    updater_table: Updater1 in Updater {
        update: fn(input: *mut Opaque) -> Wire<()> = |this, input| {
            // SAFETY: `updater/1` passes an `UpdateCall` whose views are valid arrays of the device
            to_wire(call::<UpdaterAdapter<A>, _>(this, |a| a.0.call(|u| unsafe { u.update(&mut *input.cast()) })))
        };
    }
    /// `sampler/1`.
    sampler_table: Sampler1 in Sampler {
        sample: fn(batch: u64) -> Wire<()> = |this, batch| {
            to_wire(call::<SamplerAdapter<A>, _>(this, |a| a.0.call(|s| s.sample(batch))))
        };
    }
    /// `analyzer/1`.
    analyzer_table: Analyzer1 in Analyzer {
        analyze: fn(input: *const Opaque) -> Wire<()> = |this, input| {
            // SAFETY: `analyzer/1` passes a `FrameCall`, whose columns are borrowed until the call returns
            let call_of_frame: &FrameCall<'_> = unsafe { &*input.cast() };
            to_wire(call::<AnalyzerAdapter<A>, _>(this, |a| a.0.call(|n| n.analyze(&Frame::new(call_of_frame)))))
        };
    }
}
