use galamost_plugin_macros::{PairParams, Params, bond_potential, device_fn, pair_potential};

#[pair_potential("Integer")]
fn integer(r2: real, p: &Row<real>) -> (real, real) {
    (2 * p.a, p.a)
}

#[pair_potential("Suffix")]
fn suffix(r2: real, p: &Row<real>) -> (real, real) {
    (p.a, 2.0f32 * p.a)
}

#[bond_potential("Sum")]
fn sum(r2: real, p: &Row<real>) -> (real, real) {
    let x = p.a.sqrt() - 1;
    (x, x)
}

#[device_fn]
fn method(x: real) -> real {
    x.max(0)
}

#[device_fn]
fn condition(v: Vec3<real>) -> real {
    if v.x > 0 { 1.0 } else { v.y }
}

#[device_fn]
fn assigned(v: Vec3<real>) -> real {
    let mut x = v.x;
    x *= 2;
    x
}

#[device_fn]
fn declared() -> real {
    let x: real = 2;
    x
}

#[derive(PairParams)]
struct Row<real> {
    r#type: real,
}

#[derive(Params)]
struct Settings {
    r#where: f64,
}

fn main() {}
