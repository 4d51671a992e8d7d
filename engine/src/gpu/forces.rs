//! Forces of a stage on the device.

mod bonded;

use super::arrays::{Buffer, launch};
use super::pair_loop::{
    BarostatVirial, BlockSums, Computed, OverlapKernels, PAIR_BLOCK, PairLayout, PairLoop, QUEUE_BYTES,
};
use super::ranks::{Addresses, Rank, SplitBlocks};
use super::rebuild::Lists;
use crate::device::args::{
    BondArgs, Excluded, MAX_PAIR_TERMS, PairArgs, PairTerm, RankBarrierArgs, SpecialArgs, StagedPairArgs, VirialArgs,
};
use crate::device::{Device, Kernel};
use crate::pipeline::Special;
use crate::plugins::{Component, ForceHandle};
use bonded::Bonded;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::force::{ForceCall, Moment, SpecialPairs};
use galamost_plugin_api::pair::inputs;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::LinkList;
use galamost_plugin_api::views::{LinkView, ListView, StateView, Sums, Wanted};
use std::sync::Arc;

/// Size of the result of `motion_sums` in bytes: ten numbers.
const MOTION_BYTES: usize = 80;

/// Sums over the system that the device reports.
pub struct ReportedSums {
    /// Σ m v v, Σ m v and the rotational kinetic energy; see `motion_sums`.
    pub motion: [f64; 10],
    /// Sums of each component, in pipeline order.
    pub components: Vec<Sums>,
    /// Additional quantities of the components, in pipeline order.
    pub quantities: Vec<f64>,
}

/// Blocks of particles whose pair forces are computed.
#[derive(Clone, Copy, Debug)]
pub enum PairBlocks {
    /// All.
    All,
    /// All, with the barrier after the move inside the loop.
    Gated(RankBarrierArgs),
    /// Those without ghosts in their halo.
    Interior(SplitBlocks),
    /// The others.
    Boundary(SplitBlocks),
}

/// Forces of a stage.
pub struct Forces {
    device: Arc<dyn Device>,
    n: usize,
    pair: Option<PairLoop>,
    bonded: Vec<Bonded>,
    /// The kernel of all bonded potentials, if it is used.
    joint_bonds: Option<Kernel>,
    others: Vec<(Arc<Component>, usize)>,
    special: Special,
    n_quantities: usize,
    /// For each component in pipeline order: the index of its sums, and of those of its long-range part.
    slots: Vec<(usize, Option<usize>)>,
    /// Number of sums.
    n_sums: usize,
    clear_forces: Kernel,
    virial: BarostatVirial,
    /// All reported numbers in one array, so that one copy transfers them: the motion sums ([`MOTION_BYTES`] bytes),
    /// the sums of each component, and the additional quantities of the components.
    report: Buffer,
    counter: Buffer,
    rank: Option<Arc<Rank>>,
    /// The report in each rank.
    reports: Addresses,
}

