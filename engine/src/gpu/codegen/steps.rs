//! The persistent kernel that does many time steps in one launch; see `kernels/galamost/steps.cuh`.

use super::{PhaseKernel, bonded_potential, link_name, pair_terms};
use crate::device::SourceUnit;
use galamost_plugin_api::integrator::When;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::LinkList;
use std::fmt::Write as _;

/// What the persistent kernel is generated from.
pub struct StepsSource<'a> {
    /// Device code of the pair components.
    pub pairs: &'a [String],
    /// Number of particle types.
    pub n_types: u32,
    /// Threads that share a row of the neighbor list.
    pub team: u32,
    /// Device code of the bonded potentials, with the lists of their links.
    pub bonded: Vec<(&'a str, LinkList)>,
    /// Functions of the integrators, with their kernels in the order in which they run.
    pub integrators: Vec<(&'a str, &'a [PhaseKernel])>,
    /// An integrator is a barostat, which needs the virial at every step.
    pub barostat: bool,
}

/// Threads of a block of the persistent kernel. Blocks are large because a grid barrier is cheaper with fewer blocks.
/// Sums are taken over groups with as many threads as a block of an integrator's kernels.
pub const STEPS_BLOCK: u32 = 1024;

/// A grid barrier without an action; leaves the loop over steps on a halt.
const BARRIER: &str = "stop = barrier.wait(requested);\nif (stop & STOP_HALT) break;\n";

/// An action that begins the next step.
const BEGIN: &str = "if (threadIdx.x == 0u && !g->halt) begin_next_step(g);\n";

/// Returns the kernel `steps`.
///
/// One pass of its loop does the pair forces, the bonded forces, the phases after them, and the phases of the next step
/// before its forces. Grid barriers are only placed where a phase needs results for other particles: a block always
/// handles the same particles, and a thread the same one in all but the pair forces. `OWN_INPUT`: the first phases after the forces change
/// nothing that forces read of other particles, so no barrier comes before them. `prepared`: the first action of the next step is done.
pub fn steps_unit(source: &StepsSource<'_>, precision: Precision) -> SourceUnit {
    let n = source.pairs.len();
    let (define, sums) = if source.barostat { ("#define GALAMOST_BAROSTAT\n", "DIAGONAL") } else { ("", "FORCES") };
    let mut t = format!(
        "#define GALAMOST_STEPS\n{define}#include \"galamost/steps.cuh\"\n{}",
        pair_terms(source.pairs, source.n_types)
    );
    let mut arguments = String::from("PairArgs pair");
    for (k, (text, _)) in source.bonded.iter().enumerate() {
        let _ = writeln!(t, "namespace bonded{k} {{\n{}}}", bonded_potential(text));
        let _ = write!(arguments, ", BondArgs bond{k}");
    }
    for (k, (functions, _)) in source.integrators.iter().enumerate() {
        let _ = writeln!(t, "namespace integrator{k} {{\n{functions}}}");
        let _ = write!(arguments, ", PhaseArgs phase{k}");
    }
    let (before, mut after) = (source.segments(When::Before), source.segments(When::After));
    let bonds = source.bonded_loops();
    let prepares = prepare_early(&before, &mut after);
    if source.barostat {
        StepsSource::take_virial(&mut after);
    }
    let after = phases_after(&after);
    let before = phases_before(&before, prepares);
    let _ = write!(
        t,
        "static constexpr u32 ROWS = {STEPS_BLOCK}u / {team}u;\nstatic constexpr bool WARPS = ROWS % SUM_THREADS != 0u;\n\
         static constexpr bool OWN_INPUT = (PairTerms::inputs & (INPUT_VELOCITY | INPUT_ORIENTATION)) == 0u;\n\
         extern \"C\" __global__ void __launch_bounds__({STEPS_BLOCK}) steps({arguments}, StepsControl* control) {{\n\
         if (control->done) return;\n\
         const StateView& s = pair.state;\nGlobals* g = s.globals;\nGridBarrier barrier(&control->barrier, g);\n\
         if (threadIdx.x == 0u) counted_step = g->step;\nconst bool varies = g->n_values != 0u;\n\
         u32 remaining = control->remaining != 0u ? control->remaining : control->requested;\nbool moved = control->moved != 0u, prepared = false;\n\
         u32 requested = g->halt ? STOP_HALT : 0u;\nu32 stop = barrier.wait(requested);\n\
         while (!(stop & STOP_HALT)) {{\nif (moved) {{\n\
         requested |= pair_loop_all<PairTerms, {n}, {team}u, {sums}, {STEPS_BLOCK}u>(pair);\n__syncthreads();\n{bonds}{after}\
         moved = false;\nprepared = true;\nremaining -= 1u;\nif (remaining == 0u) break;\n}}\n\
         {before}if (stop & STOP_HALT) break;\nmoved = true;\nif (stop & STOP_REBUILD) break;\n}}\n\
         if (blockIdx.x == 0u && threadIdx.x == 0u) {{\ng->step = counted_step;\ncontrol->remaining = remaining;\n\
         control->moved = moved ? 1u : 0u;\ncontrol->done = remaining == 0u ? 1u : 0u;\nbarrier.finish();\n}}\n}}\n",
        team = source.team,
    );
    SourceUnit::new("steps", &t, precision)
}

