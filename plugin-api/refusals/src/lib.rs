//! The tests of this crate see that the macros of `galamost-plugin-macros` refuse what they should, in the right words.
//!
//! They are a crate of their own, and `trybuild` is one of its dependencies in every build, because a procedural macro's tools for tests
//! would change how its dependencies are built: everything would be built once for programs and once more for tests.
