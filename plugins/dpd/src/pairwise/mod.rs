//! Thermostats that update the velocities of one pair after the other: Lowe-Andersen and Shardlow's splitting of DPD.

mod collision;
mod cpu;
mod device;
mod lowe_andersen;
mod shardlow;
mod updater;
