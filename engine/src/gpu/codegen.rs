//! Units of CUDA C++ put together from plugins' texts.
//!
//! Each component's text stands in a namespace of its own; the loops are the headers'.

use super::args::size_checks;
use crate::device::Unit;
use galamost_plugin_api::integrator::{PhaseInfo, ProgramInfo, When};
use galamost_plugin_api::philox::DRAWS_PER_PHASE;
use galamost_plugin_api::precision::Precision;
use std::fmt::Write as _;

/// The struct `Parts` of these components, behind `pair.cuh`.
fn pair_parts(texts: &[String], n_types: u32) -> String {
    let parts = texts.len();
    let mut t = size_checks("pair.cuh");
    for (k, text) in texts.iter().enumerate() {
        let _ = write!(
            t,
            "namespace part{k} {{\n{text}\n}}\n#line 1 \"pair_unit_{k}\"\n\
             struct Part{k} {{\n\
             typedef part{k}::PairRow<real> Row;\n\
             static constexpr u32 inputs = part{k}::inputs, mode = part{k}::mode;\n\
             static constexpr bool oriented = part{k}::oriented;\n\
             template <class Input> static __device__ __forceinline__ auto eval(const Input& input, const Row& row) {{\n\
             return part{k}::pair_eval<real>(input, row);\n}}\n}};\n"
        );
    }
    let all = |f: &dyn Fn(usize) -> String| (0..parts).map(f).collect::<String>();
    let rows = (n_types * n_types).max(1);
    let inputs = all(&|k| format!(" | Part{k}::inputs"));
    t.push_str("struct Parts {\n");
    let _ = writeln!(t, "static constexpr u32 inputs = 0u{inputs};");
    for k in 0..parts {
        if n_types <= 1 {
            // one type: the row stays in registers
            let _ = writeln!(t, "Part{k}::Row rows{k}[1];\nCutoffRow<real> cutoff{k}[1];\nStep<real> step{k};");
        } else {
            let _ = writeln!(t, "Part{k}::Row* rows{k};\nCutoffRow<real>* cutoff{k};\nStep<real> step{k};");
        }
    }
    t.push_str("__device__ __forceinline__ explicit Parts(const PairArgs& a) {\n");
    for k in 0..parts {
        let _ = writeln!(t, "step{k} = make_step<real>(a.state.globals, a.part[{k}].first_varying);");
        let from = format!("static_cast<const Part{k}::Row*>(a.part[{k}].rows)");
        if n_types <= 1 {
            let _ = writeln!(t, "rows{k}[0] = {from}[0];\ncutoff{k}[0] = a.part[{k}].cutoff_rows[0];");
        } else {
            let _ = writeln!(
                t,
                "__shared__ Part{k}::Row shared_rows{k}[{rows}];\n__shared__ CutoffRow<real> shared_cutoff{k}[{rows}];\n\
                 for (u32 r = threadIdx.x; r < {rows}u; r += blockDim.x) {{\n\
                 shared_rows{k}[r] = {from}[r];\nshared_cutoff{k}[r] = a.part[{k}].cutoff_rows[r];\n}}\n\
                 rows{k} = shared_rows{k};\ncutoff{k} = shared_cutoff{k};"
            );
        }
    }
    if n_types > 1 {
        t.push_str("__syncthreads();\n");
    }
    t.push_str("}\n");
    let row = if n_types <= 1 { "0u".into() } else { format!("kind_i * {n_types}u + n.kind") };
    let _ = write!(
        t,
        "template <bool FULL>\n\
         __device__ __forceinline__ void evaluate(const StateView& s, const PairArgs& a, u32 kind_i, const Neighbor& n, \
         Accumulator<{parts}, FULL>& sum) {{\nconst u32 row = {row};\n"
    );
    for k in 0..parts {
        let _ = writeln!(
            t,
            "evaluate_part<Part{k}, {k}, {parts}, FULL>(s, a.part[{k}], rows{k}, cutoff{k}, step{k}, row, n, sum);"
        );
    }
    t.push_str("}\n};\n");
    t
}

/// The fused pair loop of these components: kernels `pair_force` and `pair_force_full`.
pub fn pair_unit(texts: &[String], n_types: u32, team: u32, precision: Precision) -> Unit {
    let parts = texts.len();
    let mut t =
        format!("#define GALAMOST_PARTS {parts}\n#include \"galamost/pair.cuh\"\n{}", pair_parts(texts, n_types));
    for (name, full) in [("pair_force", false), ("pair_force_full", true)] {
        let _ = writeln!(
            t,
            "extern \"C\" __global__ void __launch_bounds__(128) {name}(PairArgs a) {{ pair_loop<Parts, {parts}, {team}u, {full}>(a); }}"
        );
    }
    Unit::new("pair", &t, precision)
}

