use galamost_plugin_macros::{device_fn, particle_fn, scalar_fn};

#[particle_fn(Nve)]
fn whole_particle(p: &mut Particle<real>, step: &Step<real>) {
    p.position += p.velocity * step.dt;
}

#[particle_fn(Nve)]
fn moves_the_position(position: &mut Vec3<real>, velocity: Vec3<real>, step: &Step<real>) {
    *position += velocity * step.dt;
}

#[particle_fn(Nve)]
fn changes_a_copy(position: Vec3<real>, velocity: &mut Vec3<real>, step: &Step<real>) {
    position += *velocity * step.dt;
}

#[particle_fn(Nve)]
fn changes_a_member_of_a_copy(velocity: &mut Vec3<real>, force: Vec3<real>) {
    force.x = 0.0;
    *velocity += force;
}

#[particle_fn(Nve)]
fn copies_explicitly(mut mass: real, velocity: &mut Vec3<real>) {
    mass *= 2.0;
    *velocity *= mass;
}

#[particle_fn(Nve)]
fn never_moves(displacement: Vec3<real>, velocity: &mut Vec3<real>) {
    *velocity += displacement;
}

#[particle_fn(Nve)]
fn quaternion_of_another_type(quaternion: &mut Vec3<real>) {
    *quaternion = Vec3::zero();
}

#[particle_fn(Nve)]
fn without_effect(velocity: Vec3<real>, g: &State) {
    let v = velocity * 2.0;
}

#[particle_fn(Nve)]
fn changes_the_state(velocity: &mut Vec3<real>, g: &State) {
    g.steps += 1;
    *velocity *= g.scale as real;
}

#[device_fn]
fn helper(displacement: Vec3<real>, v: Vec3<real>, dt: real) {
    displacement = v * dt;
}

#[scalar_fn(Nve)]
fn no_particles(velocity: &mut Vec3<f64>) {
    velocity.x = 1.0;
}

#[scalar_fn(Nve)]
fn sets_the_virial(virial: &mut [f64; 3]) {
    virial[0] = 0.0;
}

#[scalar_fn(Nve)]
fn shear_and_pressure(virial: &[f64; 3], shear_offset: &mut f64) {
    *shear_offset += virial[0];
}

#[particle_fn]
fn of_nobody(velocity: &mut Vec3<real>) {
    *velocity = Vec3::zero();
}

fn main() {}
