//! Adapters from the trait of a kind, which authors implement, to what the boundary needs of every component.

use super::guard::{Common, analyzer_table, force_table, generator_table, sampler_table, updater_table};
use super::services::Host;
use super::stable::Table;
use crate::analyzer::Analyzer;
use crate::component::{Needs, SystemInfo};
use crate::error::{Error, Result};
use crate::force::Force;
use crate::generator::Generator;
use crate::sampler::Sampler;
use crate::updater::Updater;

macro_rules! adapters {
    ($($(#[$doc:meta])* $adapter:ident of $kind:ident: $name:literal, $table:ident $(, $field:ident or $message:literal)?;)+) => {$(
        $(#[$doc])*
        pub struct $adapter<T>(pub(crate) T);

        impl<T: $kind> Common for $adapter<T> {
            fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
                let mut needs = Needs::default();
                self.0.bind(system, &mut needs)?;
                $(if needs.$field == 0 {
                    return Err(Error::Run($message.into()));
                })?
                Ok(needs)
            }
            fn start(&mut self, host: Host) -> Result<()> {
                self.0.start(host)
            }
            fn save(&mut self) -> Result<Vec<u8>> {
                self.0.save()
            }
            fn load(&mut self, state: &[u8]) -> Result<()> {
                self.0.load(state)
            }
            fn finish(&mut self) -> Result<()> {
                self.0.finish()
            }
            fn table(name: &str) -> Option<Table> {
                (name == $name).then($table::<T>)
            }
        }
    )+};
}
adapters! {
    /// A [`Force`] as a component.
    ForceAdapter of Force: "force/1", force_table;
    /// An [`Updater`] as a component.
    UpdaterAdapter of Updater: "updater/1", updater_table, period or "an updater must say its period";
    /// An [`Analyzer`] as a component.
    AnalyzerAdapter of Analyzer: "analyzer/1", analyzer_table, period or "an analyzer must say its period";
    /// A [`Sampler`] as a component.
    SamplerAdapter of Sampler: "sampler/1", sampler_table, batches or "a sampler must say how many batches it draws";
}

/// A [`Generator`] as a component. It needs nothing of the system.
pub struct GeneratorAdapter<T>(pub(crate) T);

impl<T: Generator> Common for GeneratorAdapter<T> {
    fn bind(&mut self, _: &SystemInfo) -> Result<Needs> {
        Ok(Needs::default())
    }
    fn table(name: &str) -> Option<Table> {
        (name == "generator/1").then(generator_table::<T>)
    }
}