impl Forces {
    /// Compiles the components of a stage. `energy` is m (r_cut/dt)² for the mean mass m.
    pub fn new(
        device: &Arc<dyn Device>,
        system: u64,
        components: &[Arc<Component>],
        precision: Precision,
        n: usize,
        n_types: u32,
        layout: PairLayout,
        special: Special,
        seed: u64,
        energy: f64,
        rank: Option<Arc<Rank>>,
    ) -> Result<Self> {
        // pair components come first, so that their sums are contiguous for the fused loop
        let of = |kind: Kind| components.iter().filter(move |c| c.kind == kind);
        let order: Vec<&Arc<Component>> = of(Kind::Pair).chain(of(Kind::Bonded)).chain(of(Kind::Force)).collect();
        let slot_of = |c: &Arc<Component>| order.iter().position(|o| o.id == c.id).unwrap_or(0);
        let pairs: Vec<&Arc<Component>> = of(Kind::Pair).collect();
        if pairs.len() > MAX_PAIR_TERMS {
            return Err(Error::input(format!(
                "{} pair components; at most {MAX_PAIR_TERMS} are supported",
                pairs.len()
            )));
        }
        let shared = rank.as_deref();
        let pair = if pairs.is_empty() {
            None
        } else {
            Some(PairLoop::new(device, &pairs, precision, n, n_types, layout, special, seed, shared)?)
        };
        let mut bonded = vec![];
        for c in of(Kind::Bonded) {
            bonded.push(Bonded::new(device, c, precision, n, slot_of(c), shared)?);
        }
        // the remainders of pair potentials of long range have their own sums, which follow all others
        let remainders: Vec<u32> = pairs.iter().filter(|c| c.force().is_some()).map(|c| c.id).collect();
        let remainder_of = |c: &Arc<Component>| Some(order.len() + remainders.iter().position(|id| *id == c.id)?);
        let mut others: Vec<(Arc<Component>, usize)> = components
            .iter()
            .filter(|c| c.force().is_some())
            .map(|c| (c.clone(), remainder_of(c).unwrap_or_else(|| slot_of(c))))
            .collect();
        others.sort_by_key(|(c, _)| c.needs.rank());
        let n_sums = order.len() + remainders.len();
        let n_quantities: usize = others.iter().map(|(c, _)| c.needs.quantities.len()).sum();
        let report = Buffer::new(device, MOTION_BYTES + size_of::<Sums>() * n_sums + 8 * n_quantities)?;
        Ok(Self {
            n_quantities,
            reports: shared.map_or(Ok(Addresses::default()), |r| r.share(report.address()))?,
            device: device.clone(),
            n: shared.map_or(n, |r| r.own().len()),
            pair,
            bonded,
            joint_bonds: None,
            others,
            special,
            slots: components.iter().map(|c| (slot_of(c), remainder_of(c))).collect(),
            n_sums,
            clear_forces: device.kernel(system, "clear_forces")?,
            virial: BarostatVirial::new(device, system, energy, shared)?,
            report,
            counter: Buffer::new(device, 4)?,
            rank,
        })
    }

    /// Returns the components that cannot be captured in a graph.
    pub fn not_capturable(&self) -> Vec<&str> {
        self.others.iter().filter(|(c, _)| !c.needs.capturable).map(|(c, _)| c.name.as_str()).collect()
    }

    /// Returns the component with this id, if it can raise faults.
    pub fn component(&self, id: u32) -> Option<&Component> {
        self.bonded.iter().map(|b| &*b.component).chain(self.others.iter().map(|(c, _)| &**c)).find(|c| c.id == id)
    }

    /// Resets the counters after a halt.
    pub fn reset(&self) -> Result<()> {
        self.counter.clear()?;
        self.virial.reset()
    }

    /// Returns whether the pair loop can overlap with communication: it computes forces alone, before other components.
    pub fn may_overlap(&self, wanted: Wanted, barostat: bool) -> bool {
        let overlaps = self.pair.as_ref().is_some_and(|p| !matches!(p.overlap, OverlapKernels::None));
        overlaps && Computed::new(wanted, barostat) == Computed::Forces
    }

    /// Launches the pair loop over these blocks, for forces alone.
    pub fn run_pairs_alone(&self, state: &StateView, lists: &Lists, blocks: PairBlocks) -> Result<()> {
        let Some(p) = &self.pair else { return Ok(()) };
        self.device.profile().set_part(&p.names);
        let args = self.pair_args(p, state, &lists.plain, self.virial.args(self.rank.as_deref(), false));
        let kernel = match (blocks, p.overlap) {
            (PairBlocks::Gated(_), OverlapKernels::Gated(kernel)) => kernel,
            (PairBlocks::Interior(_), OverlapKernels::Split { interior, .. }) => interior,
            (PairBlocks::Boundary(_), OverlapKernels::Split { boundary, .. }) => boundary,
            (PairBlocks::All, _) => p.force,
            _ => return Err(Error::Run(format!("no pair loop for {blocks:?}"))),
        };
        self.run_pairs(p, lists, kernel, args, blocks)
    }

