//! Formats a frame.

use crate::forces::Quantities;
use galamost_plugin_api::prelude::{Snapshot, Values};
use galamost_plugin_api::snapshot::KNOWN_ARRAYS;
use galamost_text::{Shape, reals, whole};
use std::io::Write as _;

/// Options of the analyzer.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub velocity: bool,
    pub quantities: Quantities,
    pub unwrapped: bool,
    pub digits: Option<u32>,
}

/// Returns the property name that other programs use for an array, and a factor for its values.
fn property(name: &str) -> (&str, f64) {
    match name {
        "diameter" => ("radius", 0.5),
        "quaternion" => ("orientation", 1.0),
        "orientation" => ("axis", 1.0),
        "force" => ("forces", 1.0),
        "energy" => ("energies", 1.0),
        "torque" => ("torques", 1.0),
        "virial" => ("virials", 1.0),
        other => (other, 1.0),
    }
}

/// Formats a frame.
pub fn frame(s: &Snapshot, options: WriteOptions) -> Vec<u8> {
    let mut out = vec![];
    let flat = s.dimensions == 2;
    let shape = Shape::of(s).finite();
    let [[lx, ..], [xy, ly, _], [xz, yz, lz]] = shape.edges();
    let [ox, oy, oz] = shape.middle().map(|x| -x);
    let masses = s.mass.iter().any(|m| *m != 1.0);
    let names = KNOWN_ARRAYS.iter().map(|(n, w, ..)| (*n, *w)).chain(options.quantities.arrays());
    let arrays: Vec<_> = names.filter_map(|(n, w)| Some((n, w, s.arrays.get(n)?))).collect();
    // writing to memory does not fail
    let _ = write!(
        out,
        "{}\nLattice=\"{lx:?} 0.0 0.0 {xy:?} {ly:?} 0.0 {xz:?} {yz:?} {lz:?}\" Origin=\"{ox:?} {oy:?} {oz:?}\" Properties=species:S:1:pos:R:3",
        s.len()
    );
    if options.velocity {
        out.extend_from_slice(b":velo:R:3");
    }
    if masses {
        out.extend_from_slice(b":mass:R:1");
    }
    for (name, width, array) in &arrays {
        let kind = if matches!(array.values, Values::Int(_)) { 'I' } else { 'R' };
        let _ = write!(out, ":{}:{kind}:{width}", property(name).0);
    }
    let _ = writeln!(out, " pbc=\"T T {}\" Timestep={}", if flat { 'F' } else { 'T' }, s.step);
    for tag in 0..s.len() {
        out.extend_from_slice(s.types.get(s.type_id[tag] as usize).map_or(b"", |t| t.as_bytes()));
        let position = if options.unwrapped { s.unwrapped(tag) } else { s.position[tag] };
        reals(&mut out, &position, options.digits);
        if options.velocity {
            reals(&mut out, &s.velocity[tag], options.digits);
        }
        if masses {
            reals(&mut out, &[s.mass[tag]], options.digits);
        }
        for (name, width, array) in &arrays {
            let range = tag * *width as usize..(tag + 1) * *width as usize;
            match &array.values {
                Values::Int(v) => whole(&mut out, &v[range]),
                Values::Real(v) => {
                    let times = property(name).1;
                    v[range].iter().for_each(|x| reals(&mut out, &[x * times], options.digits));
                }
            }
        }
        out.push(b'\n');
    }
    out
}
