//! Many-body dissipative particle dynamics.

mod component;
mod cpu;
mod device;
