//! Thermostats that change the velocities of pairs one after the other: Lowe-Andersen, and Shardlow's splitting of DPD.

mod cpu;
mod device;
mod law;
mod lowe;
mod pairs;
mod shardlow;