/// Lets the last action of a step do the first action of the next one as well, so that it needs no barrier: if no particles come before
/// it, it does not change the state, and the phases in between read neither positions nor the box.
fn prepare_early(before: &[Segment], after: &mut [Segment]) -> bool {
    let (Some(last), [first, _, ..]) = (after.iter().rposition(|s| !s.actions.is_empty()), before) else {
        return false;
    };
    let independent = after[last + 1..].iter().all(|s| !s.moves && !s.position);
    if !first.particles.is_empty() || !first.keeps_state || !independent {
        return false;
    }
    let _ = write!(after[last].actions, "if (remaining > 1u) {{\n{}}}\n", first.actions);
    true
}

/// Returns the text of the phases after the forces. The first ones need the forces of their own block only, so they wait for all
/// blocks afterwards, unless they change what the forces of other blocks read.
fn phases_after(segments: &[Segment]) -> String {
    let Some((first, others)) = segments.split_first() else { return BARRIER.into() };
    let others: String = others.iter().map(|s| s.particles.clone() + &s.end(BARRIER)).collect();
    let rest = first.end(BARRIER) + &others;
    if first.particles.is_empty() {
        return rest;
    }
    if first.moves || first.actions.is_empty() {
        return format!("{BARRIER}{}{rest}", first.particles);
    }
    format!("if constexpr (!OWN_INPUT) {{\n{BARRIER}}}\n{}{rest}", first.particles)
}

/// Returns the text of the phases before the forces. It always ends with a barrier, at which the next step begins. `prepares`: the first
/// action is left out if it is done already.
fn phases_before(segments: &[Segment], prepares: bool) -> String {
    let last = segments.len().saturating_sub(1);
    let text: String = segments
        .iter()
        .enumerate()
        .map(|(k, s)| match k {
            0 if prepares => format!("if (!prepared) {{\n{}}}\n", s.end(BARRIER)),
            _ if k < last => s.particles.clone() + &s.end(BARRIER),
            _ => s.particles.clone() + &s.next_step(),
        })
        .collect();
    if text.is_empty() { Segment::default().next_step() } else { text }
}

/// The work of the blocks between two grid barriers.
#[derive(Default)]
struct Segment {
    /// Code for the particles of a block.
    particles: String,
    /// Code that the last block runs at the barrier.
    actions: String,
    /// Particles move.
    moves: bool,
    /// Positions are read.
    position: bool,
    /// The actions do not change the states of integrators.
    keeps_state: bool,
    /// The next step begins after the phases of the segment, before scalar phases that follow.
    advances: bool,
    /// The actions begin the next step.
    advanced: bool,
}

impl Segment {
    /// Adds an action that begins the next step, unless there is one.
    fn begin_next_step(&mut self) {
        if !self.advanced {
            self.actions.push_str(BEGIN);
            self.advanced = true;
        }
    }

