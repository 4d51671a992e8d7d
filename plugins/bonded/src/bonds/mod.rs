//! Bond potentials: FENE, harmonic, Morse, quartic and tether.

mod fene;
mod harmonic;
mod morse;
mod quartic;
mod tether;
