//! The `LammpsDump` analyzer.

use crate::lammps_dump::columns::{Column, array_of, choose, column};
use crate::lammps_dump::write::frame;
use crate::names::of_particles;
use galamost_plugin_api::prelude::*;
use galamost_text::FrameFile;

/// Writes a LAMMPS text dump (`dump custom`).
///
/// | column | meaning |
/// |---|---|
/// | `id`, `type` | particle and type, from 1 |
/// | `mol` | molecule from 1; 0 for none. Without an array `molecule`, particles that bonds connect are a molecule |
/// | `element` | type name |
/// | `x y z`, `ix iy iz` | position (box centered at 0) and image |
/// | `xu yu zu` | unwrapped position |
/// | `xs ys zs`, `xsu ysu zsu` | fractional position from 0, wrapped and unwrapped |
/// | `vx vy vz`, `mass`, `q`, `diameter`, `radius` | velocity, mass, charge, diameter, radius |
/// | `fx fy fz`, `tqx tqy tqz` | force; torque in the lab frame |
/// | `energy` | potential energy |
/// | `vxx vxy vxz vyy vyz vzz` | virial, in units of energy |
///
/// The default columns are `id`, `mol`, `type`, `element`, `x y z`, `ix iy iz`, `q`, and `diameter`, as far as the
/// system has them; `mol` is among them only with an array `molecule`. By default, numbers have as many digits as needed to read
/// back the same number. Dumps have no bonds.
///
/// The energy and the virial of an interaction are shared equally by its particles: half for each particle of a pair or bond, a
/// third in an angle, a quarter in a dihedral or improper, as in `compute pe/atom` and `compute stress/atom` of LAMMPS. The virial
/// of an interaction is Σ r_k F_k over its particles, with nearest images; that of a wall or a field with a virial is r F with r
/// from the box center. Energies add up to the potential energy, and P_ab V = Σ (m v_a v_b + v_ab) over all particles. LAMMPS
/// writes −(m v_a v_b + v_ab). Forces without such shares are errors: `Ewald` and `Pppm` for energies and virials, `MdScf`,
/// `RigidBodies`, `VirtualSites` and `Constraints` for virials. Virials are computed in steps with energies only.
///
/// Each frame is written in one piece. A killed run therefore leaves complete frames, except possibly the last. A
/// resumed run truncates the file to its checkpoint.
///
/// ```ron
/// LammpsDump(every: 100, file: "trajectory.dump", columns: ["id", "type", "xu", "yu", "zu"])
/// ```
#[component(Analyzer, "LammpsDump")]
#[derive(Debug, Params)]
pub struct WriteDump {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    #[param(extensions = "dump lammpstrj lammpsdump")]
    file: String,
    /// Columns, in order.
    columns: Option<Spanned<Vec<String>>>,
    /// Decimal places of real numbers; default: as many as needed.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    chosen: Vec<Column>,
    #[param(skip)]
    out: FrameFile,
}

impl Analyzer for WriteDump {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        self.system = system.clone();
        let mut errors = Errors::default();
        let chosen = match &self.columns {
            Some(names) => choose(names, system, needs),
            None => {
                let all = "id mol type element x y z ix iy iz q diameter".split(' ').filter_map(|n| column(n).ok());
                Ok(all.filter(|c| array_of(*c).is_none_or(|a| system.has_array(a))).collect())
            }
        };
        match chosen {
            Ok(chosen) => self.chosen = chosen,
            Err(Error::Input(more)) => errors.0.extend(more),
            Err(e) => return Err(e),
        }
        let named = of_particles(system);
        if let Err(Error::Input(more)) =
            self.out.bind(&named, needs, &self.file, |name| !name.is_empty() && !name.contains(char::is_whitespace))
        {
            more.into_iter().for_each(|e| errors.push(e));
        }
        errors.into_result(Some(()))
    }
    fn start(&mut self, _: Host) -> Result<()> {
        self.out.start()
    }
    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        self.out.append(&frame(&f.snapshot(&self.system), &self.chosen, self.digits))
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        self.out.save()
    }
    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.out.load(state)
    }
}
