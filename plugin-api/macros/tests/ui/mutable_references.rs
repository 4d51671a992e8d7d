use galamost_plugin_macros::device_fn;

#[device_fn]
fn alias(p: &mut Particle<real>) {
    let mut v = &mut p.velocity;
    v.x = 1.0;
}

#[device_fn]
fn another_name(p: &mut Particle<real>) {
    let mut q = p;
    q.mass = 1.0;
}

#[device_fn]
fn returned(p: &Particle<real>) -> &real {
    &p.mass
}

#[device_fn]
fn assigned_to_a_value(x: real, y: real) {
    (if x > y { x } else { y }) = 1.0;
}

fn main() {}