/// Links of `width` members in names of functions.
pub(super) fn member(width: u32) -> &'static str {
    match width {
        2 => "bond",
        3 => "angle",
        _ => "dihedral",
    }
}

/// The struct `Part` of a bonded potential, behind `angles.cuh`.
fn bonded_part(text: &str) -> String {
    format!(
        "namespace part {{\n{text}\n}}\n#line 1 \"bond_unit\"\n\
         struct Part {{\ntypedef part::BondRow<real> Row;\n\
         static __device__ __forceinline__ Tuple2<real, real> eval(const BondInput<real>& input, const Row& row) {{\n\
         return part::bond_eval<real>(input, row);\n}}\n}};\n"
    )
}

/// The loop of one bonded potential, for links of `width` members: kernels `bond_force` and `bond_force_full`.
pub fn bond_unit(name: &str, text: &str, width: u32, precision: Precision) -> Unit {
    let (member, part) = (member(width), bonded_part(text));
    let t = format!(
        "#include \"galamost/angles.cuh\"\n{}{part}\
         extern \"C\" __global__ void __launch_bounds__(128) bond_force(BondArgs a) {{ {member}_loop<Part, false>(a); }}\n\
         extern \"C\" __global__ void __launch_bounds__(128) bond_force_full(BondArgs a) {{ {member}_loop<Part, true>(a); }}\n",
        size_checks("angles.cuh")
    );
    Unit::new(name, &t, precision)
}

/// A kernel of an integrator: a particle phase with the scalar phases that follow it, or scalar phases alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of the kernel.
    pub kernel: String,
    /// When it is due.
    pub when: When,
    /// It runs over particles.
    pub particles: bool,
    /// A function of the state in it may change the box.
    pub sim_box: bool,
    /// Such a function that needs the virial: it does more than displace images.
    pub virial: bool,
    /// It moves particles.
    pub moves: bool,
    /// Something follows once it is through with all particles.
    pub ends: bool,
    /// The next step begins with it.
    pub advances: bool,
}

impl Step {
    fn of(kernel: String, when: When, scalars: &[&PhaseInfo]) -> Self {
        let (sim_box, virial) = (scalars.iter().any(|q| q.sim_box), scalars.iter().any(|q| q.sim_box && !q.shear));
        Self { kernel, when, particles: false, sim_box, virial, moves: false, ends: true, advances: false }
    }

    /// Its place among the integrator's phases, which names its functions.
    fn place(&self) -> &str {
        self.kernel.trim_start_matches("phase_")
    }
}

/// The kernels of an integrator, from what [`integrator_functions`] gave.
pub fn integrator_unit(name: &str, functions: &str, steps: &[Step], precision: Precision) -> Unit {
    let mut t = format!("#include \"galamost/integrate.cuh\"\n{}{functions}", size_checks("integrate.cuh"));
    for s in steps {
        let (kernel, k) = (&s.kernel, s.place());
        let _ = if s.particles {
            writeln!(
                t,
                "extern \"C\" __global__ void __launch_bounds__(256) {kernel}(PhaseArgs a) {{ particle_loop<Phase{k}>(a); }}"
            )
        } else {
            writeln!(
                t,
                "extern \"C\" __global__ void {kernel}(PhaseArgs a) {{\nif (!a.state.globals->halt) scalars_{k}(a);\n}}"
            )
        };
    }
    Unit::new(name, &t, precision)
}

