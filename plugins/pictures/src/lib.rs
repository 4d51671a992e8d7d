//! Pictures of the particles while a run goes on.

use galamost_pictures::{ColorBy, Direction, Slice, View};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

galamost_plugin_api::plugin!();

/// Draws the particles as a PNG file every `every` steps: balls, caps and rods by their orientations, bonds, edges of the box.
///
/// `{step}` in the name stands for the step with 10 digits: `frame.{step}.png` gives `frame.0000010000.png`; without it the
/// picture is drawn anew each time. A file of this name is always whole. Fields are the options of `galamost render`, in the
/// same words. Colors of a property keep their meaning from picture to picture if `range` is given. Bonds across the border of
/// the box are not drawn unless `whole` shows what they hold together in one piece. With `key` a strip on the right says what colors
/// mean: a body of each type with its name, or a bar with the numbers of a property, pointed where some are beyond its ends. The picture is drawn by the run's threads, and is the same for any number of them.
///
/// ```ron
/// Render(every: 100, file: "frame.{step}.png", size: "320x240")
/// ```
#[component(Analyzer, "Render")]
#[derive(Params)]
pub struct Render {
    /// Steps from one picture to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write; `{step}` in it stands for the step.
    file: Spanned<String>,
    /// Pixels of the picture, `WIDTHxHEIGHT`.
    #[param(default = "1200x900".to_string())]
    size: String,
    /// Where the viewer is: `x`, `y`, `z`, `-x`, `-y`, `-z`, or `azimuth,elevation` in degrees; by default to the right of the
    /// front, above; right above in two dimensions.
    view: Option<String>,
    /// What is far is as large as what is near.
    #[param(default = false)]
    orthographic: bool,
    /// `type`, `molecule`, or a number of each particle: `charge`, `diameter`, `mass`, `speed`, `x`, `y`, `z`, `tag`, any array.
    #[param(default = "type".to_string())]
    color: String,
    /// Numbers at the ends of the colors of a property, `low,high`; by default of each picture by itself.
    range: Option<String>,
    /// Colors of types, as `A=red,B=#1f77b4`.
    colors: Option<String>,
    /// Radius of all particles, or of types, as `A=0.5,B=0.3`; by default half of the array `diameter`, or ½, less in a dense
    /// system.
    radius: Option<String>,
    /// `sphere`, `janus`, `triblock`, `rod`, `rod:RATIO`, `disk`, `disk:RATIO`, or of types, as `A=rod:3,B=sphere`; `auto`: caps on
    /// particles that turn.
    #[param(default = "auto".to_string())]
    shape: String,
    /// Types that are not shown.
    #[param(default = vec![])]
    hide: Vec<String>,
    /// Only particles between two values of a coordinate, each `axis,min,max`.
    #[param(default = vec![])]
    slice: Vec<String>,
    /// Whether the edges of the box are shown.
    #[param(default = true)]
    edges: bool,
    /// Whether bonds are shown.
    #[param(default = true)]
    bonds: bool,
    /// Whether what bonds hold together is shown unbroken, with its middle in the box.
    #[param(default = false)]
    whole: bool,
    /// Whether a key says what colors mean.
    #[param(default = false)]
    key: bool,
    /// The color behind everything.
    #[param(default = "white".to_string())]
    background: String,
    #[param(skip)]
    looking: View,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    host: Option<Host>,
}

impl Render {
    fn looking(&self) -> std::result::Result<View, String> {
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
        (v.whole, v.key) = (self.whole, self.key);
        v.check(&self.system.types, &self.system.arrays)?;
        Ok(v)
    }

    fn path(&self, step: u64) -> PathBuf {
        self.system.path(&self.file.value.replace("{step}", &format!("{step:010}")))
    }
}

impl Analyzer for Render {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        needs.wants.topology = true;
        self.system = system.clone();
        let mut errors: Vec<InputError> = vec![];
        match self.looking() {
            Ok(v) => self.looking = v,
            Err(message) => errors.push(InputError::new(message)),
        }
        let path = self.path(0);
        if path.extension().is_none_or(|e| e != "png") {
            errors.push(InputError::at(self.file.at, "pictures are PNG: the name must end in .png"));
        }
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|f| !f.is_dir()) {
            errors.push(InputError::at(self.file.at, format!("there is no folder {} for `file`", folder.display())));
        }
        if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host else { return Err(Error::Run("Render was not started".into())) };
        let path = self.path(frame.step());
        let threads = |n: usize, f: &(dyn Fn(usize) + Sync)| host.parallel(n, 1, |range| range.for_each(f));
        let drawn = self.looking.picture(&frame.snapshot(&self.system), &threads).and_then(|image| image.png());
        let bytes = drawn.map_err(|e| Error::Run(format!("Render: {e}")))?;
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, &path));
        if written.is_err() {
            // a full disk needs the room; the first error is the one to tell
            let _ = std::fs::remove_file(&part);
        }
        written.map_err(|e| Error::io(&path, e))
    }
}
