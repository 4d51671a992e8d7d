//! Batched kernels: source text in which one launch does the launches of several replicas.
//!
//! Each kernel `k(Args a)` of a unit becomes a device function, and a kernel of the same name takes an array of calls, one
//! for each z of its grid: the number of a replica and its arguments. It returns at once for a replica that is not active.
//! The body is the same text, so it computes the same bits.

use crate::device::SourceUnit;
use crate::device::declaration::{Declaration, MARKER, flattened};
use galamost_plugin_api::error::{Error, Result};
use std::fmt::Write as _;

/// The kernel that writes the layouts of the arguments of all kernels of a batched unit, in the order of the unit.
pub const LAYOUTS: &str = "batched_layouts";

/// Templates of the wrappers. A kernel needs more registers where the address of its arguments takes some. Arguments are read through a reference: a copy of a struct that is indexed by a loop would be in
/// local memory.
const PRELUDE: &str = "\
#define GALAMOST_BATCHED
#ifdef __CUDACC_RTC__
#define BATCHED_OFFSET(type, member) ((unsigned long long)__INTADDR__(&((type*)0)->member))
#else
#define BATCHED_OFFSET(type, member) __builtin_offsetof(type, member)
#endif
template <class T> struct BatchedCall {
    unsigned int replica;
    alignas(16) T arguments;
};
template <class T, bool IS_CLASS = __is_class(T)> struct BatchedArgument { typedef T type; };
template <class T> struct BatchedArgument<T, true> { typedef const T& type; };
";

/// A batched unit and its kernels in order, with the number of their arguments.
pub struct Batched {
    pub unit: SourceUnit,
    pub kernels: Vec<(String, usize)>,
}

/// Returns the batched kernels of a unit.
///
/// # Errors
/// Returns an error if the declaration of a kernel is not understood.
pub fn batched(unit: &SourceUnit) -> Result<Batched> {
    let flat = flattened(unit)?;
    let mut text = String::from(PRELUDE);
    let mut kernels = vec![];
    let mut rest = flat.as_str();
    while let Some(at) = rest.find(MARKER) {
        text.push_str(&rest[..at]);
        let kernel = Declaration::parse(&rest[at + MARKER.len()..])
            .ok_or_else(|| Error::Run(format!("{}: the declaration of a kernel is not understood", unit.name)))?;
        text.push_str(&kernel.wrapped());
        rest = kernel.rest;
        kernels.push((kernel.name.to_string(), kernel.parameters.len()));
    }
    text.push_str(rest);
    text.push_str(&layouts(&kernels));
    let unit = SourceUnit { name: format!("{} of replicas", unit.name), text, ..unit.clone() };
    Ok(Batched { unit, kernels })
}

impl Declaration<'_> {
    /// Returns the kernel that calls the body for each replica, and the declaration of the body.
    fn wrapped(&self) -> String {
        let name = self.name;
        let (mut members, mut values) = (String::new(), vec![]);
        for (k, (kind, _)) in self.parameters.iter().enumerate() {
            let _ = write!(members, "{kind} p{k}; ");
            values.push(format!("call.arguments.p{k}"));
        }
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|(kind, name)| format!("typename BatchedArgument<{kind}>::type {name}"))
            .collect();
        let (parameters, values) = (parameters.join(", "), values.join(", "));
        format!(
            "struct {name}_arguments {{ {members}}};\n\
             __device__ __forceinline__ void {name}_of_replica({parameters});\n\
             {MARKER} {} {name}(const BatchedCall<{name}_arguments>* __restrict__ calls, const unsigned int* __restrict__ active) {{\n\
             const BatchedCall<{name}_arguments>& call = calls[blockIdx.z];\n\
             if (active[call.replica] != 0u) {name}_of_replica({values});\n}}\n\
             __device__ __forceinline__ void {name}_of_replica({parameters}) ",
            self.bounds
        )
    }
}

/// Returns the kernel [`LAYOUTS`]. For each kernel it writes the size of a call, and offset and size of each argument in it.
fn layouts(kernels: &[(String, usize)]) -> String {
    let mut t = format!("{MARKER} {LAYOUTS}(unsigned int* out) {{\n");
    for (name, parameters) in kernels {
        let call = format!("BatchedCall<{name}_arguments>");
        let _ = writeln!(t, "*out++ = (unsigned int)sizeof({call});");
        for k in 0..*parameters {
            let _ = writeln!(
                t,
                "*out++ = (unsigned int)BATCHED_OFFSET({call}, arguments.p{k}); *out++ = (unsigned int)sizeof({name}_arguments::p{k});"
            );
        }
    }
    t + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::kernel_names;
    use galamost_plugin_api::precision::Precision;

    #[test]
    fn every_kernel_gets_a_wrapper() {
        let text = "#include \"galamost/system.cuh\"\n\
            extern \"C\" __global__ void __launch_bounds__(128, 2) mine(const Sums* s, u32 n) {\nif (n) return;\n}\n";
        let unit = SourceUnit::new("unit", text, Precision::Mixed);
        let b = batched(&unit).expect("understood");
        let names =
            ["clear_forces", "scale_positions", "end_scaling", "total_virial", "next_step", "motion_sums", "mine"];
        assert_eq!(b.kernels.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), names);
        assert_eq!(b.kernels[6].1, 2);
        assert_eq!(kernel_names(&b.unit.text).len(), names.len() + 1);
        assert!(
            !b.unit.text.contains("#include")
                && b.unit.text.contains("struct mine_arguments { const Sums* p0; u32 p1; }")
        );
        assert!(b.unit.text.contains("__launch_bounds__(128, 2) mine(const BatchedCall<mine_arguments>*"));
        let broken = SourceUnit::new("unit", "extern \"C\" __global__ void k(int a);", Precision::Mixed);
        assert!(batched(&broken).is_err());
    }
}
