//! The CPU loops, most on two threads at once. Under Miri, these tests find accesses out of bounds, and data races between the
//! ranges of the threads or on the globals.

use crate::abi::calls::{BondedCall, CutoffRow, PairCall, ParticleCall};
use crate::abi::views::{FaultKind, Globals, LinkView, ListView, StateView, Sums, Wanted};
use crate::device::philox::{RandomKey, uniform_unit_variance};
use crate::device::precision::{Fixed, Float64, PosTypeF64, PosTypeFixed, Precision, to_fixed64};
use crate::device::real::Real;
use crate::device::{DeviceFn, DevicePtr, DeviceText};
use crate::error::Result;
use crate::kinds::bonded::potential::each_link;
use crate::kinds::component::{Needs, SystemInfo};
use crate::kinds::integrator::{
    GroupInfo, Integrator, MAX_SUMS, NoArrays, NoState, Particle, ParticleFn, Program, particles,
};
use crate::kinds::pair::cpu::{Rows, run};
use crate::kinds::pair::{PairEval, PairInput, SpecializationIsPure, inputs};
use crate::kinds::storage::PositionStorage;
use crate::philox::Random;
use crate::views::Step;

/// Number of particles, and of entries in a row of the list. Miri, which is slow, needs no more than one entry beyond the 16
/// that are evaluated at a time.
const N: usize = if cfg!(miri) { 18 } else { 21 };
const CAPACITY: usize = 32;

/// A storage scheme whose positions a test can create.
trait Stored: PositionStorage {
    const PRECISION: Precision;
    fn stored(x: [f64; 3], kind: u32) -> Self::PosType;
}
impl Stored for Fixed {
    const PRECISION: Precision = Precision::Mixed;
    fn stored(x: [f64; 3], kind: u32) -> PosTypeFixed {
        PosTypeFixed { position: x.map(|x| (to_fixed64(x, 10.0).0 >> 32) as i32), kind }
    }
}
impl Stored for Float64 {
    const PRECISION: Precision = Precision::Double;
    fn stored(position: [f64; 3], kind: u32) -> PosTypeF64 {
        PosTypeF64 { position, kind, reserved: 0 }
    }
}

/// The arrays that views refer to, each exactly as long as the loops require.
struct System<S: Stored> {
    pos: Vec<S::PosType>,
    built: Vec<S::PosType>,
    low: Vec<u32>,
    velocity: Vec<[S::Real; 4]>,
    force: Vec<[S::Real; 4]>,
    image: Vec<i32>,
    tag: Vec<u32>,
    index: Vec<u32>,
    count: Vec<u32>,
    words: Vec<u32>,
    links: Vec<u32>,
    globals: Box<Globals>,
}

fn address<T, U>(values: &mut [T]) -> DevicePtr<U> {
    DevicePtr::new(values.as_mut_ptr() as u64)
}

impl<S: Stored> System<S> {
    fn new() -> Self {
        let x = |i: usize| [i as f64 * 0.4 - 4.0, (i % 3) as f64, (i % 5) as f64 - 2.0];
        let pos: Vec<_> = (0..N).map(|i| S::stored(x(i), i as u32 % 2)).collect();
        let number = |x: f64| S::Real::lit(x);
        let velocity = (0..N).map(|i| [0.1 * i as f64, -0.2, 0.3, 1.0].map(number)).collect();
        let mut index = vec![];
        for i in 0..N {
            let others = (0..N).filter(|j| *j != i);
            // padded with the particle itself
            index.extend(others.chain(std::iter::repeat(i)).take(CAPACITY).map(|j| j as u32));
        }
        // a chain: word 0 is the other particle, word 1 the type and the position among the members
        let mut words = vec![0; 2 * 2 * N];
        let mut links = vec![0; N];
        for i in 0..N - 1 {
            for (a, b, place) in [(i, i + 1, 0), (i + 1, i, 1)] {
                let e = links[a] as usize;
                (words[2 * e * N + a], words[(2 * e + 1) * N + a]) = (b as u32, place);
                links[a] += 1;
            }
        }
        let mut globals = Box::new(Globals::new());
        (globals.dt, globals.box_length, globals.step) = (0.01, [10.0; 3], 7);
        globals.built_length = globals.box_length;
        Self {
            built: pos.clone(),
            pos,
            low: vec![0; 3 * N],
            velocity,
            force: vec![[S::Real::ZERO; 4]; N],
            image: vec![0; 3 * N],
            tag: (0..N as u32).collect(),
            index,
            count: vec![N as u32 - 1; N],
            words,
            links,
            globals,
        }
    }