/// The structs `PhaseK` and functions `scalars_K` of an integrator, behind `integrate.cuh`, and in which order they are due. `advance`: the last
/// particle phase before the forces also begins the next step.
pub fn integrator_functions(text: &str, program: &ProgramInfo, advance: bool) -> (String, Vec<Step>) {
    let mut t = format!("namespace integrator {{\n{text}\n}}\n#line 1 \"integrator_unit\"\n");
    let phases = &program.phases;
    let last_before = phases.iter().rposition(|p| !p.scalar && p.when == When::Before);
    let mut steps: Vec<Step> = vec![];
    let mut k = 0;
    while k < phases.len() {
        let p = &phases[k];
        // scalar phases that follow a phase with sums run in its last block
        let follow = |from: usize| {
            phases[from..].iter().take_while(|q| q.scalar && q.when == p.when).collect::<Vec<&PhaseInfo>>()
        };
        let kernel = format!("phase_{k}");
        let draw = |phase: usize| phase as u32 * DRAWS_PER_PHASE;
        // functions of the state, the first of them phase `from`
        let calls = |from: usize, phases: &[&PhaseInfo]| {
            let call = |(j, q): (usize, &&PhaseInfo)| {
                let (before, argument, after) = if q.sim_box {
                    (
                        "SimBox sim_box = make_sim_box(globals);\n",
                        ", sim_box",
                        "set_sim_box(globals, sim_box, a.component);\n",
                    )
                } else {
                    ("", "", "")
                };
                format!(
                    "{{\nRandom random = {{a.key, step.step, NO_TAG, {}u}};\n{before}\
                     integrator::{}_call(g, sums, step, random{argument});\n{after}}}\n",
                    draw(from + j),
                    q.name
                )
            };
            phases.iter().enumerate().map(call).collect::<String>()
        };
        if p.scalar {
            let all = follow(k);
            let _ = writeln!(
                t,
                "__device__ __forceinline__ void scalars_{k}(const PhaseArgs& a) {{\n\
                 integrator::State& g = *static_cast<integrator::State*>(a.integrator);\nconst double* sums = a.sums;\n\
                 Globals* globals = a.state.globals;\n\
                 const Step<double> step = make_step<double>(globals, a.first_varying);\n{}}}",
                calls(k, &all)
            );
            steps.push(Step::of(kernel, p.when, &all));
            k += all.len();
            continue;
        }
        let all = if p.sums > 0 { follow(k + 1) } else { vec![] };
        let advances = advance && last_before == Some(k);
        let _ = writeln!(
            t,
            "struct Phase{k} {{\ntypedef integrator::State State;\n\
             template <class T> using Extra = integrator::Extra<T>;\n\
             static constexpr bool has_extra = integrator::has_extra, MOVES = {}, POSITION = {}, TURNS = {}, \
             ADVANCE = {advances}, CORRECTS = {}, CARRIES = {};\n\
             static constexpr int SUMS = {};\nstatic constexpr u32 FIRST_DRAW = {}u;\n\
             static __device__ __forceinline__ void call(Particle<real>& p, Extra<real>& x, const State& g, \
             const Step<real>& step, Random& random, double* sums) {{\n\
             integrator::{}_call<real>(p, x, g, step, random, sums);\n}}\n\
             static __device__ __forceinline__ void scalars(State& g, const double* sums, Globals* globals, const PhaseArgs& a) {{\n\
             const Step<double> step = make_step<double>(globals, a.first_varying);\n{}}}\n}};",
            p.moves,
            p.position,
            p.turns,
            program.corrects,
            program.carries_velocity,
            p.sums,
            draw(k),
            p.name,
            calls(k + 1, &all)
        );
        let ends = p.sums > 0 || advances;
        steps.push(Step { particles: true, moves: p.moves, ends, advances, ..Step::of(kernel, p.when, &all) });
        k += 1 + all.len();
    }
    (t, steps)
}

/// What a kernel of many steps is made of.
pub struct StepsParts<'a> {
    /// Texts of the pair components.
    pub pairs: &'a [String],
    /// Particle types.
    pub n_types: u32,
    /// Threads that share a row of the list.
    pub team: u32,
    /// Texts of the bonded potentials, with the members of their links.
    pub bonded: Vec<(&'a str, u32)>,
    /// Functions of the integrators, and in which order they are due.
    pub moving: Vec<(&'a str, &'a [Step])>,
}

/// Threads of a block of the kernel of many steps: blocks that meet should be few. Sums are taken over groups of as many threads as an
/// integrator's kernels have.
pub const STEPS_BLOCK: u32 = 1024;

