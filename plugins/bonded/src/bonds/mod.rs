//! Bond potentials: FENE, harmonic, Morse and quartic.

mod fene;
mod harmonic;
mod morse;
mod quartic;
