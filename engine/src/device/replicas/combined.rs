//! Programs of several replicas as one sequence of launches.

use super::kernels::Kernels;
use super::program::{Launch, Operation, Program, alike, depth};
use crate::device::{Device, Graph, Kernel, SourceUnit};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::Globals;
use std::mem::offset_of;
use std::sync::Arc;

/// Threads of the one block of a kernel for conditions.
const BLOCK: u32 = 256;

/// Device memory; freed when dropped.
struct Memory {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
}

impl Memory {
    fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<Self> {
        Ok(Self { device: device.clone(), address: device.allocate(bytes.max(1))?, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Err(e) = self.device.free(self.address) {
            tracing::warn!("cannot free device memory: {e}");
        }
    }
}

/// Kernels of `replicas.cuh`.
#[derive(Clone, Copy)]
pub struct Conditions {
    find_rebuilds: Kernel,
    begin_loop: Kernel,
    find_unfinished: Kernel,
}

/// Returns the source unit of the engine's kernels for replicas. They are the same in every precision.
pub fn unit() -> SourceUnit {
    SourceUnit::new("replicas", "#include \"galamost/replicas.cuh\"\n", Precision::Mixed)
}

impl Conditions {
    /// Compiles the kernels.
    pub fn new(kernels: &Kernels) -> Result<Self> {
        let module = kernels.compile(&unit())?;
        let kernel = |name: &str| kernels.single(kernels.kernel(module, name)?);
        Ok(Self {
            find_rebuilds: kernel("find_rebuilds")?,
            begin_loop: kernel("begin_loop")?,
            find_unfinished: kernel("find_unfinished")?,
        })
    }
}

/// A step of the sequence. Addresses are offsets in the arguments.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Launch { kernel: Kernel, grid: Extent, block: Extent, shared: u32, cooperative: bool, calls: usize },
    IfRebuild { globals: usize, body: Vec<Step> },
    WhileNonzero { words: usize, globals: usize, body: Vec<Step> },
}

/// The programs of replicas that are alike, and what launches them together.
pub struct Combined {
    device: Arc<dyn Device>,
    conditions: Conditions,
    /// By replica.
    programs: Vec<Option<Arc<Program>>>,
    steps: Vec<Step>,
    bytes: Vec<u8>,
    /// Graph, if the device has graphs, and arguments.
    graph: Option<Graph>,
    arguments: Option<Memory>,
    /// For each level of conditions: which replicas are active.
    active: Memory,
    /// The uppermost level, on the device.
    uppermost: Vec<u32>,
    /// For each level: globals that hold the answer to the condition.
    answers: Memory,
}

impl Combined {
    /// Returns a set with one program, of a replica, for others like it.
    pub fn new(
        device: &Arc<dyn Device>,
        conditions: Conditions,
        replicas: usize,
        replica: usize,
        program: &Arc<Program>,
    ) -> Result<Self> {
        let levels = depth(program) + 1;
        let mut programs = vec![None; replicas];
        programs[replica] = Some(program.clone());
        Ok(Self {
            device: device.clone(),
            conditions,
            programs,
            steps: vec![],
            bytes: vec![],
            graph: None,
            arguments: None,
            active: Memory::new(device, 4 * replicas * levels)?,
            uppermost: vec![0; replicas],
            answers: Memory::new(device, size_of::<Globals>() * levels)?,
        })
    }

    /// Returns whether a program can join.
    pub fn accepts(&self, program: &Program) -> bool {
        self.programs.iter().flatten().next().is_some_and(|p| alike(p, program))
    }

    /// Removes a program; its memory may be freed now. Returns whether none is left.
    pub fn remove(&mut self, replica: usize, program: &Arc<Program>) -> Result<bool> {
        let own = &mut self.programs[replica];
        if own.as_ref().is_some_and(|p| Arc::ptr_eq(p, program)) {
            *own = None;
        }
        let empty = self.programs.iter().all(Option::is_none);
        if empty {
            self.destroy_graph()?;
        }
        Ok(empty)
    }

