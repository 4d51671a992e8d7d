//! Kernels of an integrator: one for each particle phase, one that adds its sums, one for each run of scalar phases without sums.

use crate::device::SourceUnit;
use galamost_plugin_api::integrator::{PhaseInfo, ProgramInfo, When};
use galamost_plugin_api::philox::DRAWS_PER_PHASE;
use galamost_plugin_api::precision::Precision;
use std::fmt::Write as _;

/// One kernel of an integrator: a particle phase with the scalar phases that follow it, or scalar phases alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseKernel {
    /// Name of the kernel.
    pub kernel: String,
    /// When it runs.
    pub when: When,
    /// It loops over particles.
    pub particles: bool,
    /// One of its scalar phases may change the box.
    pub sim_box: bool,
    /// One of its scalar phases needs the virial: it does more than change the shear offset.
    pub virial: bool,
    /// It moves particles.
    pub moves: bool,
    /// It reads positions.
    pub position: bool,
    /// None of its scalar phases changes the state.
    pub keeps_state: bool,
    /// It runs an action after all particles are done.
    pub has_action: bool,
    /// Number of sums over all particles that the action needs.
    pub sums: u32,
    /// Its action begins the next step.
    pub advances: bool,
}

impl PhaseKernel {
    fn of(kernel: String, when: When, scalars: &[&PhaseInfo]) -> Self {
        let (sim_box, virial) = (scalars.iter().any(|q| q.sim_box), scalars.iter().any(|q| q.sim_box && !q.shear));
        Self {
            kernel,
            when,
            particles: false,
            sim_box,
            virial,
            moves: false,
            position: false,
            keeps_state: scalars.iter().all(|q| q.keeps_state),
            has_action: true,
            sums: 0,
            advances: false,
        }
    }

    /// Returns the number of its first phase, the suffix of its device functions.
    pub(super) fn number(&self) -> &str {
        self.kernel.trim_start_matches("phase_")
    }
}

/// Returns the kernels that run at this point of a step, with the numbers of their integrators.
fn phases_of<'a>(integrators: &[(&str, &'a [PhaseKernel])], when: When) -> Vec<(usize, &'a PhaseKernel)> {
    let numbered = integrators.iter().enumerate();
    numbered.flat_map(|(k, (_, kernels))| kernels.iter().filter(move |p| p.when == when).map(move |p| (k, p))).collect()
}

/// Returns the kernel `between_steps` of these integrators, and the number of kernels after the forces that run before it. It does the phases
/// that follow the last sum after the forces, and those of the next step before its forces. Returns `None` if there are none, or if a
/// phase before the forces waits for all particles.
pub fn joint_unit(integrators: &[(&str, &[PhaseKernel])], precision: Precision) -> Option<(SourceUnit, usize)> {
    let (after, before) = (phases_of(integrators, When::After), phases_of(integrators, When::Before));
    let separate = after.iter().rposition(|(_, p)| p.has_action).map_or(0, |k| k + 1);
    let (last, others) = before.split_last()?;
    let waits = |p: &PhaseKernel| !p.particles || p.sums > 0;
    if separate == after.len() || !last.1.advances || waits(last.1) || others.iter().any(|(_, p)| p.has_action) {
        return None;
    }
    let mut t = String::from("#include \"galamost/integrate.cuh\"\n");
    for (k, (functions, _)) in integrators.iter().enumerate() {
        let _ = writeln!(t, "namespace integrator{k} {{\n{functions}}}");
    }
    let arguments: Vec<String> = (0..integrators.len()).map(|k| format!("PhaseArgs phase{k}")).collect();
    let _ = write!(
        t,
        "extern \"C\" __global__ void __launch_bounds__(256) between_steps({}) {{\nawait_launches();\nconst StateView& s = phase0.state;\n\
         if (s.globals->halt) return;\nconst u32 group = own_begin(s) / SUM_THREADS + blockIdx.x;\n",
        arguments.join(", ")
    );
    for (k, p) in after[separate..].iter().chain(&before) {
        let _ = writeln!(t, "phase_block<integrator{k}::Phase{}>(phase{k}, group);", p.number());
    }
    let (k, number) = (last.0, last.1.number());
    let _ = write!(
        t,
        "__shared__ u32 flag;\nif (last_block_to_end(phase{k}.counter, &flag)) phase_end<integrator{k}::Phase{number}>(phase{k});\n}}\n"
    );
    Some((SourceUnit::new("between steps", &t, precision), separate))
}

/// Returns the kernels of an integrator, from the output of [`integrator_functions`]. A particle phase with sums has a second kernel, which
/// adds them; `in_kernels`, with a barrier of several ranks.
pub fn integrator_unit(
    name: &str,
    functions: &str,
    kernels: &[PhaseKernel],
    in_kernels: bool,
    precision: Precision,
) -> SourceUnit {
    let (header, end) = if in_kernels {
        ("ranks_phase", ("PhaseArgs a, RankPhaseArgs ranks", "phase_end_of_ranks", "a, ranks"))
    } else {
        ("integrate", ("PhaseArgs a", "phase_end", "a"))
    };
    let mut t = format!("#include \"galamost/{header}.cuh\"\n{functions}");
    for s in kernels {
        let (kernel, k) = (&s.kernel, s.number());
        let _ = if s.particles {
            writeln!(
                t,
                "extern \"C\" __global__ void __launch_bounds__(256) {kernel}(PhaseArgs a) {{ await_launches(); particle_loop<Phase{k}>(a); }}"
            )
        } else {
            writeln!(
                t,
                "extern \"C\" __global__ void {kernel}(PhaseArgs a) {{\nawait_launches();\nif (!a.state.globals->halt) scalars_{k}(a);\n}}"
            )
        };
        if s.particles && s.sums > 0 {
            let (parameters, function, arguments) = end;
            let _ = writeln!(
                t,
                "extern \"C\" __global__ void {kernel}_end({parameters}) {{ await_launches(); {function}<Phase{k}>({arguments}); }}"
            );
        }
    }
    SourceUnit::new(name, &t, precision)
}

