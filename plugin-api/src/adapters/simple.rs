//! Adapters of forces, updaters, analyzers, samplers and generators.

use super::object::{ComponentInterface, Exclusive};
use super::tables::{analyzer_table, force_table, generator_table, sampler_table, updater_table};
use crate::abi::services::Host;
use crate::abi::views::Sums;
use crate::abi::{Object, TablePointer};
use crate::error::{Error, Result};
use crate::kinds::analyzer::Analyzer;
use crate::kinds::component::{Kind, Needs, Registration, SystemInfo};
use crate::kinds::external::{External, ExternalFn};
use crate::kinds::force::{Force, ForceCall};
use crate::kinds::generator::Generator;
use crate::kinds::sampler::Sampler;
use crate::kinds::updater::Updater;
use crate::params::{FromValue, Params, parse};

macro_rules! adapters {
    ($($(#[$doc:meta])* $adapter:ident of $kind:ident: $name:literal, $table:ident $(, $field:ident or $message:literal)?;)+) => {$(
        $(#[$doc])*
        pub struct $adapter<T>(pub(crate) Exclusive<T>);

        impl<T: $kind> ComponentInterface for $adapter<T> {
            fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
                let mut needs = Needs::default();
                self.0.get_mut().bind(system, &mut needs)?;
                $(if needs.$field == 0 {
                    return Err(Error::Run($message.into()));
                })?
                Ok(needs)
            }
            fn start(&self, host: Host) -> Result<()> {
                self.0.call(|c| c.start(host))
            }
            fn save(&self) -> Result<Vec<u8>> {
                self.0.call(T::save)
            }
            fn load(&self, state: &[u8]) -> Result<()> {
                self.0.call(|c| c.load(state))
            }
            fn finish(&self) -> Result<()> {
                self.0.call(T::finish)
            }
            fn table(name: &str) -> Option<TablePointer> {
                (name == $name).then($table::<T>)
            }
        }
    )+};
}
adapters! {
    /// A [`Force`] as a component.
    ForceAdapter of Force: "force/1", own_force_table;
    /// An [`Updater`] as a component.
    UpdaterAdapter of Updater: "updater/1", updater_table, period or "an updater must set `needs.period`";
    /// An [`Analyzer`] as a component.
    AnalyzerAdapter of Analyzer: "analyzer/1", analyzer_table, period or "an analyzer must set `needs.period`";
    /// A [`Sampler`] as a component.
    SamplerAdapter of Sampler: "sampler/1", sampler_table, batches or "a sampler must set `needs.batches`";
}

fn own_force_table<T: Force>() -> TablePointer {
    force_table::<ForceAdapter<T>>()
}

/// Methods of `force/1`.
pub trait ForceInterface: ComponentInterface {
    /// Adds forces.
    ///
    /// # Errors
    /// Returns the component's error.
    ///
    /// # Safety
    /// As [`Force::compute`].
    unsafe fn compute(&self, call: &ForceCall, sums: &mut Sums) -> Result<()>;
    /// Places particles without mass.
    ///
    /// # Errors
    /// Returns the component's error.
    ///
    /// # Safety
    /// As [`Force::place`].
    unsafe fn place(&self, call: &ForceCall) -> Result<()>;
}

impl<T: Force> ForceInterface for ForceAdapter<T> {
    unsafe fn compute(&self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        self.0.call(|f| unsafe { f.compute(call, sums) })
    }
    unsafe fn place(&self, call: &ForceCall) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        self.0.call(|f| unsafe { f.place(call) })
    }
}

/// A [`Generator`] as a component. Its needs are its warnings; the engine asks for them after it was used.
pub struct GeneratorAdapter<T>(pub(crate) Exclusive<T>);

impl<T: Generator> ComponentInterface for GeneratorAdapter<T> {
    fn bind(&mut self, _: &SystemInfo) -> Result<Needs> {
        Ok(Needs { warnings: self.0.get_mut().warnings(), ..Needs::default() })
    }
    fn table(name: &str) -> Option<TablePointer> {
        (name == "generator/1").then(generator_table::<T>)
    }
}

impl Registration {
    /// Registers a sampler.
    pub const fn sampler<T: Sampler + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Sampler,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, SamplerAdapter(Exclusive::new(c)))),
        }
    }

    /// Registers a force.
    pub const fn force<T: Force + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Force,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, ForceAdapter(Exclusive::new(c)))),
        }
    }

    /// Registers an updater.
    pub const fn updater<T: Updater + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Updater,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, UpdaterAdapter(Exclusive::new(c)))),
        }
    }

    /// Registers an analyzer.
    pub const fn analyzer<T: Analyzer + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Analyzer,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, AnalyzerAdapter(Exclusive::new(c)))),
        }
    }

    /// Registers a generator.
    pub const fn generator<T: Generator + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Generator,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, GeneratorAdapter(Exclusive::new(c)))),
        }
    }

    /// Registers an external potential.
    pub const fn external<F: ExternalFn>(name: &'static str, doc: &'static str) -> Self {
        Self::force::<External<F>>(name, doc)
    }
}
