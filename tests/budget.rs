//! The cost of a step, counted without a GPU: the number of launches; no allocation and no synchronization.

use galamost_engine::backend::Backend;
use galamost_engine::device::{
    Device, EmulatedDevice, Graph, Kernel, MemoryKind, ReplicaDevice, Services, SourceUnit, open_replicas,
};
use galamost_engine::gpu::{GpuSystem, RankedSystem};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::profile::{Profile, Timing};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::Wanted;
use galamost_tests::{has_compiler, plan};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// Calls of the emulated device.
#[derive(Default)]
struct Counts {
    allocations: AtomicU64,
    launches: AtomicU64,
    /// Copies that the host waits for.
    copies: AtomicU64,
    /// Other copies to the device, and clears.
    queued: AtomicU64,
    /// Names of the kernels.
    names: Mutex<BTreeMap<u64, String>>,
    /// For each kernel, its launches and their threads.
    kernels: Mutex<BTreeMap<String, [u64; 2]>>,
}

struct Counted {
    inner: EmulatedDevice,
    counts: Arc<Counts>,
}

fn one_more(n: &AtomicU64) {
    n.fetch_add(1, Ordering::Relaxed);
}

impl Services for Counted {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn multiprocessors(&self) -> u32 {
        self.inner.multiprocessors()
    }
    fn block_memory(&self) -> u32 {
        self.inner.block_memory()
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        one_more(&self.counts.allocations);
        self.inner.allocate(bytes)
    }
    fn free(&self, address: u64) -> Result<()> {
        self.inner.free(address)
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        one_more(&self.counts.copies);
        self.inner.upload(address, bytes)
    }
    fn upload_queued(&self, address: u64, bytes: &[u8]) -> Result<()> {
        one_more(&self.counts.queued);
        self.inner.upload_queued(address, bytes)
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        one_more(&self.counts.copies);
        self.inner.download(address, bytes)
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        one_more(&self.counts.queued);
        self.inner.clear(address, bytes)
    }
    fn define_macro(&self, name: &'static str) {
        self.inner.define_macro(name);
    }
    fn compile(&self, unit: &SourceUnit) -> Result<u64> {
        self.inner.compile(unit)
    }
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel> {
        let kernel = self.inner.kernel(module, name)?;
        self.counts.names.lock().expect("names").insert(kernel.0, name.into());
        Ok(kernel)
    }
    unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        shared: u32,
        args: &[*mut Opaque],
    ) -> Result<()> {
        one_more(&self.counts.launches);
        let name = self.counts.names.lock().expect("names")[&kernel.0].clone();
        let mut kernels = self.counts.kernels.lock().expect("kernels");
        let [launches, threads] = kernels.entry(name).or_default();
        (*launches, *threads) = (*launches + 1, *threads + u64::from(grid.x) * u64::from(block.x));
        drop(kernels);
        // SAFETY: the contract is that of this function
        unsafe { self.inner.launch(kernel, grid, block, shared, args) }
    }
}

impl Device for Counted {
    fn synchronize(&self) -> Result<()> {
        one_more(&self.counts.copies);
        self.inner.synchronize()
    }
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        self.inner.capture(body)
    }
    fn launch_graph(&self, graph: Graph) -> Result<()> {
        self.inner.launch_graph(graph)
    }
    fn destroy_graph(&self, graph: Graph) -> Result<()> {
        self.inner.destroy_graph(graph)
    }
    fn if_rebuild(&self, globals: u64, sort_every: u32, body: &mut dyn FnMut(bool) -> Result<()>) -> Result<()> {
        self.inner.if_rebuild(globals, sort_every, body)
    }
    fn supports_staged_list(&self) -> bool {
        self.inner.supports_staged_list()
    }
    fn supports_grid_barrier(&self) -> bool {
        // step by step, so that launches can be counted
        false
    }
    fn max_resident_blocks(&self, kernel: Kernel, threads: u32) -> Result<u32> {
        self.inner.max_resident_blocks(kernel, threads)
    }
    unsafe fn launch_cooperative(
        &self,
        kernel: Kernel,
        grid: Extent,
        threads: u32,
        args: &[*mut Opaque],
    ) -> Result<()> {
        // SAFETY: the contract is that of this function
        unsafe { self.inner.launch_cooperative(kernel, grid, threads, args) }
    }
    fn set_word(&self, address: u64, word: u32) -> Result<()> {
        self.inner.set_word(address, word)
    }
    fn while_nonzero(&self, left: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.inner.while_nonzero(left, globals, body)
    }
    fn memory_kind(&self) -> MemoryKind {
        self.inner.memory_kind()
    }
    fn memory(&self) -> u64 {
        self.inner.memory()
    }
    fn profile(&self) -> &Profile {
        self.inner.profile()
    }
    fn end_profile(&self) -> Result<Vec<Timing>> {
        self.inner.end_profile()
    }
}

