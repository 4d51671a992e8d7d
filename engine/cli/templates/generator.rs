//! A generator: a straight row of particles.
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// A straight row of bonded particles along x, in the middle of a cubic box.
///
/// ```ron
/// MyComponent(n: 20, spacing: 0.9, length: 30.0)
/// ```
#[component(Generator, "MyComponent")]
#[derive(Clone, Debug, Params)]
pub struct MyComponent {
    /// Number of particles.
    #[param(at_least = 1.0, at_most = 1000000.0)]
    n: u32,
    /// Distance of neighbors.
    #[param(unit = "length", above = 0.0)]
    spacing: f64,
    /// Length of the box.
    #[param(unit = "length", above = 0.0)]
    length: f64,
}

impl Generator for MyComponent {
    fn generate(&mut self, _: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if !s.is_empty() {
            return Err(Error::input("MyComponent sets the box: it must be the first generator"));
        }
        let whole = self.spacing * f64::from(self.n);
        if whole > self.length {
            return Err(Error::input(format!("{} particles need a box of {whole}, it is {}", self.n, self.length)));
        }
        s.dimensions = 3;
        s.box_length = [self.length; 3];
        let kind = s.type_id("A");
        s.bond_types = vec!["A-A".into()];
        for k in 0..self.n {
            s.push(kind, [self.spacing * f64::from(k) - 0.5 * whole, 0.0, 0.0]);
            if k > 0 {
                s.bonds.push(Link { kind: 0, tags: [k - 1, k] });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn particles_and_bonds_are_there() {
        let mut s = Snapshot::default();
        let mut g = MyComponent { n: 5, spacing: 1.0, length: 10.0 };
        g.generate(&GeneratorContext::default(), &mut s).expect("it fits");
        assert_eq!((s.len(), s.bonds.len()), (5, 4));
        s.check().expect("a sound state");
        let mut too_long = MyComponent { n: 50, spacing: 1.0, length: 10.0 };
        assert!(too_long.generate(&GeneratorContext::default(), &mut Snapshot::default()).is_err());
    }
}
