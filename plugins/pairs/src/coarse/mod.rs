//! Potentials of coarse-grained particles.

mod ashbaugh_hatch;
mod lj_gauss;
mod wang_frenkel;
