//! Initial orientations and angular momenta.

use galamost_plugin_api::philox::{RandomKey, normal3};
use galamost_plugin_api::prelude::*;

/// Sets orientations, moments of inertia and thermal angular momenta of particles.
///
/// Orientations are uniform over all rotations, or all body z axes point along `axis`. About each body axis k with a
/// moment of inertia I_k, the angular momentum is normal with variance kT I_k; with kT = 0 particles start at rest. The
/// random numbers are keyed by the seed and the tag.
///
/// The component sets the arrays `quaternion`, `inert` and `angular_momentum`. Particles outside the group keep their
/// values; if they have none, they get the identity rotation and moments of inertia of 0 and do not rotate. Requires a
/// three-dimensional system. Place it after the generator that creates the particles.
///
/// ```ron
/// Orientations(inertia: (0.1, 0.1, 0.0), kT: 1.0)
/// ```
#[component(Generator, "Orientations")]
#[derive(Clone, Debug, Params)]
pub struct Orientations {
    /// I_x, I_y, I_z, moments of inertia about the body axes; 0: no rotation about this axis. I_x and I_y must be both 0 or both
    /// above 0, and not all three may be 0.
    #[param(unit = "mass × length²", at_least = 0.0)]
    inertia: [f64; 3],
    /// kT, rotational temperature.
    #[param(name = "kT", unit = "energy", at_least = 0.0, default = 0.0)]
    kt: f64,
    /// Direction of all body z axes; random orientations if omitted.
    axis: Option<[f64; 3]>,
    /// Particles to set.
    #[param(default = Group::All)]
    group: Group,
}

/// Removes and returns the array `name`, or returns an array with the given row for every particle.
fn rows<const N: usize>(s: &mut Snapshot, name: &str, row: [f64; N]) -> Result<Vec<[f64; N]>> {
    let n = s.len();
    match s.arrays.remove(name) {
        Some(Array { width, values: Values::Real(v) }) if width as usize == N && v.len() == N * n => {
            Ok(v.as_chunks::<N>().0.to_vec())
        }
        Some(_) => Err(Error::input(format!("the array `{name}` must have {N} numbers per particle"))),
        None => Ok(vec![row; n]),
    }
}

impl Generator for Orientations {
    const TRICLINIC: bool = true;

    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if s.is_empty() {
            return Err(Error::input("Orientations needs particles: place it after the generator that creates them"));
        }
        let [x, y, z] = self.inertia;
        if s.dimensions == 2 {
            return Err(Error::input("rotation requires a three-dimensional system"));
        }
        if (x == 0.0) != (y == 0.0) {
            return Err(Error::input(
                "`inertia`: the moments about x and y must be both 0 or both above 0 (a rod lies along z)",
            ));
        }
        if (x, y, z) == (0.0, 0.0, 0.0) {
            return Err(Error::input("`inertia`: at least one moment must be above 0"));
        }
        let along = match self.axis.map(Vec3::<f64>::from) {
            Some(a) if a.norm() == 0.0 => return Err(Error::input("`axis` must not be the zero vector")),
            along => along,
        };
        // the orientation of a body follows from its beads
        if s.arrays.contains_key("bodies.center") {
            return Err(Error::input("the state has rigid bodies; place Orientations before Bodies"));
        }
        let group = self.group.need(&SystemInfo::of(s))?;
        let mut quaternion = rows(s, "quaternion", [0.0, 0.0, 0.0, 1.0])?;
        let mut inert = rows(s, "inert", [0.0; 3])?;
        let mut momentum = rows(s, "angular_momentum", [0.0; 3])?;
        let key = RandomKey::new(context.seed, context.component);
        let mut members = 0;
        for tag in (0..s.len()).filter(|tag| group.contains(*tag as u32, s)) {
            members += 1;
            let normal = |draw: u32| normal3::<f64>(key.single(0, tag as u32, draw));
            let (u, w) = (normal(0), normal(1).x);
            // four normal numbers have a uniform direction in four dimensions
            let q = match along {
                None => Quaternion::new(u.x, u.y, u.z, w).normalized(),
                Some(axis) => Quaternion::of_axis(axis),
            };
            let push = normal(2).f64();
            let body: [f64; 3] = std::array::from_fn(|k| push[k] * (self.kt * self.inertia[k]).sqrt());
            quaternion[tag] = [q.x, q.y, q.z, q.w];
            inert[tag] = self.inertia;
            momentum[tag] = q.rotate(Vec3::from(body)).f64();
        }
        if members == 0 {
            return Err(Error::input("there are no particles in its group"));
        }
        let mut put = |name: &str, width, values: Vec<f64>| {
            s.arrays.insert(name.into(), Array { width, values: Values::Real(values) });
        };
        put("quaternion", 4, quaternion.into_flattened());
        put("inert", 3, inert.into_flattened());
        put("angular_momentum", 3, momentum.into_flattened());
        // these arrays would contradict `quaternion` and `angular_momentum`
        s.arrays.remove("orientation");
        s.arrays.remove("rotation");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(n: usize) -> Snapshot {
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        for _ in 0..n {
            s.push(a, [0.0; 3]);
        }
        s
    }

