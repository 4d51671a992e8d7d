//! Units of CUDA C++ put together from plugins' texts.
//!
//! Each component's text stands in a namespace of its own; the loops are the headers'.

use super::args::size_checks;
use crate::device::Unit;
use galamost_plugin_api::integrator::{PhaseInfo, ProgramInfo, When};
use galamost_plugin_api::philox::DRAWS_PER_PHASE;
use galamost_plugin_api::precision::Precision;
use std::fmt::Write as _;

/// The fused pair loop of these components: kernels `pair_force` and `pair_force_full`.
pub fn pair_unit(texts: &[String], n_types: u32, team: u32, precision: Precision) -> Unit {
    let parts = texts.len();
    let mut t = format!("#define GALAMOST_PARTS {parts}\n#include \"galamost/pair.cuh\"\n");
    t.push_str(&size_checks("pair.cuh"));
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
            let _ = writeln!(t, "Part{k}::Row rows{k}[1];\nLoopRow<real> edges{k}[1];\nStep<real> step{k};");
        } else {
            let _ = writeln!(t, "Part{k}::Row* rows{k};\nLoopRow<real>* edges{k};\nStep<real> step{k};");
        }
    }
    t.push_str("__device__ __forceinline__ explicit Parts(const PairArgs& a) {\n");
    for k in 0..parts {
        let _ = writeln!(t, "step{k} = make_step<real>(a.state.globals, a.part[{k}].first_varying);");
        let from = format!("static_cast<const Part{k}::Row*>(a.part[{k}].rows)");
        if n_types <= 1 {
            let _ = writeln!(t, "rows{k}[0] = {from}[0];\nedges{k}[0] = a.part[{k}].loop_rows[0];");
        } else {
            let _ = writeln!(
                t,
                "__shared__ Part{k}::Row shared_rows{k}[{rows}];\n__shared__ LoopRow<real> shared_edges{k}[{rows}];\n\
                 for (u32 r = threadIdx.x; r < {rows}u; r += blockDim.x) {{\n\
                 shared_rows{k}[r] = {from}[r];\nshared_edges{k}[r] = a.part[{k}].loop_rows[r];\n}}\n\
                 rows{k} = shared_rows{k};\nedges{k} = shared_edges{k};"
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
         __device__ __forceinline__ void evaluate(const StateView& s, const PairArgs& a, u32 kind_i, const Neighbour& n, \
         Accumulator<{parts}, FULL>& sum) {{\nconst u32 row = {row};\n"
    );
    for k in 0..parts {
        let _ = writeln!(
            t,
            "evaluate_part<Part{k}, {k}, {parts}, FULL>(s, a.part[{k}], rows{k}, edges{k}, step{k}, row, n, sum);"
        );
    }
    t.push_str("}\n};\n");
    for (name, full) in [("pair_force", false), ("pair_force_full", true)] {
        let _ = writeln!(
            t,
            "extern \"C\" __global__ void __launch_bounds__(128) {name}(PairArgs a) {{ pair_loop<Parts, {parts}, {team}u, {full}>(a); }}"
        );
    }
    Unit::new("pair", &t, precision)
}

/// The loop of one bonded potential, for links of `width` members: kernels `bond_force` and `bond_force_full`.
pub fn bond_unit(name: &str, text: &str, width: u32, precision: Precision) -> Unit {
    let member = match width {
        2 => "bond",
        3 => "angle",
        _ => "dihedral",
    };
    let t = format!(
        "#include \"galamost/angles.cuh\"\n{}namespace part {{\n{text}\n}}\n#line 1 \"bond_unit\"\n\
         struct Part {{\ntypedef part::BondRow<real> Row;\n\
         static __device__ __forceinline__ Tuple2<real, real> eval(const BondInput<real>& input, const Row& row) {{\n\
         return part::bond_eval<real>(input, row);\n}}\n}};\n\
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
    pub cell: bool,
    /// Such a function that needs the virial: it does more than displace images.
    pub virial: bool,
}

impl Step {
    fn of(kernel: String, when: When, particles: bool, scalars: &[&PhaseInfo]) -> Self {
        let (cell, virial) = (scalars.iter().any(|q| q.cell), scalars.iter().any(|q| q.cell && !q.shear));
        Self { kernel, when, particles, cell, virial }
    }
}

/// The kernels of an integrator, and in which order they run. `advance`: the last particle phase before the forces
/// also begins the next step.
pub fn integrator_unit(
    name: &str,
    text: &str,
    program: &ProgramInfo,
    advance: bool,
    precision: Precision,
) -> (Unit, Vec<Step>) {
    let mut t = format!(
        "#include \"galamost/integrate.cuh\"\n{}namespace integrator {{\n{text}\n}}\n#line 1 \"integrator_unit\"\n",
        size_checks("integrate.cuh")
    );
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
                let (before, argument, after) = if q.cell {
                    ("Cell cell = make_cell(globals);\n", ", cell", "set_cell(globals, cell, a.component);\n")
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
                "extern \"C\" __global__ void {kernel}(PhaseArgs a) {{\nif (a.state.globals->halt) return;\n\
                 integrator::State& g = *static_cast<integrator::State*>(a.integrator);\nconst double* sums = a.sums;\n\
                 Globals* globals = a.state.globals;\n\
                 const Step<double> step = make_step<double>(globals, a.first_varying);\n{}}}",
                calls(k, &all)
            );
            steps.push(Step::of(kernel, p.when, false, &all));
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
             const Step<double> step = make_step<double>(globals, a.first_varying);\n{}}}\n}};\n\
             extern \"C\" __global__ void __launch_bounds__(256) {kernel}(PhaseArgs a) {{ particle_loop<Phase{k}>(a); }}",
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
        steps.push(Step::of(kernel, p.when, true, &all));
        k += 1 + all.len();
    }
    (Unit::new(name, &t, precision), steps)
}
