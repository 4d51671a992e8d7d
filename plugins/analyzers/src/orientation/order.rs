//! Polar and nematic order.

use crate::orientation::chosen::{need_orientations, quaternions, selected_types};
use galamost_measure::{Cell, Table, eigen};
use galamost_plugin_api::prelude::*;

/// Measures the polar and nematic order of particle axes, one row for each sample.
///
/// The axis n of a particle is the z axis of its body frame. `file` is a CSV table:
///
/// | column | meaning |
/// |---|---|
/// | `step`, `time` | step number, time |
/// | `n` | number of particles N |
/// | `P1` | polar order ‖Σ n_i‖/N; distinguishes head from tail |
/// | `P2` | nematic order: largest eigenvalue of Q = (1/N) Σ (3/2 n_i n_i − ½); 1 if all axes are parallel, about N^(−½) for random directions |
/// | `director_x` … `director_z` | its eigenvector, with the sign that makes the largest component positive |
/// | `biaxiality` | difference of the other two eigenvalues |
///
/// The system must have three dimensions. A file name that ends in `.parquet` selects a folder of Parquet files.
///
/// ```ron
/// OrientationalOrder(every: 1000, file: "order.csv")
/// ```
#[component(Analyzer, "OrientationalOrder")]
#[derive(Debug, Params)]
pub struct OrientationalOrder {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// Output file.
    file: String,
    /// Particle types to consider; default: all.
    types: Option<Spanned<Vec<String>>>,
    #[param(skip)]
    selected: Vec<bool>,
    #[param(skip)]
    rows: Table,
}

/// Returns the number of axes, and P1, P2, director, and biaxiality.
fn order(axes: impl Iterator<Item = Vec3<f64>>) -> (usize, [f64; 6]) {
    let (mut n, mut sum, mut q) = (0, [0.0; 3], [[0.0; 3]; 3]);
    for axis in axes {
        let a = axis.f64();
        n += 1;
        for i in 0..3 {
            sum[i] += a[i];
            for j in 0..3 {
                q[i][j] += 1.5 * a[i] * a[j];
            }
        }
    }
    if n == 0 {
        return (0, [0.0; 6]);
    }
    for (i, row) in q.iter_mut().enumerate() {
        row.iter_mut().for_each(|x| *x /= n as f64);
        row[i] -= 0.5;
    }
    let [(p2, mut director), (second, _), (third, _)] = eigen(q);
    let largest = director.iter().copied().fold(0.0, |m: f64, x| if x.abs() > m.abs() { x } else { m });
    if largest < 0.0 {
        director = director.map(|x| -x);
    }
    let p1 = sum.iter().map(|x| x * x).sum::<f64>().sqrt() / n as f64;
    (n, [p1, p2, director[0], director[1], director[2], second - third])
}

impl Analyzer for OrientationalOrder {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        need_orientations(system)?;
        self.selected = selected_types(self.types.as_ref(), system)?;
        needs.period = self.every;
        needs.wants.particles = true;
        self.rows.bind(system, needs, &self.file);
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.rows.start()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let q = quaternions(frame)?;
        let axes = frame.type_id().iter().zip(&q).filter(|(k, _)| self.selected[**k as usize]).map(|(_, q)| q.axis());
        let (n, values) = order(axes);
        let mut row = vec![frame.step().into(), frame.time().into(), n.into()];
        row.extend(values.map(Cell::from));
        let names = ["step", "time", "n", "P1", "P2", "director_x", "director_y", "director_z", "biaxiality"];
        self.rows.append(&names, &[row])
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.save()
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.rows.load(state).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_orders() {
        let z = Vec3::new(0.0, 0.0, 1.0);
        let along = Vec3::new(0.6, 0.0, 0.8);
        let (n, [p1, p2, x, y, w, b]) = order([along, along * -1.0].into_iter());
        assert_eq!((n, p1), (2, 0.0));
        assert!((p2 - 1.0).abs() < 1e-14 && (x - 0.6).abs() < 1e-14 && y.abs() < 1e-14 && (w - 0.8).abs() < 1e-14);
        assert!(b.abs() < 1e-14);
        // isotropic in a plane: two eigenvalues are 1/4, that of the normal is −1/2
        let ring = (0..12).map(|k| (f64::from(k) * std::f64::consts::TAU / 12.0).sin_cos());
        let (_, [p1, p2, _, _, _, b]) = order(ring.map(|(s, c)| Vec3::new(c, s, 0.0)));
        assert!(p1 < 1e-14 && (p2 - 0.25).abs() < 1e-14 && (b - 0.75).abs() < 1e-14);
        let (_, [p1, ..]) = order([z, z, z * -1.0, z].into_iter());
        assert!((p1 - 0.5).abs() < 1e-15);
        assert_eq!(order(std::iter::empty()).0, 0);
    }
}
