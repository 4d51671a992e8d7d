//! Bond potentials: harmonic, FENE, Morse, quartic.

mod fene;
mod harmonic;
mod morse;
mod quartic;
