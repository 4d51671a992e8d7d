//! Generates CUDA C++ source units from the plugins' device code.
//!
//! The code of each component gets its own namespace. The loops come from the headers in `kernels/galamost`.

mod integrator;
mod steps;

pub use integrator::{PhaseKernel, integrator_functions, integrator_unit, joint_unit};
pub use steps::{STEPS_BLOCK, StepsSource, steps_unit};

use super::staged::BLOCK;
use crate::device::SourceUnit;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::LinkList;
use std::fmt::Write as _;

/// Returns the struct `PairTerms` of these pair components; it needs `pair.cuh`.
fn pair_terms(texts: &[String], n_types: u32) -> String {
    pair_terms_with(texts, n_types, "")
}

/// Returns the struct `PairTerms` with further member functions.
fn pair_terms_with(texts: &[String], n_types: u32, more: &str) -> String {
    let mut t = String::new();
    for (k, text) in texts.iter().enumerate() {
        let _ = write!(
            t,
            "namespace pair{k} {{\n{text}\n}}\n#line 1 \"pair_unit_{k}\"\n\
             struct Potential{k} {{\n\
             typedef pair{k}::PairRow<real> Row;\n\
             static constexpr u32 inputs = pair{k}::inputs, mode = pair{k}::mode;\n\
             static constexpr bool oriented = pair{k}::oriented;\n\
             template <class Input> static __device__ __forceinline__ auto eval(const Input& input, const Row& row) {{\n\
             return pair{k}::pair_eval<real>(input, row);\n}}\n}};\n"
        );
    }
    let terms = texts.len();
    let inputs: String = (0..terms).map(|k| format!(" | Potential{k}::inputs")).collect();
    t.push_str("struct PairTerms {\n");
    let _ = writeln!(t, "static constexpr u32 inputs = (0u{inputs}) & ~INPUT_STEP;");
    for k in 0..terms {
        if n_types <= 1 {
            // with a single type, the row stays in registers
            let _ = writeln!(t, "Potential{k}::Row rows{k}[1];\nCutoffRow<real> cutoff{k}[1];\nStep<real> step{k};");
        } else {
            let _ = writeln!(
                t,
                "const Potential{k}::Row* rows{k};\nconst CutoffRow<real>* cutoff{k};\nStep<real> step{k};"
            );
        }
    }
    t.push_str(&constructor(terms, n_types));
    t.push_str(&evaluate(terms, n_types));
    t.push_str(more);
    t.push_str("};\n");
    t
}

/// Returns the constructor of `PairTerms`, which loads the parameter rows into registers or, if they are not too many, shared memory.
fn constructor(terms: usize, n_types: u32) -> String {
    let rows = (n_types * n_types).max(1);
    let mut t = String::from("__device__ __forceinline__ explicit PairTerms(const PairArgs& a) {\n");
    if n_types > 1 {
        let bytes: String =
            (0..terms).map(|k| format!(" + sizeof(Potential{k}::Row) + sizeof(CutoffRow<real>)")).collect();
        let _ = writeln!(t, "constexpr bool shared = {rows}u * (0u{bytes}) <= SHARED_ROW_BYTES;");
    }
    for k in 0..terms {
        let _ = writeln!(t, "step{k} = make_step<real>(a.state.globals, a.terms[{k}].first_varying);");
        let from = format!("static_cast<const Potential{k}::Row*>(a.terms[{k}].rows)");
        if n_types <= 1 {
            let _ = writeln!(t, "rows{k}[0] = {from}[0];\ncutoff{k}[0] = a.terms[{k}].cutoff_rows[0];");
        } else {
            let _ = writeln!(
                t,
                "rows{k} = place_rows<{k}, {rows}u, shared>({from});\n\
                 cutoff{k} = place_rows<{k}, {rows}u, shared>(a.terms[{k}].cutoff_rows);"
            );
        }
    }
    if n_types > 1 {
        t.push_str("__syncthreads();\n");
    }
    t + "}\n"
}

/// Returns the index of the parameter row of a neighbor.
fn row_index(n_types: u32) -> String {
    if n_types <= 1 { "0u".into() } else { format!("type_i * {n_types}u + n.type") }
}

/// Returns the member function of `PairTerms` that evaluates all terms for one neighbor.
fn evaluate(terms: usize, n_types: u32) -> String {
    let row = row_index(n_types);
    let mut t = format!(
        "template <bool SELECT, u32 SUMS>\n\
         __device__ __forceinline__ void evaluate(const StateView& s, const PairArgs& a, u32 type_i, const Neighbor& n, \
         Accumulator<{terms}, SUMS>& sum) {{\nconst u32 row = {row};\n"
    );
    if n_types > 1 {
        let check = format!("galamost_host::require_below(n.type, {n_types}u, \"particle type\");");
        let _ = writeln!(t, "#ifdef GALAMOST_HOST\n{check}\n#endif");
    }
    for k in 0..terms {
        let _ = writeln!(
            t,
            "evaluate_term<Potential{k}, {k}, {terms}, SUMS, SELECT>(s, a.terms[{k}], rows{k}, cutoff{k}, step{k}, row, n, sum);"
        );
    }
    t + "}\n"
}

