//! A generator: a straight chain of particles.
use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// A straight chain of bonded particles along x, at the center of a cubic box.
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
    /// Bond length.
    #[param(unit = "length", above = 0.0)]
    spacing: f64,
    /// Box length.
    #[param(unit = "length", above = 0.0)]
    length: f64,
}

impl Generator for MyComponent {
    fn generate(&mut self, _: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if !s.is_empty() {
            return Err(Error::input("MyComponent sets the box and must be the first generator"));
        }
        let length = self.spacing * f64::from(self.n);
        if length > self.length {
            let (n, given) = (self.n, self.length);
            return Err(Error::input(format!("{n} particles need a box length of {length}; `length` is {given}")));
        }
        s.dimensions = 3;
        s.box_length = [self.length; 3];
        let particle_type = s.type_id("A");
        s.bond_types = vec!["A-A".into()];
        for k in 0..self.n {
            s.push(particle_type, [self.spacing * f64::from(k) - 0.5 * length, 0.0, 0.0]);
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
    fn a_chain_is_generated() {
        let mut s = Snapshot::default();
        let mut g = MyComponent { n: 5, spacing: 1.0, length: 10.0 };
        g.generate(&GeneratorContext::default(), &mut s).expect("the chain fits");
        assert_eq!((s.len(), s.bonds.len()), (5, 4));
        s.check().expect("a valid state");
        let mut too_long = MyComponent { n: 50, spacing: 1.0, length: 10.0 };
        assert!(too_long.generate(&GeneratorContext::default(), &mut Snapshot::default()).is_err());
    }
}