    fn destroy_graph(&mut self) -> Result<()> {
        self.graph.take().map_or(Ok(()), |g| self.device.destroy_graph(g))
    }

    /// Launches the programs of these replicas.
    pub fn launch(&mut self, programs: &[(usize, Arc<Program>)]) -> Result<()> {
        let known = |(r, p): &(usize, Arc<Program>)| self.programs[*r].as_ref().is_some_and(|own| Arc::ptr_eq(own, p));
        if self.arguments.is_none() || !programs.iter().all(known) {
            programs.iter().for_each(|(r, p)| self.programs[*r] = Some(p.clone()));
            self.prepare()?;
        }
        let mut uppermost = vec![0; self.programs.len()];
        programs.iter().for_each(|(r, _)| uppermost[*r] = 1);
        if uppermost != self.uppermost {
            self.device.upload_queued(self.active.address, galamost_plugin_api::device::bytes_of(&uppermost))?;
            self.uppermost = uppermost;
        }
        match self.graph {
            Some(graph) => self.device.launch_graph(graph),
            None => self.run(&self.steps, 0),
        }
    }

    /// Makes the sequence of launches. It is captured anew only if more than arguments has changed.
    fn prepare(&mut self) -> Result<()> {
        let programs: Vec<Option<&[Operation]>> =
            self.programs.iter().map(|p| p.as_deref().map(Vec::as_slice)).collect();
        let mut bytes = vec![];
        let steps = combine(&programs, &mut bytes);
        if self.arguments.as_ref().is_none_or(|a| a.bytes < bytes.len()) {
            self.destroy_graph()?;
            self.arguments = None;
            self.arguments = Some(Memory::new(&self.device, bytes.len())?);
        }
        if steps != self.steps {
            self.destroy_graph()?;
            self.steps = steps;
        }
        if bytes != self.bytes {
            self.device.upload(self.arguments.as_ref().map_or(0, |a| a.address), &bytes)?;
            self.bytes = bytes;
        }
        if self.graph.is_none() {
            let device = self.device.clone();
            self.graph = device.capture(&mut || self.run(&self.steps, 0))?;
        }
        Ok(())
    }

