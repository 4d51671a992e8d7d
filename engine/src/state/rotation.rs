//! Rotation: conversion between the quantities of files and those of a run.
//!
//! A run stores a unit quaternion and the angular momentum in the space-fixed frame, which is constant for a free body.
//! Files and generators may give an axis (`orientation`) in place of the quaternion, and the angular velocity
//! (`rotation`). Output contains the same quantities as the input.

use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::snapshot::{Array, Values};
use galamost_plugin_api::vector::Vec3;
use std::collections::BTreeMap;
use tracing::warn;

type Arrays = BTreeMap<String, Array>;

fn reals<'a>(arrays: &'a Arrays, name: &str) -> Option<&'a [f64]> {
    match arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(v)) => Some(v),
        _ => None,
    }
}

fn rows<const N: usize>(values: &[f64]) -> impl Iterator<Item = [f64; N]> {
    values.as_chunks::<N>().0.iter().copied()
}

fn quaternion([x, y, z, w]: [f64; 4]) -> Quaternion<f64> {
    Quaternion::new(x, y, z, w)
}

fn array(width: u32, values: impl Iterator<Item = Vec<f64>>) -> Array {
    Array { width, values: Values::Real(values.flatten().collect()) }
}

/// Derives the missing arrays of a run from the given ones, and normalizes quaternions. A quaternion precedes an axis.
///
/// # Errors
/// Returns an error if an axis or a quaternion has length 0, or if an array has the wrong width.
pub fn complete(arrays: &mut Arrays) -> Result<()> {
    derive(arrays)?.iter().for_each(|warning| warn!("{warning}"));
    Ok(())
}