/// Returns the structs `PhaseK` and the functions `scalars_K` of an integrator, and its kernels in the order in which
/// they run. The text needs `integrate.cuh`. With `advance`, the last particle phase before the forces also begins the
/// next step.
pub fn integrator_functions(text: &str, program: &ProgramInfo, advance: bool) -> (String, Vec<PhaseKernel>) {
    let mut t = format!("namespace integrator {{\n{text}\n}}\n#line 1 \"integrator_unit\"\n");
    let phases = &program.phases;
    let last_before = phases.iter().rposition(|p| !p.scalar && p.when == When::Before);
    let mut kernels: Vec<PhaseKernel> = vec![];
    let mut k = 0;
    while k < phases.len() {
        let p = &phases[k];
        // scalar phases that follow a phase with sums run in the kernel that adds these
        let scalars = |from: usize| {
            phases[from..].iter().take_while(|q| q.scalar && q.when == p.when).collect::<Vec<&PhaseInfo>>()
        };
        let kernel = format!("phase_{k}");
        if p.scalar {
            let all = scalars(k);
            t.push_str(&scalar_function(k, &all));
            kernels.push(PhaseKernel::of(kernel, p.when, &all));
            k += all.len();
            continue;
        }
        let all = if p.sums > 0 { scalars(k + 1) } else { vec![] };
        let advances = advance && last_before == Some(k);
        t.push_str(&phase_struct(k, p, program, advances, &all));
        kernels.push(PhaseKernel {
            particles: true,
            moves: p.moves,
            position: p.position,
            has_action: p.sums > 0 || advances,
            sums: p.sums,
            advances,
            ..PhaseKernel::of(kernel, p.when, &all)
        });
        k += 1 + all.len();
    }
    (t, kernels)
}

/// Returns the number of the first random draw of a phase.
fn first_draw(phase: usize) -> u32 {
    phase as u32 * DRAWS_PER_PHASE
}

/// Returns the calls of scalar phases, the first of which is phase `from`.
fn scalar_calls(from: usize, phases: &[&PhaseInfo]) -> String {
    let call = |(j, q): (usize, &&PhaseInfo)| {
        let (before, argument, after) = if q.sim_box {
            ("SimBox sim_box = make_sim_box(globals);\n", ", sim_box", "set_sim_box(globals, sim_box, a.component);\n")
        } else {
            ("", "", "")
        };
        format!(
            "{{\nRandom random = {{a.key, step.step, NO_TAG, {}u}};\n{before}\
             integrator::{}_call(g, sums, step, random{argument});\n{after}}}\n",
            first_draw(from + j),
            q.name
        )
    };
    phases.iter().enumerate().map(call).collect()
}

/// Returns the function `scalars_K` that calls these scalar phases.
fn scalar_function(k: usize, phases: &[&PhaseInfo]) -> String {
    format!(
        "__device__ __forceinline__ void scalars_{k}(const PhaseArgs& a) {{\n\
         integrator::State& g = *static_cast<integrator::State*>(a.integrator);\nconst double* sums = a.sums;\n\
         Globals* globals = a.state.globals;\n\
         const Step<double> step = make_step<double>(globals, a.first_varying);\n{}}}\n",
        scalar_calls(k, phases)
    )
}

/// Returns the struct `PhaseK` of particle phase `k` with the scalar phases that follow it.
fn phase_struct(k: usize, p: &PhaseInfo, program: &ProgramInfo, advances: bool, scalars: &[&PhaseInfo]) -> String {
    format!(
        "struct Phase{k} {{\ntypedef integrator::State State;\n\
         template <class T> using Extra = integrator::Extra<T>;\n\
         static constexpr bool has_extra = integrator::has_extra, MOVES = {}, POSITION = {}, ROTATES = {}, \
         ADVANCE = {advances}, CORRECTS = {}, CARRIES = {};\n\
         static constexpr int SUMS = {};\nstatic constexpr u32 FIRST_DRAW = {}u;\n\
         static __device__ __forceinline__ void call(Particle<real>& p, Extra<real>& x, const State& g, \
         const Step<real>& step, Random& random, double* sums) {{\n\
         integrator::{}_call<real>(p, x, g, step, random, sums);\n}}\n\
         static __device__ __forceinline__ void scalars(State& g, const double* sums, Globals* globals, const PhaseArgs& a) {{\n\
         const Step<double> step = make_step<double>(globals, a.first_varying);\n{}}}\n}};\n",
        p.moves,
        p.position,
        p.turns,
        program.corrects,
        program.carries_velocity,
        p.sums,
        first_draw(k),
        p.name,
        scalar_calls(k + 1, scalars)
    )
}
