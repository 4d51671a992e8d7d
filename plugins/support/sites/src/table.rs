//! Rows of sites, and the arrays of a state that describe them.

use crate::geometry::{LINEAR, NORMAL, place_site};
use crate::kind::SiteKind;
use crate::{ATOMS, FORM, MOST, NUMBERS, USES};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::{Array, Values, wrap};

/// A site of a molecule.
#[derive(Clone, Debug, Params)]
pub struct Row {
    /// Number of the site in the molecule.
    pub site: u32,
    /// Numbers of the particles that construct it.
    pub from: Vec<u32>,
    /// Construction of its position, such as `Two(a: 0.5)`.
    pub kind: SiteKind,
}

impl Row {
    /// Checks the numbers in a row, for a molecule of `size` particles.
    ///
    /// # Errors
    /// Returns a message if they are invalid.
    pub fn check(&self, size: usize, s: &Snapshot) -> std::result::Result<(), String> {
        if let Some(number) = self.from.iter().chain([&self.site]).find(|k| **k as usize >= size) {
            return Err(format!("unknown particle {number}: a molecule has the particles 0 to {}", size - 1));
        }
        if self.from.contains(&self.site) {
            return Err(format!("the site {} is among the particles that construct it", self.site));
        }
        if let Some(k) = (1..self.from.len()).find(|k| self.from[..*k].contains(&self.from[*k])) {
            return Err(format!("`from` lists the particle {} twice", self.from[k]));
        }
        let ((least, most), n, name) = (self.kind.particles(), self.from.len(), self.kind.name());
        if n < least || n > most {
            let numbers = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            return Err(format!("{name} needs {numbers} particles in `from`, not {n}"));
        }
        if self.kind.leaves_plane() && s.dimensions == 2 {
            return Err(format!("{name} requires three dimensions"));
        }
        Ok(())
    }
}

/// The arrays of sites, in tag order.
#[derive(Debug)]
pub struct Table {
    form: Vec<i32>,
    relative: Vec<i32>,
    numbers: Vec<f64>,
    uses: Vec<i32>,
}

impl Table {
    /// Reads the arrays of a state; zeros if it has none.
    ///
    /// # Errors
    /// Returns an error if an array has another type or width.
    pub fn of(s: &Snapshot) -> Result<Self> {
        let n = s.len();
        let wrong = |name: &str, width: usize| {
            Error::input(format!("the array `{name}` must have {width} values for each particle"))
        };
        let integers = |name: &str, width: usize| match s.arrays.get(name).map(|a| &a.values) {
            None => Ok(vec![0; n * width]),
            Some(Values::Int(v)) if v.len() <= n * width && v.len().is_multiple_of(width) => {
                Ok(v.iter().copied().chain(std::iter::repeat(0)).take(n * width).collect())
            }
            Some(_) => Err(wrong(name, width)),
        };
        let numbers = match s.arrays.get(NUMBERS).map(|a| &a.values) {
            None => vec![0.0; n * MOST],
            Some(Values::Real(v)) if v.len() <= n * MOST && v.len().is_multiple_of(MOST) => {
                v.iter().copied().chain(std::iter::repeat(0.0)).take(n * MOST).collect()
            }
            Some(_) => return Err(wrong(NUMBERS, MOST)),
        };
        Ok(Self { form: integers(FORM, 1)?, relative: integers(ATOMS, MOST)?, numbers, uses: vec![0; n * (MOST + 1)] })
    }

    /// Returns whether a particle is a site.
    pub fn is_site(&self, tag: usize) -> bool {
        self.form[tag] != 0
    }

    /// Adds the site of a row in the molecule whose first tag is `base`.
    ///
    /// # Errors
    /// Returns a message if the particle is a site already, or a mass is wrong.
    pub fn add(&mut self, row: &Row, base: usize, s: &Snapshot) -> std::result::Result<(), String> {
        let site = base + row.site as usize;
        if self.form[site] != 0 {
            return Err(format!("particle {site} is a site already"));
        }
        let masses: Vec<f64> = row.from.iter().map(|k| s.mass[base + *k as usize]).collect();
        self.check_masses(site, row.from.iter().map(|k| base + *k as usize), s)?;
        let (form, numbers) = row.kind.form(&masses)?;
        self.form[site] = form as i32;
        for (slot, k) in (MOST * site..).zip(&row.from) {
            self.relative[slot] = *k as i32 - row.site as i32;
        }
        self.numbers[MOST * site..MOST * (site + 1)].copy_from_slice(&numbers);
        Ok(())
    }

    /// Checks that a site has no mass, and that the particles that construct it have some.
    fn check_masses(
        &self,
        site: usize,
        atoms: impl Iterator<Item = usize>,
        s: &Snapshot,
    ) -> std::result::Result<(), String> {
        let m = s.mass[site];
        if m != 0.0 {
            return Err(format!(
                "particle {site} is a site and has the mass {m}; set its mass to 0 in the file or generator"
            ));
        }
        for atom in atoms {
            if self.form[atom] != 0 {
                return Err(format!(
                    "particle {atom} is a site and cannot construct the site {site}; name the particles that construct both"
                ));
            }
            if s.mass[atom] == 0.0 {
                return Err(format!("particle {atom} constructs the site {site} and has no mass"));
            }
        }
        Ok(())
    }