    fn real<'a>(s: &'a Snapshot, name: &str) -> &'a [f64] {
        match &s.arrays[name].values {
            Values::Real(v) => v,
            Values::Int(_) => panic!("{name} has integers"),
        }
    }

    #[test]
    fn orientations_are_uniform_and_rotation_has_its_temperature() {
        const N: usize = 20_000;
        let mut s = system(N);
        let inertia = [0.5, 2.0, 1.0];
        let mut g = Orientations { inertia, kt: 1.5, axis: None, group: Group::All };
        g.generate(&GeneratorContext { seed: 3, component: 1, ..Default::default() }, &mut s).expect("generated");
        let q: Vec<Quaternion<f64>> = real(&s, "quaternion")
            .as_chunks::<4>()
            .0
            .iter()
            .map(|[x, y, z, w]| Quaternion::new(*x, *y, *z, *w))
            .collect();
        let error = (N as f64).sqrt().recip();
        for axis in [Vec3::new(1.0, 0.0, 0.0), Vec3::new(0.0, 0.0, 1.0)] {
            let z: Vec<f64> = q.iter().map(|q| q.rotate(axis).z).collect();
            let (mean, square) = (z.iter().sum::<f64>() / N as f64, z.iter().map(|z| z * z).sum::<f64>() / N as f64);
            // a component of a random direction is uniform in [−1, 1]
            assert!(mean.abs() < 4.0 * error * (1.0f64 / 3.0).sqrt(), "{mean}");
            assert!((square - 1.0 / 3.0).abs() < 4.0 * error * (4.0f64 / 45.0).sqrt(), "{square}");
        }
        for (k, moment) in inertia.into_iter().enumerate() {
            let l = real(&s, "angular_momentum").as_chunks::<3>().0.iter().zip(&q);
            let body = l.map(|(l, q)| q.rotate_back(Vec3::from(*l)).f64()[k]);
            let kt = body.map(|l| l * l / moment).sum::<f64>() / N as f64;
            assert!((kt - 1.5).abs() < 4.0 * error * 1.5 * 2f64.sqrt(), "axis {k}: kT = {kt}");
        }
    }

    #[test]
    fn one_direction_and_a_group() {
        let mut s = system(10);
        let group = Group::Tags { first: 0, last: 3 };
        let mut g = Orientations { inertia: [1.0, 1.0, 0.0], kt: 0.0, axis: Some([0.0, 3.0, 0.0]), group };
        g.generate(&GeneratorContext::default(), &mut s).expect("generated");
        let q = &real(&s, "quaternion")[12..16];
        assert!((Quaternion::new(q[0], q[1], q[2], q[3]).axis().y - 1.0).abs() < 1e-15, "{q:?}");
        assert_eq!(real(&s, "quaternion")[16..20], [0.0, 0.0, 0.0, 1.0]);
        assert_eq!((real(&s, "inert")[9], real(&s, "inert")[12]), (1.0, 0.0));
        g.inertia = [1.0, 0.0, 0.0];
        assert!(g.generate(&GeneratorContext::default(), &mut s).is_err());
        g.inertia = [1.0, 1.0, 0.0];
        s.dimensions = 2;
        assert!(g.generate(&GeneratorContext::default(), &mut s).is_err());
    }
}
