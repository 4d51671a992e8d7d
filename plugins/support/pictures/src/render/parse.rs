//! Parsing of view options, from the command line and from pipelines.

use crate::color::Rgb;
use crate::render::{ColorBy, Direction, Glyph, MAX_EDGE, Slice, View};

/// Parses a finite number.
fn number(text: &str) -> Result<f64, String> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|x| x.is_finite())
        .ok_or_else(|| format!("`{}` is not a number", text.trim()))
}

/// Parses values by type, `A=x,B=y`, or `x` for all types. Two values for the same types are an error.
fn by_type<T>(text: &str, value: impl Fn(&str) -> Result<T, String>) -> Result<Vec<(Option<String>, T)>, String> {
    let mut all: Vec<(Option<String>, T)> = vec![];
    for part in text.split(',') {
        let (name, v) = match part.split_once('=') {
            Some((name, v)) => (Some(name.trim().to_string()), v),
            None => (None, part),
        };
        if all.iter().any(|(other, _)| *other == name) {
            let whose = name.map_or_else(|| "all types".into(), |name| format!("the type `{name}`"));
            return Err(format!("`{text}` has two values for {whose}; give one"));
        }
        all.push((name, value(v.trim())?));
    }
    Ok(all)
}

impl Direction {
    /// Parses a direction: `x`, `-x`, `y`, `-y`, `z`, `-z` (the viewer is at this end of the axis), or two angles in degrees,
    /// `azimuth,elevation`.
    ///
    /// # Errors
    /// Returns an error for any other text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let of = |azimuth, elevation| Ok(Self { azimuth, elevation });
        match text.trim() {
            "x" => of(0.0, 0.0),
            "-x" => of(180.0, 0.0),
            "y" => of(90.0, 0.0),
            "-y" | "front" => of(-90.0, 0.0),
            "z" | "top" => of(-90.0, 90.0),
            "-z" | "bottom" => of(-90.0, -90.0),
            other => match other.split_once(',').map(|(a, b)| (number(a), number(b))) {
                Some((Ok(azimuth), Ok(elevation))) if elevation.abs() <= 90.0 => of(azimuth, elevation),
                _ => Err(format!(
                    "`{other}` is not a direction; use x, y, z, -x, -y, -z, or azimuth,elevation in degrees, such as -60,20"
                )),
            },
        }
    }
}

impl ColorBy {
    /// Parses `type`, `molecule`, or the name of a property.
    pub fn parse(text: &str) -> Self {
        match text {
            "type" => Self::Type,
            "molecule" => Self::Molecule,
            name => Self::Property(name.into()),
        }
    }
}

impl Glyph {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, ratio) = match text.split_once(':') {
            Some((n, r)) => (n, Some(number(r)?)),
            None => (text, None),
        };
        let ellipsoid = |default: f64| match ratio.unwrap_or(default) {
            r if (0.05..=20.0).contains(&r) => Ok(Self::Ellipsoid(r)),
            r => Err(format!("the aspect ratio {r} is not between 0.05 and 20")),
        };
        match (name, ratio) {
            ("rod", _) => ellipsoid(3.0),
            ("disk", _) => ellipsoid(0.35),
            ("sphere", None) => Ok(Self::Sphere),
            ("janus", None) => Ok(Self::Janus),
            ("triblock", None) => Ok(Self::Triblock),
            _ => {
                Err(format!("`{text}` is not a shape; use sphere, janus, triblock, rod, rod:RATIO, disk or disk:RATIO"))
            }
        }
    }
}

impl Slice {
    /// Parses `axis,min,max`.
    ///
    /// # Errors
    /// Returns an error for any other text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let wrong = || format!("`{text}` is not a slice; use axis,min,max, such as z,-1,1");
        let [axis, min, max] = parts[..] else { return Err(wrong()) };
        let axis = ["x", "y", "z"].iter().position(|a| *a == axis).ok_or_else(wrong)?;
        let (min, max) = (number(min)?, number(max)?);
        if min < max { Ok(Self { axis, min, max }) } else { Err(wrong()) }
    }
}

impl View {
    /// Sets the size, for example `1200x900`.
    ///
    /// # Errors
    /// Returns an error if the text is not a valid size.
    pub fn set_size(&mut self, text: &str) -> Result<(), String> {
        let wrong = || format!("`{text}` is not a size; use WIDTHxHEIGHT of 16 to {MAX_EDGE} pixels, such as 1200x900");
        let (w, h) = text.split_once('x').ok_or_else(wrong)?;
        let size = [w, h].map(|n| n.trim().parse::<u32>().ok().filter(|n| (16..=MAX_EDGE).contains(n)));
        let [Some(w), Some(h)] = size else { return Err(wrong()) };
        self.size = [w, h];
        Ok(())
    }