    fn state(&mut self) -> StateView {
        let mixed = S::PRECISION == Precision::Mixed;
        StateView {
            precision: S::PRECISION as u32,
            n_local: N as u32,
            n_types: 2,
            pos_type: address(&mut self.pos),
            pos_low: if mixed { address(&mut self.low) } else { DevicePtr::null() },
            velocity_mass: address(&mut self.velocity),
            force: address(&mut self.force),
            image: address(&mut self.image),
            tag: address(&mut self.tag),
            pos_at_build: address(&mut self.built),
            globals: DevicePtr::new(std::ptr::from_mut(&mut *self.globals) as u64),
            ..StateView::empty()
        }
    }
}

/// Calls `f` for both halves of the particles, on two threads.
fn halves<T: Send>(f: impl Fn(u32, u32) -> T + Sync) -> [T; 2] {
    let f = &f;
    std::thread::scope(|s| {
        let tasks = [(0, N as u32 / 2), (N as u32 / 2, N as u32)].map(|(begin, end)| s.spawn(move || f(begin, end)));
        tasks.map(|t| t.join().expect("no panic"))
    })
}

/// U = a/r² + ζ, with all inputs that the loop gathers.
struct Repulsion;

impl PairEval for Repulsion {
    type Row<R: Real> = [R; 1];
    const INPUTS: u32 = inputs::VELOCITY | inputs::RANDOM;
    // only one of the rows is special, so this loop must not run
    // SAFETY: `specialized` is pure
    const SPECIALIZATION: Option<SpecializationIsPure> = Some(unsafe { SpecializationIsPure::promise() });
    fn specialized<R: Real>(row: &[R; 1]) -> bool {
        row[0] == R::lit(1.0)
    }
    fn eval<R: Real>(input: &PairInput<R>, row: &[R; 1]) -> (R, R) {
        let u = row[0] / input.r2;
        (u / input.r2 + input.zeta * R::lit(0.1) - input.rv * R::lit(0.01), u)
    }
}

fn rows<R: Real>() -> Rows<[R; 1], R> {
    let cutoff = CutoffRow::<f64> { cutoff2: 9.0, cutoff: 3.0, ..CutoffRow::default() };
    let rows = [1.0, 2.0, 2.0, 4.0].map(|a| [R::lit(a)]).to_vec();
    Rows { n_types: 2, rows, cutoff_rows: vec![cutoff.cast(); 4], mode: 0 }
}

fn pair_forces<S: Stored>() {
    let evaluate = |threads: bool| {
        let mut system = System::<S>::new();
        let list = ListView {
            capacity: CAPACITY as u32,
            index: address(&mut system.index),
            count: address(&mut system.count),
            ..ListView::empty()
        };
        let state = system.state();
        let part = |begin: u32, end: u32| {
            let call = PairCall {
                size: size_of::<PairCall>() as u32,
                begin,
                end,
                first_varying: 0,
                isa: 0,
                wanted: Wanted::ALL,
                key: RandomKey::new(1, 2),
                state: &state,
                list: &list,
                reserved: [0; 4],
            };
            let mut sums = Sums::default();
            // SAFETY: the views describe the arrays of `system`, and the ranges of the threads are disjoint
            unsafe { run::<Repulsion>(&call, &rows(), &rows(), &mut sums) };
            sums
        };
        let sums = if threads {
            let [mut a, b] = halves(part);
            a.add(&b);
            a.energy
        } else {
            part(0, N as u32).energy
        };
        (system.force.iter().map(|f| f.map(Real::f64)).collect::<Vec<_>>(), sums)
    };
    let both = evaluate(true);
    assert!(both.0.iter().all(|f| f[0] != 0.0 && f[3] > 0.0), "every particle has neighbors: {both:?}");
    // Miri looks at the accesses of the threads; the numbers are compared without it
    if cfg!(miri) {
        return;
    }
    let alone = evaluate(false);
    assert_eq!(alone.0, both.0, "bit for bit");
    assert!((alone.1 - both.1).abs() < 1e-12 * alone.1);
}