/// The kernel `steps`, see `steps.cuh`: pair forces, bonded forces and phases after them, phases of the next step up to its forces, and so
/// on. Blocks meet only where a part needs what others did to other particles: what one thread does to its own particle needs no meeting.
pub fn steps_unit(parts: &StepsParts<'_>, precision: Precision) -> Unit {
    let n = parts.pairs.len();
    let mut t = format!(
        "#define GALAMOST_STEPS\n#define GALAMOST_PARTS {n}\n#include \"galamost/steps.cuh\"\n{}",
        pair_parts(parts.pairs, parts.n_types)
    );
    let mut arguments = String::from("PairArgs pair");
    for (k, (text, _)) in parts.bonded.iter().enumerate() {
        let _ = writeln!(t, "namespace bonded{k} {{\n{}}}", bonded_part(text));
        let _ = write!(arguments, ", BondArgs bond{k}");
    }
    for (k, (functions, _)) in parts.moving.iter().enumerate() {
        let _ = writeln!(t, "namespace moving{k} {{\n{functions}}}");
        let _ = write!(arguments, ", PhaseArgs phase{k}");
    }
    let (before, after) = (parts.segments(When::Before), parts.segments(When::After));
    let bonds: String = parts
        .bonded
        .iter()
        .enumerate()
        .map(|(k, (_, width))| {
            format!(
                "asked |= {}_rows<bonded{k}::Part, false>(bond{k}, group * SUM_THREADS + threadIdx.x % SUM_THREADS, unused);\n",
                member(*width)
            )
        })
        .collect();
    // particles that bonds look at must not move before all have seen where they were
    let open = after.iter().all(|s| s.actions.is_empty());
    let first_moves = |s: &[Segment]| s.first().is_some_and(|s| s.moves);
    let waits = if first_moves(&after) || (open && first_moves(&before)) { MEET_OR_HALT } else { "" };
    let bonds = if bonds.is_empty() {
        bonds
    } else {
        format!("for_groups(s, [&](u32 group) {{\ndouble unused[7] = {{0, 0, 0, 0, 0, 0, 0}};\n{bonds}}});\n{waits}")
    };
    let after: String = after.iter().map(|s| s.particles.clone() + &s.end(MEET_OR_HALT)).collect();
    let advances = before.iter().any(|s| s.advances);
    let begins = if advances { "" } else { "if (threadIdx.x == 0u && !g->halt) begin_next_step(g);\n" };
    let last = before.len().saturating_sub(1);
    let before: String = before
        .iter()
        .enumerate()
        .map(|(k, s)| s.particles.clone() + &if k < last { s.end(MEET_OR_HALT) } else { s.meeting(begins) })
        .collect();
    let before = if before.is_empty() { Segment::default().meeting(begins) } else { before };
    let _ = write!(
        t,
        "extern \"C\" __global__ void __launch_bounds__({STEPS_BLOCK}) steps({arguments}, StepsControl* control) {{\n\
         const StateView& s = pair.state;\nGlobals* g = s.globals;\nMeetings meetings(control, g);\n\
         u32 left = control->left;\nbool begun = control->begun != 0u;\n\
         u32 asked = g->halt ? STOP_HALT : 0u;\nu32 stop = meetings.meet(asked);\n\
         while (!(stop & STOP_HALT)) {{\nif (begun) {{\n\
         pair_all<Parts, {n}, {team}u>(pair);\n{MEET_OR_HALT}{bonds}{after}\
         begun = false;\nleft -= 1u;\nif (left == 0u) break;\n}}\n\
         {before}if (stop & STOP_HALT) break;\nbegun = true;\nif (stop & STOP_REBUILD) break;\n}}\n\
         if (blockIdx.x == 0u && threadIdx.x == 0u) {{\ncontrol->left = left;\ncontrol->begun = begun ? 1u : 0u;\nmeetings.leave();\n}}\n}}\n",
        team = parts.team,
    );
    Unit::new("steps", &t, precision)
}

const MEET_OR_HALT: &str = "stop = meetings.meet(asked);\nif (stop & STOP_HALT) break;\n";

/// What blocks do between two meetings.
#[derive(Default)]
struct Segment {
    /// For their particles.
    particles: String,
    /// What the last block does at the meeting.
    actions: String,
    /// Particles move.
    moves: bool,
    /// The next step begins with the actions.
    advances: bool,
}

impl Segment {
    fn meeting(&self, more: &str) -> String {
        format!("stop = meetings.meet(asked, [&] {{\n{}{more}}});\n", self.actions)
    }

    /// Text that closes the segment if it has actions; `plain` is that of a meeting with none.
    fn end(&self, plain: &str) -> String {
        if self.actions.is_empty() {
            String::new()
        } else {
            plain.replacen("asked", &format!("asked, [&] {{\n{}}}", self.actions), 1)
        }
    }
}

impl StepsParts<'_> {
    /// The phases that are due then.
    fn segments(&self, when: When) -> Vec<Segment> {
        let mut all: Vec<Segment> = vec![];
        for (k, (_, steps)) in self.moving.iter().enumerate() {
            for step in steps.iter().filter(|s| s.when == when) {
                if all.is_empty() || (step.particles && all.last().is_some_and(|s| !s.actions.is_empty())) {
                    all.push(Segment::default());
                }
                let Some(segment) = all.last_mut() else { continue };
                let place = step.place();
                if !step.particles {
                    let call = format!("if (threadIdx.x == 0u && !g->halt) moving{k}::scalars_{place}(phase{k});\n");
                    segment.actions.push_str(&call);
                    continue;
                }
                let phase = format!("moving{k}::Phase{place}");
                let _ = writeln!(
                    segment.particles,
                    "for_groups(s, [&](u32 group) {{ asked |= phase_block<{phase}>(phase{k}, group); }});"
                );
                segment.moves |= step.moves;
                if step.ends {
                    let _ = writeln!(segment.actions, "phase_end<{phase}>(phase{k});\n__syncthreads();");
                    segment.advances |= step.advances;
                }
            }
        }
        all
    }
}