/// Like [`complete`]; returns the warnings.
fn derive(arrays: &mut Arrays) -> Result<Vec<String>> {
    let mut warnings = vec![];
    for (name, width) in [("orientation", 3), ("quaternion", 4), ("inert", 3), ("rotation", 3), ("angular_momentum", 3)]
    {
        if let Some(a) = arrays.get(name).filter(|a| a.width != width || matches!(a.values, Values::Int(_))) {
            let found = a.width;
            return Err(Error::input(format!(
                "`{name}` has {found} values for each particle, not {width} real numbers"
            )));
        }
    }
    for (name, width) in [("orientation", 3), ("quaternion", 4)] {
        let Some(values) = reals(arrays, name) else { continue };
        let lengths: Vec<f64> = values.chunks(width).map(|v| v.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
        let without = |l: &f64| !(l.is_finite() && *l > 0.0);
        if let Some(tag) = lengths.iter().position(without) {
            let n = lengths.iter().filter(|l| without(l)).count();
            return Err(Error::input(format!(
                "`{name}` has no length for {n} of {} particles; the first has tag {tag}",
                lengths.len()
            )));
        }
        let off = lengths.iter().filter(|l| (*l - 1.0).abs() > 1e-3).count();
        if off > 0 {
            let n = lengths.len();
            warnings.push(format!("`{name}` is not of length 1 for {off} of {n} particles: it is normalized"));
        }
        if let Some(Array { values: Values::Real(v), .. }) = arrays.get_mut(name) {
            v.chunks_mut(width).zip(lengths).for_each(|(v, l)| v.iter_mut().for_each(|x| *x /= l));
        }
    }
    if let (Some(q), Some(axes)) = (reals(arrays, "quaternion"), reals(arrays, "orientation")) {
        let deviates = |q: [f64; 4], axis: [f64; 3]| (quaternion(q).axis() - Vec3::from(axis)).norm() > 1e-3;
        let both = rows::<4>(q).zip(rows::<3>(axes)).enumerate();
        let tags: Vec<usize> = both.filter(|(_, (q, axis))| deviates(*q, *axis)).map(|(tag, _)| tag).collect();
        // no error: LAMMPS has particles with a dipole beside the orientation of their body
        if let Some(first) = tags.first() {
            warnings.push(format!(
                "`orientation` is not the z axis of `quaternion` for {} of {} particles, the first with tag {first}: `quaternion` is \
                 used; remove the array that is wrong from the input",
                tags.len(),
                q.len() / 4
            ));
        }
    }
    if !arrays.contains_key("quaternion")
        && let Some(axes) = reals(arrays, "orientation")
    {
        let of_axis = |a: [f64; 3]| {
            let q = Quaternion::of_axis(Vec3::from(a));
            vec![q.x, q.y, q.z, q.w]
        };
        let values = array(4, rows::<3>(axes).map(of_axis));
        arrays.insert("quaternion".into(), values);
    }
    let (q, inert, rate) = (reals(arrays, "quaternion"), reals(arrays, "inert"), reals(arrays, "rotation"));
    if let (Some(q), Some(inert), Some(rate), false) = (q, inert, rate, arrays.contains_key("angular_momentum")) {
        let momentum = rows::<4>(q).zip(rows::<3>(inert)).zip(rows::<3>(rate)).map(|((q, inert), rate)| {
            let q = quaternion(q);
            let w = q.rotate_back(Vec3::from(rate)).f64();
            q.rotate(Vec3::from(std::array::from_fn::<f64, 3, _>(|k| inert[k] * w[k]))).f64().to_vec()
        });
        let values = array(3, momentum);
        arrays.insert("angular_momentum".into(), values);
    }
    Ok(warnings)
}

/// Derives `angular_momentum` from `rotation`, or `rotation` from it, where quaternions and moments of inertia are given: formats
/// store one or the other. Returns warnings about the given arrays.
pub fn complete_motion(arrays: &mut Arrays) -> Vec<String> {
    if arrays.contains_key("angular_momentum") && !arrays.contains_key("rotation") {
        describe(arrays, false);
    } else if arrays.contains_key("rotation") && arrays.contains_key("quaternion") {
        // a wrong width, or a quaternion without length, is an error of a run, not of a conversion
        let mut completed = arrays.clone();
        if let Ok(warnings) = derive(&mut completed) {
            *arrays = completed;
            return warnings;
        }
    }
    vec![]
}

/// Derives the quantities of files from those of a run: `rotation`, and `orientation` if the system started with axes.
pub fn describe(arrays: &mut Arrays, axes: bool) {
    if axes && let Some(q) = reals(arrays, "quaternion") {
        let values = array(3, rows::<4>(q).map(|q| quaternion(q).axis().f64().to_vec()));
        arrays.insert("orientation".into(), values);
    }
    let (q, inert, l) = (reals(arrays, "quaternion"), reals(arrays, "inert"), reals(arrays, "angular_momentum"));
    if let (Some(q), Some(inert), Some(l)) = (q, inert, l) {
        let rate = rows::<4>(q).zip(rows::<3>(inert)).zip(rows::<3>(l)).map(|((q, inert), l)| {
            let q = quaternion(q);
            let l = q.rotate_back(Vec3::from(l)).f64();
            let w = std::array::from_fn::<f64, 3, _>(|k| if inert[k] > 0.0 { l[k] / inert[k] } else { 0.0 });
            q.rotate(Vec3::from(w)).f64().to_vec()
        });
        let values = array(3, rate);
        arrays.insert("rotation".into(), values);
    }
}

/// Returns the rotational kinetic energy of one particle: Σ L'²/(2 I) with L' in the body-fixed frame.
pub fn energy(q: Quaternion<f64>, momentum: Vec3<f64>, inertia: Vec3<f64>) -> f64 {
    let l = q.rotate_back(momentum).f64();
    l.into_iter().zip(inertia.f64()).filter(|(_, i)| *i > 0.0).map(|(l, i)| 0.5 * l * l / i).sum()
}

/// Arrays of rotation that integrators change.
pub const CHANGING: [&str; 2] = ["quaternion", "angular_momentum"];

/// Returns the error of a run in which the rotation of a particle is undefined. Integrators report displacements that are NaN, but a
/// rotation that is NaN moves no particle unless forces depend on orientations.
pub fn undefined(step: u64, tag: Option<u32>) -> Error {
    let what = "an orientation or angular momentum is NaN or infinite: torques are too large, or dt is too long for them or for the \
                time constant of rotation";
    Error::Unstable { step, tag, what: what.into() }
}

/// Checks that the numbers of an array of rotation, `width` for each particle in tag order, are finite.
///
/// # Errors
/// Returns [`undefined`] with the first particle whose numbers are not.
pub fn check(step: u64, values: &[f64], width: u32) -> Result<()> {
    match values.chunks(width as usize).position(|v| !v.iter().all(|x| x.is_finite())) {
        None => Ok(()),
        Some(tag) => Err(undefined(step, Some(tag as u32))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_and_rates_come_back() {
        let real = |width, values: &[f64]| Array { width, values: Values::Real(values.to_vec()) };
        let mut arrays = Arrays::new();
        let (axis, rate) = ([0.6, 0.0, 0.8, 0.0, 0.0, -1.0], [0.4, 0.5, -0.3, 1.0, 2.0, 0.0]);
        arrays.insert("orientation".into(), real(3, &axis));
        arrays.insert("rotation".into(), real(3, &rate));
        // the third moment is that about the axis: the rates have no such part
        arrays.insert("inert".into(), real(3, &[2.0, 2.0, 0.0].repeat(2)));
        complete(&mut arrays).expect("sound");
        arrays.remove("orientation");
        arrays.remove("rotation");
        describe(&mut arrays, true);
        for (name, was) in [("orientation", axis), ("rotation", rate)] {
            let is = reals(&arrays, name).expect("made again");
            for (a, b) in is.iter().zip(was) {
                assert!((a - b).abs() < 1e-14, "{name}: {is:?} was {was:?}");
            }
        }
        let l = reals(&arrays, "angular_momentum").expect("made");
        let q = quaternion(rows::<4>(reals(&arrays, "quaternion").expect("made")).next().expect("one"));
        for (name, bad) in [("orientation", [0.0; 3].to_vec()), ("quaternion", [0.0; 4].to_vec())] {
            let mut arrays = Arrays::new();
            arrays.insert(name.into(), real(bad.len() as u32, &bad));
            let e = complete(&mut arrays).expect_err("no direction").to_string();
            assert!(e.contains("no length for 1 of 1 particles"), "{e}");
        }
        let mut arrays = Arrays::from([("quaternion".into(), real(4, &[0.0, 3.0, 0.0, 4.0]))]);
        complete(&mut arrays).expect("sound");
        assert_eq!(reals(&arrays, "quaternion"), Some([0.0, 0.6, 0.0, 0.8].as_slice()));
        // a quarter turn about x: the body's z is −y
        let half = std::f64::consts::FRAC_1_SQRT_2;
        for (second, said) in [([0.0, -1.0, 0.0], 0), ([0.0, 1.0, 0.0], 1)] {
            let mut arrays = Arrays::from([
                ("quaternion".into(), real(4, &[0.0, 0.0, 0.0, 1.0, half, 0.0, 0.0, half])),
                ("orientation".into(), real(3, &[[0.0, 0.0, 1.0], second].concat())),
            ]);
            let warnings = derive(&mut arrays).expect("sound");
            assert_eq!(warnings.len(), said, "{warnings:?}");
            let expected = "not the z axis of `quaternion` for 1 of 2 particles, the first with tag 1";
            assert!(warnings.iter().all(|w| w.contains(expected)), "{warnings:?}");
        }
        let e = energy(q, Vec3::new(l[0], l[1], l[2]), Vec3::new(2.0, 2.0, 0.0));
        assert!((e - (0.16 + 0.25 + 0.09)).abs() < 1e-14, "{e}");
    }
}
