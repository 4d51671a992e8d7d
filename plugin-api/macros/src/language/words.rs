//! Reserved names of C++ and of the engine's headers, and how Rust names avoid them.

/// Keywords of C++, and macros that may be defined where a unit is compiled.
const CXX_WORDS: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    // the number type
    "real",
    // macros of C, POSIX, CUDA and of the emulated device
    "EOF",
    "FP_INFINITE",
    "FP_NAN",
    "FP_NORMAL",
    "FP_SUBNORMAL",
    "FP_ZERO",
    "HUGE_VAL",
    "HUGE_VALF",
    "INFINITY",
    "INT_MAX",
    "INT_MIN",
    "MATH_ERREXCEPT",
    "MATH_ERRNO",
    "M_1_PI",
    "M_2_PI",
    "M_2_SQRTPI",
    "M_E",
    "M_LN10",
    "M_LN2",
    "M_LOG10E",
    "M_LOG2E",
    "M_PI",
    "M_PI_2",
    "M_PI_4",
    "M_SQRT1_2",
    "M_SQRT2",
    "NAN",
    "NULL",
    "RAND_MAX",
    "assert",
    "blockDim",
    "blockIdx",
    "errno",
    "far",
    "gridDim",
    "linux",
    "major",
    "minor",
    "near",
    "offsetof",
    "signbit",
    "stderr",
    "stdin",
    "stdout",
    "threadIdx",
    "unix",
    "warpSize",
];

/// Names that the engine's headers and generated code define, besides those that begin with `device_`.
const HEADER_WORDS: &[&str] = &[
    "Accumulator",
    "AllRows",
    "Arrival",
    "BondArgs",
    "BondInput",
    "BondRow",
    "BoxScale",
    "Extra",
    "InputOf",
    "Neighbor",
    "OrientedInput",
    "PairArgs",
    "PairInput",
    "PairRow",
    "PairTerm",
    "Particle",
    "Partner",
    "PhaseArgs",
    "Plain",
    "PlainRow",
    "PlainType",
    "PosType",
    "Quanta",
    "QuarterTurns",
    "Quaternion",
    "Random",
    "RandomKey",
    "RankEpoch",
    "RankRows",
    "Resident",
    "StagedPosition",
    "StagedRow",
    "State",
    "Step",
    "Truth",
    "Tuple2",
    "Tuple3",
    "Tuple4",
    "Tuple5",
    "Tuple6",
    "Vec3",
    "Vec4",
    "VirialSum",
    "Whole",
    "Words",
    "bond_eval",
    "load",
    "main",
    "pair_eval",
    "state",
    "std",
    "tuple",
    "u32",
    "u64",
];

/// Returns a name without the prefix `r#` of a raw identifier.
pub fn plain(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// Replaces non-ASCII letters, which C++ compilers treat differently, by their code: `ε` becomes `u3b5`.
pub fn ascii(name: &str) -> String {
    plain(name).chars().map(|c| if c.is_ascii() { c.to_string() } else { format!("u{:x}", u32::from(c)) }).collect()
}

/// Returns the C++ name of a member. Keywords get a trailing `_`; a name that ends like an escaped one gets another `_`, so
/// two names never become one.
pub fn cxx_field(name: &str) -> String {
    let name = ascii(name);
    if CXX_WORDS.contains(&name.trim_end_matches('_')) { format!("{name}_") } else { name }
}

/// Returns whether a function or struct can keep this name in C++.
pub fn is_free(name: &str) -> bool {
    let name = plain(name);
    name.is_ascii() && !CXX_WORDS.contains(&name) && !HEADER_WORDS.contains(&name) && !name.starts_with("device_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_names_avoid_keywords_and_each_other() {
        for (rust, cxx) in
            [("x", "x"), ("int", "int_"), ("int_", "int__"), ("r#type", "type"), ("M_PI", "M_PI_"), ("ε", "u3b5")]
        {
            assert_eq!(cxx_field(rust), cxx);
        }
        assert!(is_free("load_all") && !is_free("load") && !is_free("ε") && !is_free("device_exp"));
    }
    #[test]
    fn structs_of_the_headers_are_known() {
        let headers = [
            include_str!("../../../../kernels/galamost/types.cuh"),
            include_str!("../../../../kernels/galamost/philox.cuh"),
            include_str!("../../../../kernels/galamost/state.cuh"),
            include_str!("../../../../kernels/galamost/pair.cuh"),
            include_str!("../../../../kernels/galamost/staged_pair.cuh"),
            include_str!("../../../../kernels/galamost/bonded.cuh"),
            include_str!("../../../../kernels/galamost/virial.cuh"),
            include_str!("../../../../kernels/galamost/integrate.cuh"),
            include_str!("../../../../kernels/galamost/ranks_barrier.cuh"),
            include_str!("../../../../kernels/galamost/ranks_phase.cuh"),
        ];
        for part in headers.iter().flat_map(|h| h.split("struct ").skip(1)) {
            let part = part.strip_prefix("alignas(16) ").or(part.strip_prefix("alignas(32) ")).unwrap_or(part);
            let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(!is_free(&name), "the headers define `{name}`: add it to HEADER_WORDS");
        }
    }
}
