//! Pictures of the particles during a run.

use galamost_pictures::{ColorBy, Direction, Slice, View};
use galamost_plugin_api::output::replace;
use galamost_plugin_api::prelude::*;
use std::io::Write as _;
use std::path::PathBuf;

galamost_plugin_api::plugin!();

/// Renders the particles as a PNG picture: spheres, caps and rods by orientation, bonds, and box edges.
///
/// `{step}` in the file name stands for the step with 10 digits: `frame.{step}.png` gives `frame.0000010000.png`.
/// Without it, the picture is replaced each time. A file is always complete. The fields are the options of `galamost
/// render`.
///
/// Set `range` to keep the colors of a property consistent between pictures. Bonds across the box boundary are only
/// drawn with `whole`, which shows bonded particles in one piece. `key` adds a legend on the right: a particle of each
/// type with its name, or a color bar for a property, with pointed ends if values exceed the range. The picture does
/// not depend on the number of threads. If the slices contain no particle, it shows the box only, and the log has a warning.
///
/// ```ron
/// Render(every: 100, file: "frame.{step}.png", size: "320x240")
/// ```
#[component(Analyzer, "Render")]
#[derive(Params)]
pub struct Render {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file; `{step}` is replaced by the step.
    file: Spanned<String>,
    /// Size in pixels, `WIDTHxHEIGHT`.
    #[param(default = "1200x900".to_string())]
    size: String,
    /// Position of the viewer: `x`, `y`, `z`, `-x`, `-y`, `-z`, or `azimuth,elevation` in degrees; default: front
    /// right, above; in two dimensions from above.
    view: Option<String>,
    /// Whether to use an orthographic projection instead of a perspective one.
    #[param(default = false)]
    orthographic: bool,
    /// Property that determines the color: `type`, `molecule`, `charge`, `diameter`, `mass`, `speed`, `x`, `y`, `z`,
    /// `tag`, or any array.
    #[param(default = "type".to_string())]
    color: String,
    /// Limits of the color scale of a property, `low,high`, if `color` is one; default: those of each picture.
    range: Option<String>,
    /// Colors of types, `A=red,B=#1f77b4`.
    colors: Option<String>,
    /// Radius of all particles, or of types, `A=0.5,B=0.3`; default: half of the array `diameter`, or ½, smaller in dense
    /// systems.
    radius: Option<String>,
    /// Shape of all particles, or of types, `A=rod:3,B=sphere`: `sphere`, `janus`, `triblock`, `rod`, `rod:RATIO`, `disk`,
    /// `disk:RATIO`; `auto`: caps on particles with orientations.
    #[param(default = "auto".to_string())]
    shape: String,
    /// Types to hide. Centers of rigid bodies are hidden unless another field names their type.
    #[param(default = vec![])]
    hide: Vec<String>,
    /// Types drawn translucent, such as a solvent; of their particles, only the nearest one is seen.
    #[param(default = vec![])]
    translucent: Vec<String>,
    /// Slices, `axis,min,max`: only particles between two values of a coordinate are shown.
    #[param(default = vec![])]
    slice: Vec<String>,
    /// Whether to show the box edges.
    #[param(default = true)]
    edges: bool,
    /// Whether to show bonds.
    #[param(default = true)]
    bonds: bool,
    /// Whether to show bonded particles in one piece, with their center in the box.
    #[param(default = false)]
    whole: bool,
    /// Whether to add a legend for the colors.
    #[param(default = false)]
    key: bool,
    /// Whether to add a scale bar below; with perspective, it holds at the depth of the center.
    #[param(default = false)]
    scale_bar: bool,
    /// Background color.
    #[param(default = "white".to_string())]
    background: String,
    #[param(skip)]
    scene: View,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    host: Option<Host>,
    /// Whether the log names a picture without particles.
    #[param(skip)]
    warned: bool,
}

impl Render {
    fn scene(&self) -> std::result::Result<View, String> {
        let mut v = View { color: ColorBy::parse(&self.color), hide: self.hide.clone(), ..View::default() };
        v.set_size(&self.size)?;
        v.direction = self.view.as_deref().map(Direction::parse).transpose()?;
        v.perspective = self.orthographic.then_some(false);
        v.set_shape(&self.shape)?;
        v.set_background(&self.background)?;
        self.range.as_deref().map_or(Ok(()), |r| v.set_range(r))?;
        self.colors.as_deref().map_or(Ok(()), |c| v.set_colors(c))?;
        self.radius.as_deref().map_or(Ok(()), |r| v.set_radius(r))?;
        v.slices = self.slice.iter().map(|s| Slice::parse(s)).collect::<std::result::Result<_, _>>()?;
        (v.edges, v.bonds) = (self.edges, self.bonds);
        v.translucent.clone_from(&self.translucent);
        (v.whole, v.key, v.scale_bar) = (self.whole, self.key, self.scale_bar);
        v.check(&self.system.types, &self.system.arrays)?;
        Ok(v)
    }

    fn path(&self, step: u64) -> PathBuf {
        self.system.path(&self.file.value.replace("{step}", &format!("{step:010}")))
    }
}

impl Analyzer for Render {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.wants.particles = true;
        needs.wants.topology = true;
        needs.plain_images = self.whole;
        self.system = system.clone();
        let mut errors: Vec<InputError> = vec![];
        match self.scene() {
            Ok(v) => {
                needs.warnings.extend(v.warning(&system.arrays, !system.bond_types.is_empty(), true));
                self.scene = v;
            }
            Err(message) => errors.push(InputError::new(message)),
        }
        let path = needs.output(system, &self.file.value, OutputKind::State);
        if path.extension().is_none_or(|e| e != "png") {
            errors.push(InputError::at(self.file.at, "pictures are PNG files; the name must end in .png"));
        }
        if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host else { return Err(Error::Run("Render: `start` was not called".into())) };
        let path = self.path(frame.step());
        let threads = |n: usize, f: &(dyn Fn(usize) + Sync)| host.parallel(n, 1, |range| range.for_each(f));
        let state = frame.snapshot(&self.system);
        if !self.warned && !self.scene.shows_particles(&state) {
            self.warned = true;
            let text = format!("Render: the slices, hidden types and radii leave no particle in {}", path.display());
            host.log(Level::Warn, &text);
        }
        let drawn = self.scene.picture(&state, &threads).and_then(|image| image.png());
        let bytes = drawn.map_err(|e| Error::Run(format!("Render: {e}")))?;
        replace(&path, |out| out.write_all(&bytes)).map_err(|e| Error::io(&path, e))
    }
}
