//! Generators make or read the initial state.

use crate::abi::GeneratorAdapter;
use crate::component::{Kind, Registration};
use crate::error::{Error, Result};
use crate::force::parse;
use crate::guard::Object;
use crate::params::{FromValue, Params};
use crate::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

/// What a generator may know besides the state so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeneratorContext {
    /// The run's seed.
    pub seed: u64,
    /// Number of this generator in the pipeline.
    pub component: u32,
    /// Folder that relative paths start at.
    pub directory: String,
}

impl GeneratorContext {
    /// A path of the pipeline, seen from where the program runs.
    pub fn path(&self, path: &str) -> std::path::PathBuf {
        std::path::Path::new(&self.directory).join(path)
    }
}

/// Makes, reads or changes the initial state. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Generator: Send + Sized + 'static {
    /// Changes the snapshot, which is empty for the first generator of the list.
    ///
    /// # Errors
    /// What is wrong with the input, with its place.
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()>;
    /// Number of whole frames in the file that it reads; `None` if it reads no trajectories.
    ///
    /// # Errors
    /// The file cannot be read.
    fn frames(&mut self, _context: &GeneratorContext) -> Result<Option<u64>> {
        Ok(None)
    }
    /// As [`Generator::generate`], but a frame of this number, from 0, whatever the parameters say. Frames are asked for one after
    /// the other, so what it takes to find them may be kept.
    ///
    /// # Errors
    /// As there.
    fn frame(&mut self, _context: &GeneratorContext, _number: u64, _snapshot: &mut Snapshot) -> Result<()> {
        Err(Error::Run("this generator has no frames".into()))
    }
}

impl Registration {
    /// A generator.
    pub const fn generator<T: Generator + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Generator,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, GeneratorAdapter(c))),
        }
    }
}