    /// Launches a force evaluation, without the pair loop if it `has_pairs` already. With a `barostat`, also computes the virial of the globals.
    pub fn run(
        &self,
        state: &StateView,
        lists: &Lists,
        links: [LinkView; 4],
        excluded: Excluded,
        special: LinkView,
        wanted: Wanted,
        barostat: bool,
        has_pairs: bool,
    ) -> Result<()> {
        let d = &*self.device;
        let computed = Computed::new(wanted, barostat);
        let virial = self.virial.args(self.rank.as_deref(), barostat);
        // a second pass adds to complete sums
        let one_pass = self.pair.as_ref().is_none_or(|p| p.special.is_none());
        let diagonal = computed == Computed::Diagonal && one_pass;
        let full = computed != Computed::Forces;
        // pairs and bonded potentials write their sums, others may add to them
        if full && self.n_sums > 0 && !(diagonal && self.others.is_empty()) {
            d.clear(self.sum_address(0), size_of::<Sums>() * self.n_sums)?;
        }
        match &self.pair {
            Some(p) => {
                d.profile().set_part(&p.names);
                let kernel = if diagonal {
                    p.diagonal
                } else if full {
                    p.full
                } else {
                    p.force
                };
                let args = self.pair_args(p, state, &lists.plain, virial);
                if !has_pairs {
                    self.run_pairs(p, lists, kernel, args, PairBlocks::All)?;
                }
                if full && !diagonal {
                    self.add_blocks(&p.sums, state, p.layout.block(), &args)?;
                }
                if let Some(scaled) = &p.special {
                    d.profile().set_part("special pairs");
                    let args = SpecialArgs { pair: args, links: special, weights: scaled.weights };
                    launch(d, if full { scaled.full } else { scaled.force }, self.n, PAIR_BLOCK, &args)?;
                }
            }
            None => {
                d.profile().set_part("clear forces");
                launch(d, self.clear_forces, self.n, 256, state)?;
            }
        }
        self.run_bonds(state, links, virial, computed)?;
        let wanted = if full { Wanted::ALL } else { Wanted::FORCE };
        self.run_others(state, lists, links, excluded, special, wanted)?;
        if !full {
            return Ok(());
        }
        // pairs and bonded potentials have added to the virial of a barostat
        let first = if barostat { self.pair.as_ref().map_or(0, |p| p.terms.len()) + self.bonded.len() } else { 0 };
        let others = (self.sum_address(first), self.n_sums - first);
        self.virial.total(d, state, self.rank.as_deref(), barostat, others)
    }

    /// With several ranks: adds the sums of the blocks of all of them, in a block of as many threads as the loop's.
    fn add_blocks<A>(&self, sums: &BlockSums, state: &StateView, threads: u32, args: &A) -> Result<()> {
        let (Some(rank), Some((addresses, end))) = (&self.rank, sums.shared) else { return Ok(()) };
        rank.push(state, addresses, 2 * sums.numbers, sums.particles)?;
        launch(&*self.device, end, threads as usize, threads, args)
    }

    /// Computes the forces of components with kernels of their own. With several ranks that do not share this work, the first one does
    /// it for all particles, and the others read the result.
    fn run_others(
        &self,
        state: &StateView,
        lists: &Lists,
        links: [LinkView; 4],
        excluded: Excluded,
        special: LinkView,
        wanted: Wanted,
    ) -> Result<()> {
        let Some(rank) = self.rank.as_deref().filter(|r| !self.others.is_empty() && !r.shares_forces) else {
            return self.launch_others(state, lists, links, excluded, special, wanted);
        };
        rank.barrier(state)?;
        rank.complete_first()?;
        if rank.number() == 0 {
            let all = StateView { own_begin: 0, own_end: state.n_local, ..*state };
            self.launch_others(&all, lists, links, excluded, special, wanted)?;
        }
        rank.barrier(state)?;
        rank.pull_forces()?;
        if wanted.more_than_force() {
            rank.pull_words(self.reports, self.report.bytes() / 4, 0)?;
        }
        Ok(())
    }

