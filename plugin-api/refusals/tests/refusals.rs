//! What the macros refuse, with exact messages and places: each file of `ui/` is compiled, and what rustc says must be
//! the `.stderr` file beside it.
//!
//! After a change of a message run `TRYBUILD=overwrite cargo test --release -p galamost-refusals`
//! and read the difference. The files name only the macros: nothing but their refusals is left of the functions in
//! them, so that the rest of the plugin API need not be built.

#[test]
fn refusals_name_the_place_and_the_reason() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