    /// Launches steps inside of `level` conditions.
    fn run(&self, steps: &[Step], level: usize) -> Result<()> {
        let replicas = self.programs.len();
        let arguments = self.arguments.as_ref().map_or(0, |a| a.address);
        let address = |offset: &usize| arguments + *offset as u64;
        let [outside, inside] = [level, level + 1].map(|l| self.active.address + (4 * replicas * l) as u64);
        let any = self.answers.address + (size_of::<Globals>() * level) as u64;
        let (count, d) = (replicas as u64, &*self.device);
        for step in steps {
            match step {
                Step::Launch { kernel, grid, block, shared, cooperative, calls } => {
                    let pointers = [address(calls), outside];
                    let pointers = pointers.each_ref().map(|p| std::ptr::from_ref(p).cast_mut().cast::<Opaque>());
                    // SAFETY: a batched kernel takes its calls, one for each z, and the active replicas
                    unsafe {
                        if *cooperative {
                            d.launch_cooperative(*kernel, *grid, block.x, &pointers)?;
                        } else {
                            d.launch(*kernel, *grid, *block, *shared, &pointers)?;
                        }
                    }
                }
                Step::IfRebuild { globals, body } => {
                    self.condition(self.conditions.find_rebuilds, &[address(globals), outside, inside, any, count])?;
                    d.if_rebuild(any, 1, &mut |_| self.run(body, level + 1))?;
                }
                Step::WhileNonzero { words, globals, body } => {
                    self.condition(self.conditions.begin_loop, &[outside, inside, count])?;
                    let word = any + offset_of!(Globals, rebuild) as u64;
                    d.while_nonzero(word, any, &mut || {
                        self.run(body, level + 1)?;
                        let arguments = [address(globals), address(words), inside, any, count];
                        self.condition(self.conditions.find_unfinished, &arguments)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Launches a kernel of [`Conditions`]. The last argument is a number of 32 bits, the others are addresses.
    fn condition(&self, kernel: Kernel, arguments: &[u64]) -> Result<()> {
        let pointers: Vec<_> = arguments.iter().map(|a| std::ptr::from_ref(a).cast_mut().cast::<Opaque>()).collect();
        // SAFETY: the kernel takes these addresses and the number of replicas, whose low half comes first in memory
        unsafe { self.device.launch(kernel, Extent::from(1), Extent::from(BLOCK), 0, &pointers) }
    }
}

/// Adds an array of addresses to the arguments and returns its offset.
fn add_addresses(bytes: &mut Vec<u8>, addresses: impl Iterator<Item = u64>) -> usize {
    let offset = bytes.len().next_multiple_of(16);
    bytes.resize(offset, 0);
    addresses.for_each(|a| bytes.extend(a.to_ne_bytes()));
    offset
}

/// Combines programs that are alike. Launches that differ in their kernels or sizes follow each other.
fn combine(programs: &[Option<&[Operation]>], bytes: &mut Vec<u8>) -> Vec<Step> {
    let n = programs.iter().flatten().next().map_or(0, |p| p.len());
    let mut steps = vec![];
    for k in 0..n {
        let all = || programs.iter().map(|p| p.map(|p| &p[k]));
        match all().flatten().next() {
            Some(Operation::Launch(_)) => {
                let launches = all().flatten().filter_map(|o| match o {
                    Operation::Launch(l) => Some(l),
                    _ => None,
                });
                launch_groups(launches, bytes, &mut steps);
            }
            Some(Operation::IfRebuild { .. }) => {
                let parts: Vec<_> = all()
                    .map(|o| match o {
                        Some(Operation::IfRebuild { globals, body }) => (*globals, Some(body.as_slice())),
                        _ => (0, None),
                    })
                    .collect();
                let globals = add_addresses(bytes, parts.iter().map(|p| p.0));
                let bodies: Vec<_> = parts.iter().map(|p| p.1).collect();
                steps.push(Step::IfRebuild { globals, body: combine(&bodies, bytes) });
            }
            Some(Operation::WhileNonzero { .. }) => {
                let parts: Vec<_> = all()
                    .map(|o| match o {
                        Some(Operation::WhileNonzero { word, globals, body }) => {
                            (*word, *globals, Some(body.as_slice()))
                        }
                        _ => (0, 0, None),
                    })
                    .collect();
                let words = add_addresses(bytes, parts.iter().map(|p| p.0));
                let globals = add_addresses(bytes, parts.iter().map(|p| p.1));
                let bodies: Vec<_> = parts.iter().map(|p| p.2).collect();
                steps.push(Step::WhileNonzero { words, globals, body: combine(&bodies, bytes) });
            }
            None => {}
        }
    }
    steps
}

/// Adds the launches of one operation of all replicas.
fn launch_groups<'a>(launches: impl Iterator<Item = &'a Launch>, bytes: &mut Vec<u8>, steps: &mut Vec<Step>) {
    let mut groups: Vec<Vec<&Launch>> = vec![];
    for launch in launches {
        match groups.iter_mut().find(|g| g[0].joins(launch)) {
            Some(group) => group.push(launch),
            None => groups.push(vec![launch]),
        }
    }
    for group in groups {
        let Launch { kernel, grid, block, shared, resident, .. } = group[0];
        // blocks of a replica wait for each other, so all must be resident; different replicas may follow each other
        let most = resident.map_or(usize::MAX, |blocks| (blocks / grid.x).max(1) as usize);
        for part in group.chunks(most) {
            let calls = add_addresses(bytes, std::iter::empty());
            part.iter().for_each(|l| bytes.extend(&l.call));
            steps.push(Step::Launch {
                kernel: kernel.kernel,
                grid: Extent { z: part.len() as u32, ..*grid },
                block: *block,
                shared: *shared,
                cooperative: resident.is_some(),
                calls,
            });
        }
    }
}

/// Returns the error of an operation that a graph cannot contain.
pub fn not_capturable(what: &str) -> Error {
    Error::Device { what: what.into(), message: "this cannot be part of a graph".into() }
}
