//! What the first process of a run tells the others to do.

use crate::processes::Messages;
use crate::state::RawState;
use crate::state::topology::Topology;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::snapshot::Link;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A command. Numbers are sent as their bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Open the device.
    Open,
    /// Start a component that ranks share; its state follows.
    Start { component: u32 },
    /// Begin a stage of the plan.
    BeginStage { number: usize, forces_are_valid: bool },
    /// Do steps.
    Advance { steps: u64, energy: u32, virial: u32 },
    /// Send the parts of the arrays to the first process.
    Complete,
    /// Say how long this rank has waited for the others.
    Waited,
    /// Continue with these particles of each rank, in the state that follows.
    Divide { begins: Vec<usize> },
    /// Take the state that follows.
    Import,
    /// Compute the forces of this state.
    Evaluate,
    /// Apply what an updater did; globals and edits follow.
    Update { updater: u32, changed: u32, length: [u64; 3], energy: u32, virial: u32 },
    /// Call an updater that ranks share, and apply what it did.
    UpdateOwn { updater: u32, energy: u32, virial: u32 },
    /// Report on the neighbor list.
    Report,
    /// End the process with this exit status.
    End { status: u8 },
}

/// Encodes a header for a message.
fn text(header: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(header).map_err(|e| Error::Run(format!("a message to other processes: {e}")))
}

/// Decodes a header.
fn header<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| Error::Run(format!("a message of another process: {e}")))
}

impl Command {
    /// Tells the others.
    ///
    /// # Errors
    /// As for [`Messages::transfer`].
    pub fn send(&self, messages: &dyn Messages) -> Result<()> {
        messages.broadcast(text(self)?).map(drop)
    }

    /// Waits for the next command.
    ///
    /// # Errors
    /// As for [`Messages::transfer`].
    pub fn receive(messages: &dyn Messages) -> Result<Self> {
        header(&messages.broadcast(vec![])?)
    }
}

/// What comes before the bytes of a state.
#[derive(Serialize, Deserialize)]
struct StateHeader {
    step: u64,
    box_length: [u64; 3],
    /// Name and length of each section.
    sections: Vec<(String, usize)>,
    bonds: Vec<u32>,
    angles: Vec<u32>,
    dihedrals: Vec<u32>,
    impropers: Vec<u32>,
}

fn words<const N: usize>(links: &[Link<N>]) -> Vec<u32> {
    links.iter().flat_map(|l| std::iter::once(l.kind).chain(l.tags)).collect()
}

fn links<const N: usize>(words: &[u32]) -> Vec<Link<N>> {
    words.chunks_exact(N + 1).map(|w| Link { kind: w[0], tags: std::array::from_fn(|k| w[k + 1]) }).collect()
}

/// Copies a state of the first process to all others; these give none.
///
/// # Errors
/// As for [`Messages::transfer`].
pub fn broadcast_state(messages: &dyn Messages, state: Option<&RawState>) -> Result<RawState> {
    let (mut head, mut bytes) = (vec![], vec![]);
    if let Some(s) = state {
        head = text(&StateHeader {
            step: s.step,
            box_length: s.box_length.map(f64::to_bits),
            sections: s.sections.iter().map(|(name, b)| (name.clone(), b.len())).collect(),
            bonds: words(&s.topology.bonds),
            angles: words(&s.topology.angles),
            dihedrals: words(&s.topology.dihedrals),
            impropers: words(&s.topology.impropers),
        })?;
        bytes = s.sections.values().flatten().copied().collect();
    }
    let head: StateHeader = header(&messages.broadcast(head)?)?;
    let bytes = messages.broadcast(bytes)?;
    let mut rest = bytes.as_slice();
    let mut sections = BTreeMap::new();
    for (name, length) in head.sections {
        let Some((section, after)) = rest.split_at_checked(length) else {
            return Err(Error::Run("a state of another process is incomplete".into()));
        };
        sections.insert(name, section.to_vec());
        rest = after;
    }
    Ok(RawState {
        step: head.step,
        box_length: head.box_length.map(f64::from_bits),
        sections,
        topology: Topology {
            bonds: links(&head.bonds),
            angles: links(&head.angles),
            dihedrals: links(&head.dihedrals),
            impropers: links(&head.impropers),
        },
    })
}
