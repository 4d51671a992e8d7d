//! Formats a frame of a dump.

use crate::lammps_dump::columns::{Cells, Column, Entry, name_of};
use crate::lammps_dump::read::extent;
use galamost_plugin_api::prelude::Snapshot;
use galamost_text::real;
use std::io::Write as _;

/// Formats a frame.
pub fn frame(s: &Snapshot, columns: &[Column], digits: Option<u32>) -> Vec<u8> {
    let mut out = vec![];
    let line = |out: &mut Vec<u8>, text: &str| {
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    };
    line(&mut out, &format!("ITEM: TIMESTEP\n{}\nITEM: NUMBER OF ATOMS\n{}", s.step, s.len()));
    let cells = Cells::new(s, columns);
    let (tilts, half) = (cells.shape.tilts(), cells.shape.middle());
    line(
        &mut out,
        if cells.shape.is_tilted() { "ITEM: BOX BOUNDS xy xz yz pp pp pp" } else { "ITEM: BOX BOUNDS pp pp pp" },
    );
    for (k, [below, above]) in extent(tilts).into_iter().enumerate() {
        let (low, high) = (below - half[k], cells.shape.length[k] - half[k] + above);
        let tilt = if cells.shape.is_tilted() { format!(" {:?}", tilts[k]) } else { String::new() };
        line(&mut out, &format!("{low:?} {high:?}{tilt}"));
    }
    let names: Vec<&str> = columns.iter().map(|c| name_of(*c)).collect();
    line(&mut out, &format!("ITEM: ATOMS {}", names.join(" ")));
    for tag in 0..s.len() {
        for (n, column) in columns.iter().enumerate() {
            if n > 0 {
                out.push(b' ');
            }
            match cells.of(*column, tag) {
                Entry::Number(x) => real(&mut out, x, digits),
                // writing to memory does not fail
                Entry::Whole(n) => drop(write!(out, "{n}")),
                Entry::Text(text) => out.extend_from_slice(text.as_bytes()),
            }
        }
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lammps_dump::columns::column;
    use crate::lammps_dump::read::{Choice, read, skip};
    use galamost_plugin_api::prelude::{Array, Values};
    use galamost_text::Trajectory;

    #[test]
    fn what_is_written_is_read() {
        let mut s = Snapshot { step: 7, dimensions: 3, box_length: [10.0, 8.1, 6.0], ..Snapshot::default() };
        s.types = vec!["A".into(), "B2".into()];
        for k in 0..3 {
            s.push(k % 2, [f64::from(k) / 3.0 - 1.0, -4.05, 2.999_999_999_999]);
            s.velocity[k as usize] = [0.1, -1e-9, 1e9];
            s.image[k as usize] = [0, -7, k as i32];
        }
        s.mass[1] = 2.5;
        let real = |values| Array { width: 1, values: Values::Real(values) };
        s.arrays.insert("charge".into(), real(vec![0.5, -0.5, 0.0]));
        s.arrays.insert("diameter".into(), real(vec![0.7, 1.0, 1.1]));
        s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(vec![0, -1, 1]) });
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f.dump");
        let back = |columns: &str, digits| {
            let columns: Vec<Column> = columns.split(' ').map(|c| column(c).expect("a column")).collect();
            let text = [frame(&s, &columns, digits), frame(&s, &columns, digits)].concat();
            std::fs::write(&path, text).expect("written");
            let mut t = Trajectory::open(&path, skip).expect("opened");
            assert_eq!(t.count(), Ok(2));
            read(t.frame(1).expect("a frame"), &Choice::default()).expect("read")
        };
        let common = "id mol type element q mass vx vy vz";
        assert_eq!(back(&format!("{common} x y z ix iy iz diameter"), None), s);
        assert_eq!(back(&format!("{common} x y z ix iy iz radius"), None), s);
        for columns in ["xu yu zu diameter", "xs ys zs ix iy iz diameter", "xsu ysu zsu diameter"] {
            let b = back(&format!("{common} {columns}"), None);
            assert_eq!((&b.types, &b.image[0], &b.mass), (&s.types, &s.image[0], &s.mass), "{columns}");
            let far = |a: &[f64; 3], b: &[f64; 3]| (0..3).any(|k| (a[k] - b[k]).abs() > 1e-13);
            assert!(!b.position.iter().zip(&s.position).any(|(a, b)| far(a, b)), "{columns}: {:?}", b.position);
        }
        assert_eq!(back("id type x y z", Some(3)).position[0][0], -1.0);
        assert!(column("velocity").is_err_and(|e| e.contains("unknown column `velocity`")));
    }
}