/// Returns the kernel `pair_force_end`, which adds the sums of the blocks of all ranks.
fn pair_end(terms: usize, blocks: &str) -> String {
    format!(
        "extern \"C\" __global__ void pair_force_end(PairArgs a) {{\n\
         await_launches();\nif (!a.state.globals->halt) total_pair_sums<{terms}>(a, {blocks}, blockDim.x);\n}}\n"
    )
}

/// Kernels of a loop over pairs or links, and what they compute beside forces.
const KERNELS: [(&str, &str); 3] = [("force", "FORCES"), ("force_full", "ALL_SUMS"), ("force_diagonal", "DIAGONAL")];

/// Returns the fused pair loop of these components: the kernels `pair_force`, `pair_force_full` and
/// `pair_force_diagonal`, and with several ranks `pair_force_end`.
pub fn pair_unit(texts: &[String], n_types: u32, team: u32, ranks: bool, precision: Precision) -> SourceUnit {
    let terms = texts.len();
    let mut t = format!("#include \"galamost/pair.cuh\"\n{}", pair_terms(texts, n_types));
    for (name, sums) in KERNELS {
        let _ = writeln!(
            t,
            "extern \"C\" __global__ void __launch_bounds__(128) pair_{name}(PairArgs a) {{\n\
             await_launches();\npair_loop<PairTerms, {terms}, {team}u, {sums}>(a);\n}}"
        );
    }
    if ranks {
        t.push_str(&pair_end(terms, &format!("(a.state.n_local * {team}u + blockDim.x - 1u) / blockDim.x")));
    }
    SourceUnit::new("pair", &t, precision)
}

/// How the pair loop of several ranks overlaps with communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// It does not.
    None,
    /// The barrier after the move is inside the loop: `pair_force_gated`.
    Gated,
    /// Interior blocks during the transfer of ghosts, boundary blocks after it: `pair_force_interior` and `pair_force_boundary`.
    Split,
}

impl Overlap {
    /// Returns the names of its kernels after `pair_`, and the blocks that they handle.
    fn kernels(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::None => &[],
            Self::Gated => &[("force_gated", "GATED_BLOCKS")],
            Self::Split => &[("force_interior", "INTERIOR_BLOCKS"), ("force_boundary", "BOUNDARY_BLOCKS")],
        }
    }
}

/// Returns the pair loop of these components over a staged list: the kernels `pair_force`, `pair_force_full` and
/// `pair_force_diagonal`, with several ranks `pair_force_end` and those of the overlap. With `queued`, pairs within the cutoff are collected
/// before they are evaluated. A row has `team` threads, 1 or 2.
pub fn staged_pair_unit(
    texts: &[String],
    n_types: u32,
    queued: bool,
    team: u32,
    ranks: Option<Overlap>,
    precision: Precision,
) -> SourceUnit {
    let terms = texts.len();
    let mut t = format!(
        "#define GALAMOST_PAIR_TERMS {terms}\n#include \"galamost/staged_pair.cuh\"\n{}",
        pair_terms(texts, n_types)
    );
    let types = n_types > 1;
    let resident = format!("Resident<PairTerms, {terms}, {team}u>::blocks");
    let threads = team * BLOCK as u32;
    let parts = ranks.map_or(&[][..], Overlap::kernels).iter().map(|(name, part)| (*name, "FORCES", *part));
    for (name, sums, part) in KERNELS.into_iter().map(|(name, sums)| (name, sums, "ALL_BLOCKS")).chain(parts) {
        let blocks = match sums {
            "FORCES" => resident.clone(),
            "DIAGONAL" => format!("Resident<PairTerms, {terms}, {team}u>::with_diagonal"),
            _ => "1".into(),
        };
        let _ = writeln!(
            t,
            "extern \"C\" __global__ void __launch_bounds__({threads}, {blocks}) pair_{name}(StagedPairArgs a) {{\n\
             await_launches();\nstaged_pair_loop<PairTerms, {terms}, {types}, {queued}, {team}u, {sums}, {part}>(a);\n}}"
        );
    }
    if ranks.is_some() {
        t.push_str(&pair_end(terms, "(a.state.n_local + BLOCK - 1u) / BLOCK"));
    }
    SourceUnit::new("staged pair", &t, precision)
}