const STEPS: u64 = 48;

/// Kernels of a sort: cells (4, of which one block scans so few), and the move (2).
const SORT: u64 = 6;
/// Kernels of a rebuild without links and a sort: list, end; with a staged list, whose kernels are four.
const REBUILD: u64 = 2;
const STAGED_REBUILD: u64 = 5;

#[test]
fn steps_cost_the_expected_launches_and_no_transfers() {
    if !has_compiler() {
        return;
    }
    let lj = r#"LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })"#;
    let dpd = r#"Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0) })"#;
    // kernels of a step: pairs, the phase after them with that before the next forces; a thermostat that measures does it in a kernel before, and
    // adds in another
    for (forces, integrator, kernels, list, rebuild) in [
        (lj, "VelocityVerlet()", 2, "Plain", REBUILD),
        (lj, "NoseHoover(kT: 1.0, tau: 0.5)", 4, "Plain", REBUILD),
        (dpd, "GrootWarren()", 2, "Plain", REBUILD),
        (lj, "NoseHoover(kT: 1.0, tau: 0.5)", 4, "Staged", STAGED_REBUILD),
        (dpd, "GrootWarren()", 2, "Staged", STAGED_REBUILD),
    ] {
        let text = format!(
            "(neighbors: (list: {list}), initial: [Lattice(lattice: Sc, cells: [9, 9, 9], density: 0.8), Velocities(kT: 1.0)], forces: [{forces}], \
             integrators: [{integrator}], stages: [(steps: 1, dt: 0.005)])"
        );
        let plan = plan(&text, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        let counts = Arc::new(Counts::default());
        let device = Counted { inner: EmulatedDevice::new().expect("g++"), counts: counts.clone() };
        let mut system = GpuSystem::new(&plan, Arc::new(device)).expect("a system");
        let stop = AtomicBool::new(false);
        system.begin_stage(&plan.stages[0], false).expect("begun");
        system.advance(16, Wanted::FORCE, &stop).expect("steps");
        let builds_before = system.list_report().expect("a list").builds;
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let before = [&counts.allocations, &counts.launches, &counts.copies].map(read);
        system.advance(STEPS, Wanted::FORCE, &stop).expect("steps");
        let after = [&counts.allocations, &counts.launches, &counts.copies].map(read);
        let [allocations, launches, copies] = std::array::from_fn(|k| after[k] - before[k]);
        let builds = system.list_report().expect("a list").builds - builds_before;
        println!("{integrator}: {launches} launches, {builds} builds, {allocations} allocations, {copies} copies");
        // the buffer and the density are such that every second rebuild of a staged list sorts
        let sort_every = if list == "Staged" { 2 } else { 1 };
        let sorts = (builds_before..builds_before + builds).filter(|k| k % sort_every == 0).count() as u64;
        // the first and the last phase are apart
        assert_eq!(launches, kernels * STEPS + 1 + rebuild * builds + SORT * sorts, "{integrator}: launches");
        assert_eq!(allocations, 0, "{integrator}: allocations");
        // the globals, once for all steps
        assert_eq!(copies, 1, "{integrator}: the host waited");
    }
}

fn reacting(cells: [u32; 3], p: f64) -> String {
    format!(
        "(seed: 4, initial: [Lattice(lattice: Sc, cells: {cells:?}, density: 0.8), Velocities(kT: 1.0), LinkTypes(bonds: [\"A-A\"])], \
         forces: [Wca(pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }}), \
         HarmonicBond(bonds: {{ \"A-A\": (k: 30.0, r0: 1.0) }})], integrators: [VelocityVerlet()], \
         updaters: [Reactions(every: 1, r_cut: 1.2, limits: {{ \"A\": 4 }}, \
         reactions: [(kind: Join, of: (\"A\", \"A\"), p: {p:?})])], stages: [(steps: 1, dt: 0.001)])"
    )
}

/// Each of three ranks builds the rows of its own particles, and searches these for reactions. A search copies no arrays of all
/// particles from one rank to another.
#[test]
#[ignore = "10 seconds"]
fn ranks_share_the_search_for_reactions() {
    if !has_compiler() {
        return;
    }
    // six blocks of 256 particles
    let (n, ranks, calls) = (1536, 3, 5);
    for p in [0.0, 0.01] {
        let plan = plan(&reacting([8, 12, 16], p), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        let counts: Vec<Arc<Counts>> = (0..ranks).map(|_| Arc::default()).collect();
        let device = |counts: &Arc<Counts>| -> Arc<dyn Device> {
            Arc::new(Counted { inner: EmulatedDevice::new().expect("g++"), counts: counts.clone() })
        };
        let mut system = RankedSystem::new(&plan, counts.iter().map(device).collect()).expect("a system");
        plan.components.iter().try_for_each(|c| system.start(c)).expect("started");
        system.begin_stage(&plan.stages[0], false).expect("begun");
        counts.iter().for_each(|c| c.kernels.lock().expect("kernels").clear());
        let built = system.list_report().expect("a list").builds;
        for _ in 0..calls {
            system.advance(40, Wanted::FORCE, &AtomicBool::new(false)).expect("steps");
            system.update(&plan.stages[0].updaters[0], Wanted::FORCE).expect("an update");
        }
        let built = system.list_report().expect("a list").builds - built;
        println!("p = {p}: {built} list builds, {} bonds", system.topology().bonds.len());
        assert!(built > 0 && (p > 0.0) == (system.topology().bonds.len() > 20));
        for counts in &counts {
            let kernels = counts.kernels.lock().expect("kernels");
            let of = |name: &str| kernels.get(name).copied().unwrap_or_default();
            // a warp builds four rows
            assert_eq!(of("build_list"), [built, built * n / ranks * 8], "p = {p}: rows");
            // four threads share the neighbors of a particle
            assert_eq!(of("react_find"), [calls, calls * n / ranks * 4], "p = {p}: the search");
            assert_eq!((of("pull_parts"), of("pull_words")), ([0; 2], [0; 2]), "p = {p}: copies");
        }
    }
}

/// The host waits once for the steps before a call of `Reactions` and its search; then a call without reactions costs nothing, and
/// one with reactions launches kernels without waiting. A call whose search is not queued behind the steps waits for it.
#[test]
fn a_call_of_reactions_costs_few_launches_and_no_wait() {
    if !has_compiler() {
        return;
    }
    for (p, expected) in [(0.0, true), (0.01, true), (0.0, false), (0.01, false)] {
        let plan = plan(&reacting([9, 9, 9], p), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        let counts = Arc::new(Counts::default());
        let device = Counted { inner: EmulatedDevice::new().expect("g++"), counts: counts.clone() };
        let mut system = GpuSystem::new(&plan, Arc::new(device)).expect("a system");
        plan.components.iter().try_for_each(|c| c.start(system.host())).expect("started");
        system.begin_stage(&plan.stages[0], false).expect("begun");
        let updater = &plan.stages[0].updaters[0];
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let all = || [&counts.copies, &counts.queued, &counts.allocations, &counts.launches].map(read);
        let (mut fewest, mut fewest_before) = ([u64::MAX; 4], u64::MAX);
        for _ in 0..8 {
            system.expect_update(expected.then_some(updater));
            let before = read(&counts.copies);
            system.advance(1, Wanted::FORCE, &AtomicBool::new(false)).expect("a step");
            fewest_before = fewest_before.min(read(&counts.copies) - before);
            let (bonds, before) = (system.topology().bonds.len(), all());
            system.update(updater, Wanted::FORCE).expect("an update");
            assert_eq!(system.topology().bonds.len() > bonds, p > 0.0, "reactions with p = {p}");
            let after = all();
            fewest = std::array::from_fn(|k| fewest[k].min(after[k] - before[k]));
        }
        // the rows of bonds are changed by one copy and one kernel, particles by another; pairs and bonds
        let [queued, launches] = if p > 0.0 { [1, 4] } else { [0, 0] };
        let search = u64::from(!expected);
        // tables that grow are copied as a whole in some calls
        assert_eq!(fewest, [search, queued, 0, launches + search], "p = {p}, expected: {expected}");
        // the globals
        assert_eq!(fewest_before, 1, "p = {p}: waits of a step");
    }
}

/// Candidates that their energies or angles refuse do not leave the device: thousands of them would not fit, and the search would be repeated.
#[test]
fn the_device_refuses_candidates_by_energies() {
    if !has_compiler() {
        return;
    }
    let refusals = [
        "energy: Harmonic(k: 500.0, r0: 5.0), kT: 1.0",
        "energy: Fene(k: 500.0, R0: 1.25, bound: 0.0), kT: 1.0",
        "pair_energy: Wca(epsilon: 1.0, sigma: 1.0), activation_energy: 1000.0, kT: 1.0",
    ];
    let search = |more: &str| {
        let text = reacting([9, 9, 9], 1.0).replace("p: 1.0", &format!("p: 1.0, {more}"));
        let plan = plan(&text, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        let counts = Arc::new(Counts::default());
        let device = Counted { inner: EmulatedDevice::new().expect("g++"), counts: counts.clone() };
        let mut system = GpuSystem::new(&plan, Arc::new(device)).expect("a system");
        plan.components.iter().try_for_each(|c| c.start(system.host())).expect("started");
        system.begin_stage(&plan.stages[0], false).expect("begun");
        system.update(&plan.stages[0].updaters[0], Wanted::FORCE).expect("an update");
        let searches = counts.kernels.lock().expect("kernels")["react_find"][0];
        (system.topology().bonds.len(), searches)
    };
    let (bonds, searches) = search("factor: 1.0");
    assert!(bonds > 300 && searches > 1, "{bonds} bonds, {searches} searches");
    for more in refusals {
        assert_eq!(search(more), (0, 1), "{more}");
    }
}

/// The steps of several replicas take as many launches as those of one, and one more for the condition of a rebuild.
#[test]
#[ignore = "10 seconds"]
fn replicas_share_their_launches() {
    if !has_compiler() {
        return;
    }
    const REPLICAS: u64 = 3;
    let text = "(initial: [Lattice(lattice: Sc, cells: [7, 7, 7], density: 0.8), Velocities(kT: 1.0)], \
         forces: [LennardJones(r_cut: 2.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })], \
         integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.005)])";
    let plan = plan(text, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    let counts = Arc::new(Counts::default());
    let device = Counted { inner: EmulatedDevice::new().expect("g++"), counts: counts.clone() };
    let devices = open_replicas(Arc::new(device), REPLICAS as usize).expect("devices");
    let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
    let [before, after] = [(); 2].map(|()| Barrier::new(REPLICAS as usize + 1));
    let builds = std::thread::scope(|scope| {
        let replica = |device: ReplicaDevice| {
            let (plan, before, after) = (&plan, &before, &after);
            scope.spawn(move || {
                let mut system = GpuSystem::new(plan, Arc::new(device)).expect("a system");
                let stop = AtomicBool::new(false);
                system.begin_stage(&plan.stages[0], false).expect("begun");
                assert_eq!(system.advance(16, Wanted::FORCE, &stop).expect("steps"), 16);
                let builds = system.list_report().expect("a list").builds;
                before.wait();
                before.wait();
                system.advance(STEPS, Wanted::FORCE, &stop).expect("steps");
                after.wait();
                after.wait();
                system.list_report().expect("a list").builds - builds
            })
        };
        let threads: Vec<_> = devices.into_iter().map(replica).collect();
        before.wait();
        let [launches, allocations] = [&counts.launches, &counts.allocations].map(read);
        before.wait();
        after.wait();
        let (launches, allocations) = (read(&counts.launches) - launches, read(&counts.allocations) - allocations);
        after.wait();
        let builds: Vec<u64> = threads.into_iter().map(|t| t.join().expect("a replica")).collect();
        // the replicas are equal; a rebuild clears memory with a kernel
        assert!(builds[0] > 0 && builds.iter().all(|b| *b == builds[0]), "{builds:?}");
        // pairs, the condition, and the phases between two steps; a graph of 16 steps begins with one phase and ends with another
        assert_eq!(launches, 3 * STEPS + STEPS / 16 + (REBUILD + 1) * builds[0], "launches");
        assert_eq!(allocations, 0, "allocations");
        builds
    });
    println!("{builds:?} rebuilds");
}