    /// Sets radii, for example `0.5` or `A=0.5,B=0.3`.
    ///
    /// # Errors
    /// Returns an error if a radius is negative or not a number, or if a type has two.
    pub fn set_radius(&mut self, text: &str) -> Result<(), String> {
        self.radius = by_type(text, |v| match number(v)? {
            r if r >= 0.0 => Ok(r),
            r => Err(format!("the radius {r} is negative")),
        })?;
        Ok(())
    }

    /// Sets shapes, for example `rod:3` or `A=janus,B=sphere`.
    ///
    /// # Errors
    /// Returns an error for an unknown shape, or if a type has two.
    pub fn set_shape(&mut self, text: &str) -> Result<(), String> {
        self.glyphs = if text == "auto" { vec![] } else { by_type(text, Glyph::parse)? };
        Ok(())
    }

    /// Sets colors of types, for example `A=red,B=#1f77b4`.
    ///
    /// # Errors
    /// Returns an error for an unknown color, a color without a type, or if a type has two.
    pub fn set_colors(&mut self, text: &str) -> Result<(), String> {
        let one = |(name, c): (Option<String>, Rgb)| {
            name.map(|n| (n, c)).ok_or("use TYPE=COLOR, such as A=red,B=#1f77b4".to_string())
        };
        self.colors = by_type(text, Self::parse_color)?.into_iter().map(one).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Sets the background color.
    ///
    /// # Errors
    /// Returns an error for an unknown color.
    pub fn set_background(&mut self, text: &str) -> Result<(), String> {
        self.background = Self::parse_color(text)?;
        Ok(())
    }

    /// Sets the range of the color map, `low,high`.
    ///
    /// # Errors
    /// Returns an error if the text is not two increasing numbers.
    pub fn set_range(&mut self, text: &str) -> Result<(), String> {
        let wrong = || format!("`{text}` is not a range; use low,high");
        let (a, b) = text.split_once(',').ok_or_else(wrong)?;
        let (a, b) = (number(a)?, number(b)?);
        self.range = Some(if a < b { [a, b] } else { return Err(wrong()) });
        Ok(())
    }

    /// Parses a color.
    fn parse_color(text: &str) -> Result<Rgb, String> {
        Rgb::parse(text).ok_or_else(|| {
            format!(
                "`{text}` is not a color; use #rrggbb, white, black, gray, lightgray, blue, red, green, purple, orange, \
                 skyblue or yellow"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        assert_eq!(Direction::parse("30, -20"), Ok(Direction { azimuth: 30.0, elevation: -20.0 }));
        assert!(
            Direction::parse("up").is_err() && Direction::parse("0,91").is_err() && Direction::parse("0,nan").is_err()
        );
        assert_eq!(Slice::parse("y,-1,2.5"), Ok(Slice { axis: 1, min: -1.0, max: 2.5 }));
        assert!(Slice::parse("y,2,1").is_err() && Slice::parse("w,0,1").is_err() && Slice::parse("x,0").is_err());
        let mut v = View::default();
        assert!(v.set_size("800x600").is_ok() && v.size == [800, 600]);
        assert!(v.set_size("8").is_err() && v.set_size("1x1").is_err() && v.set_size("99999x99999").is_err());
        v.set_radius("0.4,B=0.2").expect("radii");
        assert_eq!(v.radius, [(None, 0.4), (Some("B".into()), 0.2)]);
        assert!(v.set_radius("A=-1").is_err() && v.set_radius("A=x").is_err());
        // one value for each type, and one for all others
        assert!(v.set_radius("A=2,A=3").is_err() && v.set_radius("0.4,B=1,0.5").is_err());
        v.set_shape("A=rod:4,B=sphere").expect("shapes");
        assert_eq!(v.glyphs[0].1, Glyph::Ellipsoid(4.0));
        assert!(v.set_shape("cube").is_err() && v.set_shape("rod:1000").is_err() && v.set_shape("sphere:2").is_err());
        assert!(v.set_colors("A=red").is_ok() && v.set_colors("red").is_err() && v.set_colors("A=nored").is_err());
        assert!(v.set_range("0,1").is_ok() && v.set_range("1,0").is_err() && v.set_background("#123456").is_ok());
    }
}