/// Returns the pass of these components over scaled special pairs: the kernels `special_force` and
/// `special_force_full`.
pub fn special_unit(texts: &[String], n_types: u32, precision: Precision) -> SourceUnit {
    let terms = texts.len();
    let mut member = format!(
        "template <u32 SUMS>\n\
         __device__ __forceinline__ void evaluate_scaled(const SpecialArgs& a, u32 type_i, u32 kind, const Neighbor& n, \
         Accumulator<{terms}, SUMS>& sum) {{\nconst u32 row = {};\n",
        row_index(n_types)
    );
    for k in 0..terms {
        let _ = writeln!(
            member,
            "add_scaled_term<Potential{k}, {k}, {terms}, SUMS>(a, rows{k}, cutoff{k}, step{k}, row, kind, n, sum);"
        );
    }
    member.push_str("}\n");
    let mut t = format!("#include \"galamost/special.cuh\"\n{}", pair_terms_with(texts, n_types, &member));
    for (name, sums) in [("special_force", "FORCES"), ("special_force_full", "ALL_SUMS")] {
        let _ = writeln!(
            t,
            "extern \"C\" __global__ void __launch_bounds__(128) {name}(SpecialArgs a) {{\n\
             await_launches();\nspecial_loop<PairTerms, {terms}, {sums}>(a);\n}}"
        );
    }
    SourceUnit::new("special pairs", &t, precision)
}

/// Returns the name of the links of a list in names of device functions.
pub(super) fn link_name(list: LinkList) -> &'static str {
    match list {
        LinkList::Bonds => "bond",
        LinkList::Angles => "angle",
        LinkList::Dihedrals | LinkList::Impropers => "dihedral",
    }
}

/// Returns the struct `Potential` of a bonded potential; it needs `angles.cuh`.
fn bonded_potential(text: &str) -> String {
    format!(
        "namespace plugin {{\n{text}\n}}\n#line 1 \"bond_unit\"\n\
         struct Potential {{\ntypedef plugin::BondRow<real> Row;\n\
         static __device__ __forceinline__ Tuple2<real, real> eval(const BondInput<real>& input, const Row& row) {{\n\
         return plugin::bond_eval<real>(input, row);\n}}\n}};\n"
    )
}

/// Returns the loop of one bonded potential over the links of a list: the kernels `bond_force`, `bond_force_full` and
/// `bond_force_diagonal`, and with several ranks `bond_force_end`, which adds the sums of the blocks of all ranks.
pub fn bond_unit(name: &str, text: &str, list: LinkList, ranks: bool, precision: Precision) -> SourceUnit {
    let (link, potential) = (link_name(list), bonded_potential(text));
    let mut t = format!("#include \"galamost/angles.cuh\"\n{potential}");
    for (name, sums) in KERNELS {
        let _ = writeln!(
            t,
            "extern \"C\" __global__ void __launch_bounds__(128) bond_{name}(BondArgs a) {{ await_launches(); {link}_loop<Potential, {sums}>(a); }}"
        );
    }
    if ranks {
        t.push_str(
            "extern \"C\" __global__ void bond_force_end(BondArgs a) {\n\
             await_launches();\nif (!a.state.globals->halt) total_bonded_sums(a, (a.state.n_local + blockDim.x - 1u) / blockDim.x, blockDim.x);\n}\n",
        );
    }
    SourceUnit::new(name, &t, precision)
}

/// Returns the loop of several bonded potentials over the links of their lists: the kernel `bonds_force`. It adds in the order of the
/// potentials, so it has the bits of their kernels one after the other.
pub fn joint_bonds_unit(bonded: &[(&str, LinkList)], precision: Precision) -> SourceUnit {
    let mut t = String::from("#include \"galamost/angles.cuh\"\n");
    let (mut arguments, mut loops) = (vec![], String::new());
    for (k, (text, list)) in bonded.iter().enumerate() {
        let _ = writeln!(t, "namespace bonded{k} {{\n{}}}", bonded_potential(text));
        let _ = writeln!(loops, "{}_rows<bonded{k}::Potential, false>(bond{k}, i, sums);", link_name(*list));
        arguments.push(format!("BondArgs bond{k}"));
    }
    let _ = write!(
        t,
        "extern \"C\" __global__ void __launch_bounds__(128) bonds_force({}) {{\nawait_launches();\n\
         if (bond0.state.globals->halt) return;\n\
         double sums[7] = {{0, 0, 0, 0, 0, 0, 0}};\nconst u32 i = bonded_block(bond0) * blockDim.x + threadIdx.x;\n{loops}}}\n",
        arguments.join(", ")
    );
    SourceUnit::new("bonds", &t, precision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{awaiting_kernels, kernel_names};
    use std::collections::BTreeSet;

    #[test]
    fn kernels_of_a_step_may_begin_early() {
        let (mixed, none) = (Precision::Mixed, [String::new()]);
        let mut units = vec![special_unit(&none, 1, mixed)];
        for ranks in [false, true] {
            units.push(pair_unit(&none, 1, 1, ranks, mixed));
            units.push(staged_pair_unit(&none, 1, false, 1, ranks.then_some(Overlap::Split), mixed));
            units.push(bond_unit("bonds", "", LinkList::Bonds, ranks, mixed));
        }
        units.push(joint_bonds_unit(&[("", LinkList::Bonds), ("", LinkList::Angles)], mixed));
        for unit in units {
            let generated: BTreeSet<String> = kernel_names(&unit.text).into_iter().collect();
            assert!(!generated.is_empty());
            assert_eq!(awaiting_kernels(&unit).expect("no clashes"), generated, "{}", unit.name);
        }
    }
}