    /// Returns the tags of the particles that construct a site.
    pub fn atoms(&self, site: usize) -> Vec<usize> {
        let all = self.relative[MOST * site..MOST * (site + 1)].iter();
        all.take_while(|r| **r != 0).map(|r| site.wrapping_add_signed(*r as isize)).collect()
    }

    /// Checks all sites and lists the uses of each particle, in the order of the sites' tags.
    ///
    /// # Errors
    /// Returns a message if a site is invalid.
    pub fn link(&mut self, s: &Snapshot) -> std::result::Result<(), String> {
        for site in (0..s.len()).rev() {
            if self.form[site] == 0 {
                continue;
            }
            let (form, atoms) = (self.form[site], self.atoms(site));
            if !(LINEAR as i32..=NORMAL as i32).contains(&form) {
                return Err(format!("particle {site}: unknown form {form} of a site"));
            }
            let least = [1, 2, 3, 3, 4][form as usize - 1];
            if atoms.len() < least {
                return Err(format!(
                    "particle {site}: a site of form {form} needs {least} particles, not {}",
                    atoms.len()
                ));
            }
            if let Some(atom) = atoms.iter().find(|a| **a >= s.len()) {
                return Err(format!("particle {site}: unknown particle {atom} constructs this site"));
            }
            self.check_masses(site, atoms.iter().copied(), s)?;
            for (k, atom) in atoms.into_iter().enumerate() {
                let relative = site as i64 - atom as i64;
                // 8 times a difference of tags, and 0 to 7, in 32 bits
                if relative.abs() >= 1 << 28 {
                    return Err(format!(
                        "particle {atom} is too far in the order from the site {site} that it constructs"
                    ));
                }
                let head = (MOST + 1) * atom;
                self.uses[(MOST + 1) * site + k + 1] = self.uses[head];
                self.uses[head] = (8 * relative) as i32 + k as i32;
            }
        }
        Ok(())
    }

    /// Puts all sites in their positions.
    ///
    /// # Errors
    /// Returns a message if the direction of a site is not defined, or a site is too far from its particles.
    pub fn place(&self, s: &mut Snapshot) -> std::result::Result<(), String> {
        let half = 0.5 * s.box_length.into_iter().take(s.dimensions as usize).fold(f64::INFINITY, f64::min);
        for site in (0..s.len()).filter(|i| self.form[*i] != 0) {
            let atoms = self.atoms(site);
            let first = atoms[0];
            let (mut arms, mut rates) = ([Vec3::<f64>::zero(); MOST], [Vec3::<f64>::zero(); MOST]);
            for (k, atom) in atoms.iter().enumerate() {
                let nearest = |x: usize| {
                    let (d, l) = (s.position[*atom][x] - s.position[first][x], s.box_length[x]);
                    if l > 0.0 { d - l * (d / l).round() } else { 0.0 }
                };
                arms[k] = Vec3::new(nearest(0), nearest(1), nearest(2));
                rates[k] = Vec3::from(s.velocity[*atom]) - Vec3::from(s.velocity[first]);
            }
            let numbers = &self.numbers[MOST * site..MOST * (site + 1)];
            let (d, rate, defined) = if self.form[site] == LINEAR as i32 {
                let sum =
                    |of: &[Vec3<f64>; MOST]| of.iter().zip(numbers).fold(Vec3::zero(), |sum, (u, w)| sum + *u * *w);
                (sum(&arms), sum(&rates), true)
            } else {
                let p = Vec3::new(numbers[0], numbers[1], numbers[2]);
                place_site(self.form[site] as u32, p, arms[1], arms[2], arms[3], rates[1], rates[2], rates[3])
            };
            if !defined {
                return Err(format!(
                    "the direction of the site {site} is not defined: the particles {atoms:?} that construct it coincide or lie on a line"
                ));
            }
            if d.norm() >= half {
                return Err(format!(
                    "the site {site} is {} from particle {first}, which must be less than half the box length, {half}",
                    d.norm()
                ));
            }
            let (x, v) = (d.f64(), rate.f64());
            s.position[site] = std::array::from_fn(|k| s.position[first][k] + x[k]);
            s.velocity[site] = std::array::from_fn(|k| s.velocity[first][k] + v[k]);
            s.image[site] = s.image[first];
            wrap(&mut s.position[site], &mut s.image[site], s.box_length, 1.0);
        }
        Ok(())
    }

    /// Stores the arrays in a state.
    pub fn write(self, s: &mut Snapshot) {
        let mut put =
            |name: &str, width: usize, values| s.arrays.insert(name.into(), Array { width: width as u32, values });
        put(FORM, 1, Values::Int(self.form));
        put(ATOMS, MOST, Values::Int(self.relative));
        put(NUMBERS, MOST, Values::Real(self.numbers));
        put(USES, MOST + 1, Values::Int(self.uses));
    }
}