    /// Launches the components with kernels of their own.
    fn launch_others(
        &self,
        state: &StateView,
        lists: &Lists,
        links: [LinkView; 4],
        excluded: Excluded,
        special: LinkView,
        wanted: Wanted,
    ) -> Result<()> {
        let d = &*self.device;
        let mut quantity = self.sum_address(self.n_sums);
        let weights = self.special.weights();
        let scaled = SpecialPairs {
            size: size_of::<SpecialPairs>() as u32,
            reserved0: 0,
            pairs: special,
            pair: weights.map(|w| w.pair),
            coulomb: weights.map(|w| w.coulomb),
            reserved: [0; 4],
        };
        let scaled = Some(&scaled).filter(|_| self.special.scales());
        for (c, slot) in &self.others {
            let part = self.object(c)?;
            if let Some(rank) = self.rank.as_ref().filter(|r| r.shares_forces && c.needs.places) {
                rank.exchange_for_placing(state, true)?;
            }
            let call = ForceCall {
                wanted,
                list: lists.plain,
                bonds: links[0],
                device_sums: DevicePtr::new(self.sum_address(*slot)),
                quantities: DevicePtr::new(if c.needs.quantities.is_empty() { 0 } else { quantity }),
                excluded_count: DevicePtr::new(excluded.excluded_count),
                excluded: DevicePtr::new(excluded.excluded),
                excluded_capacity: u64::from(excluded.excluded_capacity),
                special: DevicePtr::new(scaled.map_or(0, |s| std::ptr::from_ref(s) as u64)),
                ..force_call(c, state)
            };
            quantity += 8 * c.needs.quantities.len() as u64;
            d.profile().set_part(&c.name);
            // SAFETY: the views describe arrays of this device
            unsafe { part.compute(&call, &mut Sums::default())? };
        }
        Ok(())
    }

    /// Returns whether the pair loop reads velocities.
    pub fn reads_velocities(&self) -> bool {
        self.pair.as_ref().is_some_and(|p| p.reads(inputs::VELOCITY))
    }

    /// Returns whether forces read orientations of other particles.
    pub fn reads_orientations(&self) -> bool {
        let needs_them = |c: &Arc<Component>| c.needs.arrays.iter().any(|a| a.name == "quaternion");
        self.pair.as_ref().is_some_and(|p| p.reads(inputs::ORIENTATION))
            || self.others.iter().any(|(c, _)| needs_them(c))
    }

    /// Returns whether a component places particles without mass.
    pub fn places(&self) -> bool {
        self.placing().next().is_some()
    }

    /// Returns the components that constrain distances, then those that place particles without mass.
    pub fn placing(&self) -> impl Iterator<Item = &Arc<Component>> {
        self.others.iter().rev().map(|(c, _)| c).filter(|c| c.needs.places)
    }

    /// Lets a component place particles.
    pub fn place(&self, c: &Arc<Component>, state: &StateView, moment: Moment) -> Result<()> {
        self.device.profile().set_part(&format!("{}, placing", c.name));
        // SAFETY: the view describes arrays of this device
        unsafe { self.object(c)?.place(&ForceCall { moment: moment as u32, ..force_call(c, state) }) }
    }