#[test]
fn pair_forces_of_two_threads_are_those_of_one() {
    pair_forces::<Fixed>();
    pair_forces::<Float64>();
}

/// Forces, energy and virial of a loop beside a sum over all pairs, with all inputs.
#[test]
#[cfg_attr(miri, ignore = "numbers, not accesses")]
fn pair_forces_are_those_of_a_direct_sum() {
    let mut system = System::<Float64>::new();
    let list = ListView {
        capacity: CAPACITY as u32,
        index: address(&mut system.index),
        count: address(&mut system.count),
        ..ListView::empty()
    };
    let state = system.state();
    let key = RandomKey::new(1, 2);
    let call = PairCall {
        size: size_of::<PairCall>() as u32,
        begin: 0,
        end: N as u32,
        first_varying: 0,
        isa: 0,
        wanted: Wanted::ALL,
        key,
        state: &state,
        list: &list,
        reserved: [0; 4],
    };
    let mut sums = Sums::default();
    // SAFETY: the views describe the arrays of `system`
    unsafe { run::<Repulsion>(&call, &rows(), &rows(), &mut sums) };
    let (mut force, mut direct) = (vec![[0.0; 3]; N], Sums::default());
    let table: Rows<[f64; 1], f64> = rows();
    for (i, force) in force.iter_mut().enumerate() {
        for j in (0..N).filter(|j| *j != i) {
            let d: [f64; 3] = std::array::from_fn(|k| {
                let d = system.pos[i].position[k] - system.pos[j].position[k];
                d - 10.0 * (d / 10.0).round_ties_even()
            });
            let r2 = d.iter().map(|x| x * x).sum::<f64>();
            if r2 >= 9.0 {
                continue;
            }
            let rv = (0..3).map(|k| d[k] * (system.velocity[i][k] - system.velocity[j][k])).sum();
            let zeta = uniform_unit_variance(key.pair(7, i as u32, j as u32)[0]);
            let input = PairInput { r2, rv, zeta, ..PairInput::default() };
            let (f, u) = Repulsion::eval(&input, &table.rows[2 * (i % 2) + j % 2]);
            (0..3).for_each(|k| force[k] += f * d[k]);
            direct.energy += 0.5 * u;
            for (v, (a, b)) in direct.virial.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                *v += 0.5 * f * d[a] * d[b];
            }
        }
    }
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12 * b.abs().max(1.0);
    let compare = |found: &[[f64; 4]], times: f64| {
        for (found, wanted) in found.iter().zip(&force) {
            assert!(found.iter().zip(wanted).all(|(a, b)| near(*a, times * b)), "{found:?} {wanted:?}");
        }
    };
    compare(&system.force, 1.0);
    // the loop without energies adds the same forces
    let call = PairCall { wanted: Wanted::FORCE, ..call };
    // SAFETY: the views describe the arrays of `system`, which outlive the call, and no other thread uses them
    unsafe { run::<Repulsion>(&call, &rows(), &rows(), &mut Sums::default()) };
    compare(&system.force, 2.0);
    assert!(near(sums.energy, direct.energy), "{sums:?} {direct:?}");
    assert!(sums.virial.iter().zip(direct.virial).all(|(a, b)| near(*a, b)), "{sums:?} {direct:?}");
}

fn broken_bonds<S: Stored>() {
    let mut system = System::<S>::new();
    let links = LinkView {
        capacity: 2,
        stride: N as u32,
        words: address(&mut system.words),
        count: address(&mut system.links),
        ..LinkView::empty(2)
    };
    let state = system.state();
    halves(|begin, end| {
        let call = BondedCall {
            size: size_of::<BondedCall>() as u32,
            begin,
            end,
            first_varying: 0,
            component: 5,
            reserved0: 0,
            wanted: Wanted::ALL,
            state: &state,
            links: &links,
            reserved: [0; 4],
        };
        // SAFETY: the views describe the arrays of `system`, and the ranges of the threads are disjoint
        unsafe {
            each_link::<S>(crate::snapshot::LinkList::Bonds, &call, &mut Sums::default(), |_, _| {
                (S::Real::lit(-3.41e38), S::Real::ZERO)
            });
        }
    });
    let fault = system.globals.fault.get();
    assert!(system.globals.is_halted());
    // both threads find broken bonds; the first bond is that of particles 0 and 1
    assert_eq!((fault.code, fault.component, fault.tag, fault.detail), (FaultKind::BondTooLong as u32, 5, 0, 1));
}

