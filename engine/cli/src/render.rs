//! `galamost render`: a picture of a state.

use clap::{Args, ValueEnum};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::Pipeline;
use galamost_engine::plan::{CheckOptions, check};
use galamost_engine::plugins::Registry;
use galamost_pictures::{ColorBy, Direction, Slice, View};
use galamost_plugin_api::snapshot::Snapshot;
use std::path::{Path, PathBuf};

/// Options of the command.
#[derive(Args, Debug)]
pub struct RenderArgs {
    /// A file with particles, or a pipeline, of which the initial state is shown.
    snapshot: PathBuf,
    /// Of a trajectory: this frame, from 0; a negative number counts from the end; by default the last one.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    frame: Option<i64>,
    /// The picture; by default named as the file, with .png.
    #[arg(long, value_name = "FILE.png")]
    out: Option<PathBuf>,
    #[command(flatten)]
    view: ViewArgs,
}

/// Whether bonds are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bonds {
    /// If there are any.
    Auto,
    /// There must be some.
    On,
    /// No.
    Off,
}

/// Options of a view.
#[derive(Args, Debug)]
pub struct ViewArgs {
    /// Pixels of the picture.
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1200x900")]
    size: String,
    /// Where the viewer is: x, y, z, -x, -y, -z, or azimuth,elevation in degrees.
    #[arg(long, value_name = "DIRECTION", allow_hyphen_values = true)]
    view: Option<String>,
    /// What is far is as large as what is near.
    #[arg(long)]
    orthographic: bool,
    /// type, molecule, or a number of each particle: charge, diameter, mass, speed, x, y, z, tag, or any array.
    #[arg(long, value_name = "WHAT", default_value = "type")]
    color: String,
    /// Numbers at the ends of the colors of a property.
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    range: Option<String>,
    /// Colors of types, as A=red,B=#1f77b4.
    #[arg(long, value_name = "TYPE=COLOR,…")]
    colors: Option<String>,
    /// Radius of all particles, or of types, as A=0.5,B=0.3.
    #[arg(long, value_name = "RADII")]
    radius: Option<String>,
    /// sphere, janus, triblock, rod, rod:RATIO, disk, disk:RATIO; or of types, as A=rod:3,B=sphere.
    #[arg(long, value_name = "SHAPES", default_value = "auto")]
    shape: String,
    /// Types that are not shown.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    hide: Vec<String>,
    /// Only particles between two values of a coordinate; may be given several times.
    #[arg(long, value_name = "AXIS,MIN,MAX", allow_hyphen_values = true)]
    slice: Vec<String>,
    /// No edges of the box.
    #[arg(long)]
    no_box: bool,
    /// auto, on or off.
    #[arg(long, value_enum, default_value = "auto")]
    bonds: Bonds,
    /// What bonds hold together is shown unbroken, with its middle in the box.
    #[arg(long)]
    whole: bool,
    /// A key on the right: types, or a bar of the colors of a property.
    #[arg(long)]
    key: bool,
    /// The color behind everything.
    #[arg(long, value_name = "COLOR", default_value = "white")]
    background: String,
}

fn wrong(option: &str, message: impl Into<String>) -> Failure {
    Failure::Input(vec![Diagnostic::new(option.as_ref(), None, message)])
}

impl ViewArgs {
    /// The view that the options mean.
    ///
    /// # Errors
    /// An option that says nothing.
    fn view(&self) -> Result<View, Failure> {
        let mut v = View { color: ColorBy::parse(&self.color), hide: self.hide.clone(), ..View::default() };
        v.set_size(&self.size).map_err(|e| wrong("--size", e))?;
        v.direction = self.view.as_deref().map(Direction::parse).transpose().map_err(|e| wrong("--view", e))?;
        v.perspective = self.orthographic.then_some(false);
        v.set_shape(&self.shape).map_err(|e| wrong("--shape", e))?;
        v.set_background(&self.background).map_err(|e| wrong("--background", e))?;
        if let Some(r) = &self.range {
            v.set_range(r).map_err(|e| wrong("--range", e))?;
        }
        if let Some(c) = &self.colors {
            v.set_colors(c).map_err(|e| wrong("--colors", e))?;
        }
        if let Some(r) = &self.radius {
            v.set_radius(r).map_err(|e| wrong("--radius", e))?;
        }
        v.slices =
            self.slice.iter().map(|s| Slice::parse(s)).collect::<Result<_, _>>().map_err(|e| wrong("--slice", e))?;
        v.edges = !self.no_box;
        v.bonds = self.bonds != Bonds::Off;
        (v.whole, v.key) = (self.whole, self.key);
        Ok(v)
    }
}

/// The initial state of a pipeline.
fn initial(path: &Path, registry: &Registry) -> Result<Snapshot, Failure> {
    Ok(check(Pipeline::read(path, &[])?, registry, CheckOptions::default())?.snapshot)
}

/// A state out of a file or a pipeline.
///
/// # Errors
/// It cannot be read.
pub fn state(path: &Path, frame: Option<i64>, registry: &Registry) -> Result<Snapshot, Failure> {
    if path.extension().is_some_and(|e| e == "ron") {
        return initial(path, registry);
    }
    crate::files::read(path, frame, registry)
}

/// Work on the program's threads, for pictures.
pub fn all_threads(n: usize, f: &(dyn Fn(usize) + Sync)) {
    use rayon::prelude::*;
    (0..n).into_par_iter().for_each(f);
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the file or the view.
pub(crate) fn run(args: &RenderArgs, registry: &Registry) -> Result<u8, Failure> {
    let view = args.view.view()?;
    let out = args.out.clone().unwrap_or_else(|| args.snapshot.with_extension("png"));
    if out.extension().is_none_or(|e| e != "png") {
        return Err(wrong(&out.display().to_string(), "the picture is PNG: its name must end in .png"));
    }
    let state = state(&args.snapshot, args.frame, registry)?;
    if args.view.bonds == Bonds::On && state.bonds.is_empty() {
        return Err(wrong("--bonds", "there are no bonds"));
    }
    let about = |m: String| Failure::Input(vec![Diagnostic::new(&args.snapshot, None, m)]);
    let image = view.picture(&state, &all_threads).map_err(about)?;
    let bytes = image.png().map_err(Failure::run)?;
    std::fs::write(&out, bytes).map_err(|e| Failure::run(format!("{}: {e}", out.display())))?;
    println!("{}", out.display());
    Ok(0)
}