    /// Returns the object of a component for this rank.
    fn object<'a>(&self, c: &'a Component) -> Result<ForceHandle<'a>> {
        let rank = self.rank.as_ref().filter(|r| !r.sends_messages());
        let object = rank.map_or(Ok(c), |r| c.on_rank(r.number()))?;
        object.force().ok_or_else(|| Error::Run(format!("{} is not a force", c.name)))
    }

    /// Launches the pair loop over these blocks.
    fn run_pairs(&self, p: &PairLoop, lists: &Lists, kernel: Kernel, pair: PairArgs, blocks: PairBlocks) -> Result<()> {
        match (p.layout, lists.staged) {
            (PairLayout::Staged { cutoff2, .. }, Some(list)) => {
                let (mut n_blocks, mut gate, [mut boundary, mut requests]) =
                    (list.n_blocks, RankBarrierArgs::default(), [0; 2]);
                match blocks {
                    PairBlocks::All => {}
                    PairBlocks::Gated(args) => gate = args,
                    PairBlocks::Interior(split) => (gate, requests) = (split.barrier, split.requests),
                    PairBlocks::Boundary(split) => (n_blocks, boundary) = (split.count, split.boundary),
                }
                if n_blocks == 0 {
                    return Ok(());
                }
                let args = StagedPairArgs { list, cutoff2, reserved: 0, gate, boundary, requests, pair };
                let types = if p.n_types > 1 { list.slots } else { 0 };
                let threads = p.layout.block();
                let shared = 16 * list.slots + types + if p.queued { QUEUE_BYTES * threads } else { 0 };
                let pointer = [std::ptr::from_ref(&args).cast_mut().cast::<Opaque>()];
                let (grid, block) = (Extent::from(n_blocks), Extent::from(threads));
                // SAFETY: staged pair kernels take one `StagedPairArgs`, whose views describe arrays of this device
                unsafe { self.device.launch(kernel, grid, block, shared, &pointer) }
            }
            (PairLayout::Plain { team }, _) => launch(&*self.device, kernel, self.n * team as usize, PAIR_BLOCK, &pair),
            _ => Err(Error::Run("the pair loop needs a staged list".into())),
        }
    }

    fn pair_args(&self, p: &PairLoop, state: &StateView, list: &ListView, virial: VirialArgs) -> PairArgs {
        let empty = PairTerm { rows: 0, cutoff_rows: 0, key: RandomKey { key: [0; 2] }, first_varying: 0, reserved: 0 };
        let mut terms = [empty; MAX_PAIR_TERMS];
        terms[..p.terms.len()].copy_from_slice(&p.terms);
        PairArgs {
            state: *state,
            list: *list,
            partial: p.sums.partial.address(),
            counter: self.counter.address(),
            sums: self.sum_address(0),
            virial,
            terms,
        }
    }

    /// Returns the device code of the pair components, and that of the bonded ones with the lists of their
    /// links, for the persistent kernel. Returns `None` without pair components (nothing would initialize the forces),
    /// with components of kind Force or with scaled special pairs.
    pub fn texts(&self) -> Option<(&[String], Vec<(&str, LinkList)>)> {
        let pair = self.pair.as_ref().filter(|p| self.others.is_empty() && p.special.is_none())?;
        Some((&pair.texts, self.bonded.iter().map(|b| (b.text.as_str(), b.component.link_list())).collect()))
    }

    /// Returns the size of [`Self::arguments`] in bytes.
    pub fn arguments_size(&self) -> usize {
        size_of::<PairArgs>() + self.bonded.len() * size_of::<BondArgs>()
    }

    /// Returns the kernel arguments of the components in [`Self::texts`].
    pub fn arguments(
        &self,
        state: &StateView,
        list: &ListView,
        links: [LinkView; 4],
    ) -> Option<(PairArgs, Vec<BondArgs>)> {
        let virial = self.virial.args(None, true);
        let pair = self.pair_args(self.pair.as_ref()?, state, list, virial);
        Some((pair, self.bonded.iter().map(|b| self.bond_args(b, state, links, virial)).collect()))
    }

    fn sum_address(&self, slot: usize) -> u64 {
        self.report.address() + (MOTION_BYTES + slot * size_of::<Sums>()) as u64
    }

    /// Returns the address of the motion sums.
    pub fn motion_address(&self) -> u64 {
        self.report.address()
    }

    /// Downloads all sums; waits for the device once.
    pub fn reported(&self) -> Result<ReportedSums> {
        let bytes = self.report.download()?;
        let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
        let (motion, rest) = numbers.split_at(MOTION_BYTES / 8);
        let (sums, quantities) = rest.split_at(7 * self.n_sums);
        let one = |slot: usize| {
            let v = &sums[slot * 7..slot * 7 + 7];
            Sums { energy: v[0], virial: std::array::from_fn(|k| v[k + 1]) }
        };
        let of_component = |(slot, remainder): &(usize, Option<usize>)| {
            let mut sum = one(*slot);
            remainder.iter().for_each(|r| sum.add(&one(*r)));
            sum
        };
        Ok(ReportedSums {
            motion: std::array::from_fn(|k| motion[k]),
            components: self.slots.iter().map(of_component).collect(),
            quantities: quantities[..self.n_quantities].to_vec(),
        })
    }
}

/// Returns the arguments of a component that launches its own kernels, without lists.
fn force_call(c: &Component, state: &StateView) -> ForceCall {
    ForceCall {
        size: size_of::<ForceCall>() as u32,
        component: c.id,
        first_varying: c.first_varying,
        group: c.group,
        wanted: Wanted::FORCE,
        state: *state,
        list: ListView::empty(),
        bonds: LinkView::empty(2),
        device_sums: DevicePtr::default(),
        quantities: DevicePtr::default(),
        excluded_count: DevicePtr::default(),
        excluded: DevicePtr::default(),
        excluded_capacity: 0,
        special: DevicePtr::default(),
        moment: Moment::Start as u32,
        reserved0: 0,
        reserved: [0; 2],
    }
}