#[test]
fn the_first_broken_bond_is_reported() {
    broken_bonds::<Fixed>();
    broken_bonds::<Float64>();
}

/// Moves particles with their velocity; those with tags 4, 13 and 17 by NaN.
struct Drift;
struct DriftStep;

impl Integrator for Drift {
    type State = NoState;
    type Extra<R: Real> = NoArrays<R>;
    fn program() -> Program<Self> {
        Program::new().before::<DriftStep>()
    }
    fn bind(&mut self, _: &SystemInfo, _: &mut Needs) -> Result<()> {
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<NoState> {
        Ok(NoState::default())
    }
}

impl DeviceFn for DriftStep {
    fn text() -> &'static DeviceText {
        static TEXT: DeviceText = DeviceText { name: "drift", text: String::new, needs: &[], header: false };
        &TEXT
    }
}

impl ParticleFn<Drift> for DriftStep {
    const NAME: &'static str = "drift";
    const SUMS: usize = 1;
    const MOVES: bool = true;
    const POSITION: bool = true;
    const TURNS: bool = false;
    fn apply<R: Real>(
        p: &mut Particle<R>,
        _: &mut NoArrays<R>,
        _: &NoState,
        step: &Step<R>,
        _: &mut Random,
    ) -> [f64; MAX_SUMS] {
        let bad = if [4, 13, 17].contains(&p.tag) { f64::NAN } else { 1.0 };
        p.displacement = p.velocity * (step.dt * R::lit(bad));
        let mut sums = [0.0; MAX_SUMS];
        sums[0] = 1.0;
        sums
    }
    fn call_text() -> &'static str {
        ""
    }
}

/// Moves the particles on two threads. Returns the numbers of particles that were moved.
fn drifted(state: &StateView) -> [f64; 2] {
    let integrator = [0u8; size_of::<NoState>()];
    halves(|begin, end| {
        let mut sums = [0.0; MAX_SUMS];
        let call = ParticleCall {
            size: size_of::<ParticleCall>() as u32,
            begin,
            end,
            first_varying: 0,
            component: 3,
            group: 32,
            key: RandomKey::new(1, 2),
            state,
            integrator: integrator.as_ptr(),
            extra: std::ptr::null_mut(),
            sums: &mut sums,
            first_draw: 0,
            carried_stride: 0,
            carried: std::ptr::null_mut(),
            reserved: [0; 3],
        };
        // SAFETY: the views describe the arrays of `system`, and the ranges of the threads are disjoint
        unsafe { particles::<Drift, DriftStep>(&call, &NoState::default()) };
        sums[0]
    })
}

fn drift<S: Stored>() {
    let mut system = System::<S>::new();
    let state = system.state();
    let counted = drifted(&state);
    assert_eq!(counted, [N / 2, N - N / 2].map(|n| n as f64));
    let fault = system.globals.fault.get();
    assert_eq!((fault.code, fault.component, fault.tag), (FaultKind::NotFinite as u32, 3, 4), "the smallest tag");
    // the buffer of the list is 0: both threads request a rebuild
    assert!(system.globals.is_halted() && system.globals.needs_rebuild());
    assert!(
        system
            .built
            .iter()
            .zip(&system.pos)
            .filter(|(a, b)| S::difference(a, b, &system.globals.scale::<S>()).norm2() > S::Real::ZERO)
            .count()
            == N - 3
    );
}

#[test]
fn faults_and_requests_of_two_threads_are_kept() {
    drift::<Fixed>();
    drift::<Float64>();
}

/// Particles move by 0.02 at most, and request a list only if that is beyond the buffer. A box of constant length adds nothing.
fn lists<S: Stored>() {
    for (slack, request) in [(0.1, false), (0.01, true)] {
        let mut system = System::<S>::new();
        // none of those that move by NaN
        system.tag.iter_mut().for_each(|t| *t += 100);
        system.globals.slack2 = slack * slack;
        let state = system.state();
        assert_eq!(drifted(&state).iter().sum::<f64>(), N as f64);
        assert!(!system.globals.is_halted());
        assert_eq!(system.globals.needs_rebuild(), request, "buffer {slack}");
    }
}

#[test]
fn lists_last_while_particles_stay_within_the_buffer() {
    lists::<Fixed>();
    lists::<Float64>();
}
