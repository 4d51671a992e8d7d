use galamost_plugin_macros::{particle_fn, scalar_fn};

#[particle_fn(Nve)]
fn not_offered(q: &mut Particle<real>) {
    q.mass = 1.0;
}

#[scalar_fn(Nve)]
fn no_particles(p: &mut Particle<f64>) {
    p.mass = 1.0;
}

#[particle_fn]
fn of_nobody(p: &mut Particle<real>) {
    p.mass = 1.0;
}

fn main() {}
