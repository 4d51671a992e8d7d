//! Potentials of coarse-grained particles and colloids.

mod ashbaugh_hatch;
mod dlvo;
mod lj_gauss;
mod wang_frenkel;
