//! Colors: a palette for color-blind readers, and a color map for numbers.

/// A color: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub [u8; 3]);

/// The palette of Okabe and Ito, ordered so that successive colors differ in brightness. Dark gray replaces black, and yellow,
/// hard to see on white, is last. All eight differ for readers with any color blindness.
const PALETTE: [[u8; 3]; 8] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [90, 90, 90],
    [240, 228, 66],
];

/// Points of the color map (viridis): dark blue, green, yellow, with equal steps in brightness.
const MAP: [[f64; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 44.0, 122.0],
    [59.0, 81.0, 139.0],
    [44.0, 113.0, 142.0],
    [33.0, 144.0, 141.0],
    [39.0, 173.0, 129.0],
    [92.0, 200.0, 99.0],
    [170.0, 220.0, 50.0],
    [253.0, 231.0, 37.0],
];

impl Rgb {
    /// White.
    pub const WHITE: Self = Self([255; 3]);

    /// Returns the k-th color of the palette. After the last color, the palette repeats darker or lighter.
    pub fn of_palette(k: usize) -> Self {
        let base = PALETTE[k % PALETTE.len()];
        Self(match k / PALETTE.len() {
            0 => base,
            round if round % 2 == 1 => base.map(|c| (f64::from(c) * 0.6) as u8),
            _ => base.map(|c| (255.0 - 0.5 * (255.0 - f64::from(c))) as u8),
        })
    }

    /// Returns one of many distinct colors: hues spaced by the golden angle, three levels of brightness.
    pub fn of_many(k: u64) -> Self {
        let hue = (k as f64 * 0.618_033_988_75).fract() * 6.0;
        let (lightness, chroma) = [(0.52, 0.52), (0.66, 0.44), (0.40, 0.42)][(k % 3) as usize];
        let channel = |c: f64| {
            // red, green and blue peak at the hues 0, 2 and 4 of 6
            let distance = ((hue - c + 9.0) % 6.0 - 3.0).abs();
            lightness + chroma * ((2.0 - distance).clamp(0.0, 1.0) - 0.5)
        };
        Self([0.0, 2.0, 4.0].map(|c| (255.0 * channel(c).clamp(0.0, 1.0)) as u8))
    }

    /// Returns the color of a number between 0 and 1; gray if it is not finite.
    pub fn of_number(x: f64) -> Self {
        let x = if x.is_finite() { x.clamp(0.0, 1.0) } else { return Self([160; 3]) } * (MAP.len() - 1) as f64;
        let k = (x as usize).min(MAP.len() - 2);
        let t = x - k as f64;
        Self(std::array::from_fn(|c| (MAP[k][c] + t * (MAP[k + 1][c] - MAP[k][c])).round() as u8))
    }

    /// Parses `#rrggbb` or a color name.
    pub fn parse(text: &str) -> Option<Self> {
        let named = match text {
            "white" => [255; 3],
            "black" => [0; 3],
            "grey" | "gray" => [128; 3],
            "lightgrey" | "lightgray" => [211; 3],
            "blue" => PALETTE[0],
            "red" | "vermilion" => PALETTE[1],
            "green" => PALETTE[2],
            "purple" | "pink" => PALETTE[3],
            "orange" => PALETTE[4],
            "skyblue" => PALETTE[5],
            "yellow" => PALETTE[7],
            _ => {
                let hex =
                    text.strip_prefix('#').filter(|h| h.len() == 6 && h.bytes().all(|b| b.is_ascii_hexdigit()))?;
                let n = u32::from_str_radix(hex, 16).ok()?;
                [(n >> 16) as u8, (n >> 8) as u8, n as u8]
            }
        };
        Some(Self(named))
    }

    /// Returns the color in linear light, 0 to 1.
    pub(crate) fn linear(self) -> [f32; 3] {
        self.0.map(|c| (f32::from(c) / 255.0).powf(2.2))
    }
}

impl std::fmt::Display for Rgb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulated color vision without cones for long, middle, and short waves, in linear light (Machado, Oliveira, Fernandes,
    /// IEEE Trans. Vis. Comput. Graph. 15, 1291 (2009)), and normal vision.
    const VISION: [[[f64; 3]; 3]; 4] = [
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ];

    /// Returns the CIE L*a*b* coordinates of a color as seen.
    fn lab(color: Rgb, vision: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = color.0.map(|c| match f64::from(c) / 255.0 {
            c if c <= 0.040_45 => c / 12.92,
            c => ((c + 0.055) / 1.055).powf(2.4),
        });
        let times = |m: &[[f64; 3]; 3], v: [f64; 3]| m.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum::<f64>());
        let seen = times(vision, linear).map(|c| c.clamp(0.0, 1.0));
        let to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
        let xyz = times(&to_xyz, seen);
        let [x, y, z] = [xyz[0] / 0.9505, xyz[1], xyz[2] / 1.089].map(|t| match t {
            t if t > 0.008_856 => t.cbrt(),
            t => 7.787 * t + 16.0 / 116.0,
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn eight_colors_differ_for_every_reader() {
        for vision in &VISION {
            let seen: Vec<[f64; 3]> = (0..8).map(|k| lab(Rgb::of_palette(k), vision)).collect();
            for (i, a) in seen.iter().enumerate() {
                for (j, b) in seen.iter().enumerate().take(i) {
                    let distance = (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
                    // 2.3 is just noticeable side by side; colors of separate particles need several times that
                    assert!(distance > 15.0, "colors {i} and {j}: {distance}");
                }
            }
        }
    }

    #[test]
    fn colors_are_read_and_differ() {
        assert_eq!(Rgb::parse("#0072b2"), Some(Rgb::of_palette(0)));
        assert_eq!(Rgb::of_palette(0).to_string(), "#0072b2");
        assert!(Rgb::parse("#12").is_none() && Rgb::parse("mauve-ish").is_none());
        let all: std::collections::BTreeSet<_> = (0..24).map(|k| Rgb::of_palette(k).0).collect();
        assert_eq!(all.len(), 24);
        assert_eq!(Rgb::of_number(0.0).0, [68, 1, 84]);
        assert_eq!(Rgb::of_number(2.0).0, [253, 231, 37]);
        assert_eq!(Rgb::of_number(f64::NAN).0, [160; 3]);
    }
}
