//! Output of densities on a grid, for VTK and NumPy.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::memory;
use galamost_plugin_api::prelude::*;

/// Writes the number density of each type on a grid every `every` steps, one file per sample.
///
/// Each particle is distributed over the eight vertices of its cell with the weights Π(1 − |d|/l), as in `MdScf`. Vertices
/// lie at −L/2 + n l with l = L/grid, and the density of a vertex is Σ weights/(cell volume). `{step}` in the file name is
/// replaced by the step with 10 digits. Without it, the file is replaced each time. The file extension selects the format:
///
/// * `.npy`: an array of 32-bit floats with the shape (types, x, y, z), for `numpy.load`; it does not contain the box.
/// * `.vtk`: legacy VTK, binary, `STRUCTURED_POINTS` with one scalar field per type, for ParaView and VisIt. The field has
///   the name of the type, with blanks and quotes replaced by `_`.
///
/// Requires a three-dimensional system.
///
/// Reference: the format descriptions, NumPy's NEP 1 and the VTK User's Guide.
///
/// ```ron
/// DensityGrid(every: 20, file: "density.{step}.npy", grid: [8, 7, 6])
/// ```
#[component(Analyzer, "DensityGrid")]
#[derive(Debug, Params)]
pub struct DensityGrid {
    /// Number of steps between samples.
    #[param(at_least = 1)]
    every: u64,
    /// Output file, `….npy` or `….vtk`; `{step}` is replaced by the step.
    file: Spanned<String>,
    /// Number of cells along each axis.
    #[param(at_least = 1, at_most = 4096)]
    grid: Spanned<[u32; 3]>,
    #[param(skip)]
    system: SystemInfo,
}

impl DensityGrid {
    /// Returns the number densities at the vertices, x fastest, one type after another.
    fn densities(&self, frame: &Frame<'_>) -> Vec<f64> {
        let n = self.grid.value.map(|n| n as usize);
        let vertices: usize = n.iter().product();
        let length = frame.box_length();
        let one = vertices as f64 / length.iter().product::<f64>();
        let mut out = vec![0.0; vertices * self.system.types.len()];
        for (p, kind) in frame.position().iter().zip(frame.type_id()) {
            let ends: [[(usize, f64); 2]; 3] = std::array::from_fn(|k| {
                let s = (p[k] / length[k] + 0.5) * n[k] as f64;
                let below = s.floor().clamp(0.0, (n[k] - 1) as f64);
                let at = below as usize;
                [(at, 1.0 - (s - below)), ((at + 1) % n[k], s - below)]
            });
            let grid = &mut out[*kind as usize * vertices..][..vertices];
            for (z, wz) in ends[2] {
                for (y, wy) in ends[1] {
                    for (x, wx) in ends[0] {
                        grid[(z * n[1] + y) * n[0] + x] += one * wx * wy * wz;
                    }
                }
            }
        }
        out
    }

    /// Returns the contents of a `.npy` file.
    fn npy(&self, densities: &[f64]) -> Vec<u8> {
        let [x, y, z] = self.grid.value.map(|n| n as usize);
        let types = self.system.types.len();
        let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({types}, {x}, {y}, {z}), }}");
        // magic, version and length take 10 bytes; the data start at a multiple of 64, after a newline
        header += &" ".repeat((64 - (10 + header.len() + 1) % 64) % 64);
        header.push('\n');
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        for t in 0..types {
            for i in 0..x {
                for j in 0..y {
                    for k in 0..z {
                        out.extend((densities[((t * z + k) * y + j) * x + i] as f32).to_le_bytes());
                    }
                }
            }
        }
        out
    }

    /// Returns the contents of a `.vtk` file.
    fn vtk(&self, frame: &Frame<'_>, densities: &[f64]) -> Vec<u8> {
        let [x, y, z] = self.grid.value;
        let l = frame.box_length();
        let cell: [f64; 3] = std::array::from_fn(|k| l[k] / f64::from(self.grid.value[k]));
        let vertices = self.grid.value.iter().map(|n| *n as usize).product::<usize>();
        let mut out = format!(
            "# vtk DataFile Version 3.0\nnumber densities at step {}\nBINARY\nDATASET STRUCTURED_POINTS\nDIMENSIONS {x} {y} {z}\n\
             ORIGIN {:?} {:?} {:?}\nSPACING {:?} {:?} {:?}\nPOINT_DATA {vertices}\n",
            frame.step(), -0.5 * l[0], -0.5 * l[1], -0.5 * l[2], cell[0], cell[1], cell[2],
        )
        .into_bytes();
        for (name, grid) in self.system.types.iter().zip(densities.chunks_exact(vertices)) {
            let name = name.replace([' ', '\t', '\n', '"'], "_");
            out.extend(format!("SCALARS {name} float 1\nLOOKUP_TABLE default\n").as_bytes());
            out.extend(grid.iter().flat_map(|d| (*d as f32).to_be_bytes()));
            out.push(b'\n');
        }
        out
    }
}

impl Analyzer for DensityGrid {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut errors = Errors::default();
        let file = &self.file.value;
        if !file.ends_with(".npy") && !file.ends_with(".vtk") {
            errors.push(InputError::at(self.file.at, "the file name must end with .npy or .vtk"));
        }
        if system.dimensions != 3 {
            errors.push(InputError::at(
                self.file.at,
                "DensityGrid requires a three-dimensional system; this one is two-dimensional",
            ));
        }
        let [x, y, z] = self.grid.value.map(f64::from);
        let what = format!("the grid of {x} × {y} × {z} cells for {} types", system.types.len());
        // the densities, and the file with half as many bytes
        if let Err(message) = memory::require(what, 12.0 * x * y * z * system.types.len() as f64) {
            errors.push(InputError::at(self.grid.at, message));
        }
        errors.into_result(Some(()))?;
        needs.period = self.every;
        needs.plain_images = true;
        needs.wants.particles = true;
        needs.output(system, file, OutputKind::State);
        if !file.contains("{step}") {
            needs.notes.push("each sample overwrites the last one; add {step} to the file name to keep all".into());
        }
        self.system = system.clone();
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let densities = self.densities(frame);
        let path = self.system.path(&self.file.value.replace("{step}", &format!("{:010}", frame.step())));
        let bytes = if self.file.value.ends_with(".npy") { self.npy(&densities) } else { self.vtk(frame, &densities) };
        std::fs::write(&path, bytes).map_err(|e| Error::io(&path, e))
    }
}
