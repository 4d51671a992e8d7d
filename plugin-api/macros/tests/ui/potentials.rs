use galamost_plugin_macros::{angle_potential, bond_potential, dihedral_potential, pair_potential};

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

fn main() {}