    /// Returns the barrier at which the next step begins. Without other actions, one is only needed for values that vary with time.
    fn next_step(&self) -> String {
        if self.actions.is_empty() {
            return format!(
                "if (varies) stop = barrier.wait<true>(requested, [&] {{\n{BEGIN}}});\nelse stop = barrier.wait<true>(requested);\n"
            );
        }
        let begin = if self.advanced { "" } else { BEGIN };
        format!("stop = barrier.wait<true>(requested, [&] {{\n{}{begin}}});\n", self.actions)
    }

    /// Returns the barrier that closes the segment if it has actions; `plain` is a barrier without an action.
    fn end(&self, plain: &str) -> String {
        if self.actions.is_empty() {
            String::new()
        } else {
            plain.replacen("requested", &format!("requested, [&] {{\n{}}}", self.actions), 1)
        }
    }
}

impl StepsSource<'_> {
    /// Returns the loops over bonded potentials.
    fn bonded_loops(&self) -> String {
        let loops: String = self
            .bonded
            .iter()
            .enumerate()
            .map(|(k, (_, list))| {
                let (link, full) = (link_name(*list), self.barostat);
                let add = if full {
                    format!("requested |= add_bonded_virial(bond{k}, i, sums, virial);\n")
                } else {
                    String::new()
                };
                format!(
                    "{{\ndouble sums[7] = {{0, 0, 0, 0, 0, 0, 0}};\n\
                     requested |= {link}_rows<bonded{k}::Potential, {full}>(bond{k}, i, sums);\n{add}}}\n"
                )
            })
            .collect();
        if loops.is_empty() {
            return loops;
        }
        let each = format!("for_each_particle<ROWS>(s, [&](u32 i) {{\n{loops}}});\n");
        if self.barostat {
            return format!("{{\nVirialSum<1> virial;\n{each}virial.finish(pair.virial);\n}}\n");
        }
        each
    }

    /// Takes the virial before the first action after the forces, which is the first one that may need it.
    fn take_virial(after: &mut Vec<Segment>) {
        // the action waits before it uses the virial
        let text = "take_virial(g, pair.virial, pair.virial.words, 1u, nullptr, 0u);\n";
        match after.iter_mut().find(|s| !s.actions.is_empty()) {
            Some(segment) => segment.actions.insert_str(0, text),
            None => after.push(Segment { actions: text.into(), ..Segment::default() }),
        }
    }

    /// Returns the phases of all integrators that run then, split at barriers.
    fn segments(&self, when: When) -> Vec<Segment> {
        let mut all: Vec<Segment> = vec![];
        for (k, (_, kernels)) in self.integrators.iter().enumerate() {
            for kernel in kernels.iter().filter(|s| s.when == when) {
                if all.is_empty() || (kernel.particles && all.last().is_some_and(|s| !s.actions.is_empty())) {
                    all.push(Segment { keeps_state: true, ..Segment::default() });
                }
                let Some(segment) = all.last_mut() else { continue };
                let number = kernel.number();
                segment.keeps_state &= kernel.keeps_state;
                if !kernel.particles {
                    if segment.advances {
                        segment.begin_next_step();
                    }
                    let call = format!(
                        "__syncthreads();\nif (threadIdx.x == 0u && !g->halt) integrator{k}::scalars_{number}(phase{k});\n"
                    );
                    segment.actions.push_str(&call);
                    continue;
                }
                let phase = format!("integrator{k}::Phase{number}");
                let _ = writeln!(
                    segment.particles,
                    "for_each_particle<ROWS>(s, [&](u32 i) {{ requested |= phase_warp<{phase}, WARPS>(phase{k}, i); }});"
                );
                segment.moves |= kernel.moves;
                segment.position |= kernel.position;
                if kernel.sums > 0 {
                    let _ = writeln!(segment.actions, "phase_end<{phase}, WARPS>(phase{k});\n__syncthreads();");
                    segment.advanced |= kernel.advances;
                }
                segment.advances |= kernel.advances;
            }
        }
        all
    }
}
