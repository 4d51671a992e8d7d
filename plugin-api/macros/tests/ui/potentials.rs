use galamost_plugin_macros::{
    angle_potential, bond_potential, dihedral_potential, oriented_pair_potential, pair_potential,
};

#[pair_potential("NoRow")]
fn no_row(r2: real) -> (real, real) {
    (r2, r2)
}

#[pair_potential("NotOffered")]
fn not_offered(theta: real, p: &Row<real>) -> (real, real) {
    (theta, theta)
}

#[bond_potential("OneNumber")]
fn one_number(r2: real, p: &Row<real>) -> real {
    r2
}

#[angle_potential("NotOffered")]
fn distance(r2: real, p: &Row<real>) -> (real, real) {
    (r2, r2)
}

#[dihedral_potential(NoString)]
fn no_string(phi: real, p: &Row<real>) -> (real, real) {
    (phi, phi)
}

#[pair_potential("UnknownKey", rows = Row)]
fn unknown_key(r2: real, p: &Row<real>) -> (real, real) {
    (r2, r2)
}

#[pair_potential("Number")]
fn number(r2: f64, p: &Row<real>) -> (real, real) {
    (r2, p.k)
}

#[oriented_pair_potential("Distance")]
fn distance(r: real, axis_i: Vec3<real>, p: &Row<real>) -> (Vec3<real>, Vec3<real>, real) {
    (axis_i, axis_i, r * p.k)
}

#[oriented_pair_potential("Central")]
fn central(r: Vec3<real>, p: &Row<real>) -> (real, real) {
    (p.k, r.norm())
}

#[oriented_pair_potential("Noise")]
fn noise(r: Vec3<real>, zeta: real, p: &Row<real>) -> (Vec3<real>, Vec3<real>, real) {
    (r, r * zeta, p.k)
}

#[bond_potential("")]
fn empty_name(r2: real, p: &Row<real>) -> (real, real) {
    (r2, p.k)
}

fn main() {}
