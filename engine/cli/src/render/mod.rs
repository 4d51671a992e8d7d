//! `galamost render`: renders particles as PNG, and trajectories as movies.

mod movie;

use crate::common::{Context, OverwriteArgs, input_error, refuse_input, usage_error};
use crate::files::Reader;
use crate::terminal::print;
use clap::{Args, ValueEnum};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::Pipeline;
use galamost_engine::plan::{CheckOptions, check};
use galamost_engine::plugins::Registry;
use galamost_pictures::{ColorBy, Direction, Slice, View, solvent_types};
use galamost_plugin_api::snapshot::Snapshot;
use movie::{MovieOptions, movie};
use std::path::{Path, PathBuf};
use tracing::warn;

/// Options of `galamost render`.
#[derive(Args, Debug)]
pub struct RenderArgs {
    /// A particle file, or a pipeline, whose initial state is rendered.
    snapshot: PathBuf,
    /// Component that reads the file, overriding the file extension.
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Particle file with types and bonds, for formats without them (DCD, XTC, TRR).
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Frame of a trajectory, counted from 0; negative numbers count from the end [default: the last frame].
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    frame: Option<i64>,
    /// Output file [default: the input file with the extension .png].
    #[arg(long, value_name = "FILE.png")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
    /// Render a trajectory as a movie. `.mp4` and `.gif` need FFmpeg; without it, and for `.png`, the movie is an animated
    /// PNG.
    #[arg(long, value_name = "FILE.mp4|gif|png", conflicts_with_all = ["out", "frame"])]
    movie: Option<PathBuf>,
    /// With --movie: frames, counted from 0, including LAST; negative numbers count from the end: `10:`, `0:-1:10`.
    #[arg(long, value_name = "FIRST:LAST:EVERY", allow_hyphen_values = true, requires = "movie")]
    frames: Option<String>,
    /// With --movie: frames per second, 0.1 to 120 [default: 25].
    #[arg(long, value_name = "RATE", requires = "movie")]
    fps: Option<f64>,
    #[command(flatten)]
    view: ViewArgs,
}

/// Least height in pixels of a picture with a scale bar.
const LEAST_SCALED: u32 = 200;

/// Whether bonds are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bonds {
    /// Draw bonds if there are any.
    Auto,
    /// Draw bonds; it is an error if there are none.
    On,
    /// Do not draw bonds.
    Off,
}

/// Options of the view.
#[derive(Args, Debug)]
pub struct ViewArgs {
    /// Size of the image in pixels.
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1200x900")]
    size: String,
    /// Position of the camera: x, y, z, -x, -y, -z, or azimuth,elevation in degrees.
    #[arg(long, value_name = "DIRECTION", allow_hyphen_values = true)]
    view: Option<String>,
    /// Use an orthographic instead of a perspective projection.
    #[arg(long)]
    orthographic: bool,
    /// Color particles by type, by molecule, or by a property: charge, diameter, mass, speed, x, y, z, tag, or any
    /// array.
    #[arg(long, value_name = "WHAT", default_value = "type")]
    color: String,
    /// Range of the color scale, with a property as --color.
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    range: Option<String>,
    /// Colors of particle types: A=red,B=#1f77b4.
    #[arg(long, value_name = "TYPE=COLOR,…")]
    colors: Option<String>,
    /// Radius of all particles, or of particle types: A=0.5,B=0.3.
    #[arg(long, value_name = "RADII")]
    radius: Option<String>,
    /// Shape: sphere, janus, triblock, rod, rod:RATIO, disk or disk:RATIO; or of particle types: A=rod:3,B=sphere.
    #[arg(long, value_name = "SHAPES", default_value = "auto")]
    shape: String,
    /// Hide these particle types. Centers of rigid bodies are hidden unless another option names their type.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    hide: Vec<String>,
    /// Draw these particle types translucent [default: the solvent of molecules or of rotating particles].
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    translucent: Option<Vec<String>>,
    /// Draw all particles opaque.
    #[arg(long, conflicts_with = "translucent")]
    opaque: bool,
    /// Show only particles between two values of a coordinate; may be given several times.
    #[arg(long, value_name = "AXIS,MIN,MAX", allow_hyphen_values = true)]
    slice: Vec<String>,
    /// Do not draw the simulation box.
    #[arg(long)]
    no_box: bool,
    /// Draw bonds: auto (if there are any), on or off.
    #[arg(long, value_enum, default_value = "auto", hide_possible_values = true)]
    bonds: Bonds,
    /// Draw molecules unwrapped, with their centers inside the box.
    #[arg(long)]
    whole: bool,
    /// Draw a legend on the right: particle types, or the color scale of a property.
    #[arg(long)]
    key: bool,
    /// Do not draw the scale bar, which pictures of 200 pixels and more have. With perspective, it holds at the depth of the
    /// center.
    #[arg(long)]
    no_scale_bar: bool,
    /// Background color.
    #[arg(long, value_name = "COLOR", default_value = "white")]
    background: String,
}

impl ViewArgs {
    /// Builds the view from the options.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    fn view(&self) -> Result<View, Failure> {
        let mut v = View { color: ColorBy::parse(&self.color), hide: self.hide.clone(), ..View::default() };
        v.set_size(&self.size).map_err(|e| input_error("--size", e))?;
        v.direction = self.view.as_deref().map(Direction::parse).transpose().map_err(|e| input_error("--view", e))?;
        v.perspective = self.orthographic.then_some(false);
        v.set_shape(&self.shape).map_err(|e| input_error("--shape", e))?;
        v.set_background(&self.background).map_err(|e| input_error("--background", e))?;
        if let Some(r) = &self.range {
            v.set_range(r).map_err(|e| input_error("--range", e))?;
        }
        if let Some(c) = &self.colors {
            v.set_colors(c).map_err(|e| input_error("--colors", e))?;
        }
        if let Some(r) = &self.radius {
            v.set_radius(r).map_err(|e| input_error("--radius", e))?;
        }
        v.slices = self
            .slice
            .iter()
            .map(|s| Slice::parse(s))
            .collect::<Result<_, _>>()
            .map_err(|e| input_error("--slice", e))?;
        v.edges = !self.no_box;
        v.bonds = self.bonds != Bonds::Off;
        (v.whole, v.key) = (self.whole, self.key);
        v.scale_bar = !self.no_scale_bar && v.size[1] >= LEAST_SCALED;
        v.translucent = self.translucent.clone().unwrap_or_default();
        v.needs_particles = true;
        Ok(v)
    }
}

/// Returns the initial state of a pipeline.
///
/// # Errors
/// Returns an error if the pipeline is invalid.
pub fn initial_state(path: &Path, registry: &Registry) -> Result<Snapshot, Failure> {
    Ok(check(Pipeline::read(path, &[])?, registry, CheckOptions::default())?.snapshot)
}

/// Calls `f` for every index below `n` on the program's threads.
pub fn all_threads(n: usize, f: &(dyn Fn(usize) + Sync)) {
    use rayon::prelude::*;
    (0..n).into_par_iter().for_each(f);
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the file or the view is invalid, or if the image cannot be written.
pub(crate) fn run(args: &RenderArgs, context: &Context) -> Result<u8, Failure> {
    let view = args.view.view()?;
    let registry = context.registry();
    let settle = |state: &Snapshot| args.settled(&view, state);
    if let Some(out) = &args.movie {
        let rate = args.fps.unwrap_or(25.0);
        if !(0.1..=120.0).contains(&rate) {
            return Err(input_error("--fps", format!("{rate} is not between 0.1 and 120 frames per second")));
        }
        if args.is_pipeline() {
            let message = "a movie needs the trajectory that a run has written, such as a .gsd file";
            return Err(input_error(&args.snapshot, message));
        }
        refuse_input(out, args.topology.iter().chain([&args.snapshot]))?;
        let reader = args.reader(&registry)?;
        let options = MovieOptions { out, overwrite: args.overwrite, frames: args.frames.as_deref(), rate };
        let out = movie(&reader, &args.snapshot, &options, settle)?;
        print(format!("{}\n", out.display()))?;
        return Ok(0);
    }
    // the parser does not require what another option excludes
    if args.frames.is_some() || args.fps.is_some() {
        return Err(usage_error("render: --frames and --fps need --movie; --frame selects the frame of a picture"));
    }
    let out = args.out.clone().unwrap_or_else(|| args.snapshot.with_extension("png"));
    if out.extension().is_none_or(|e| e != "png") {
        return Err(input_error(&out, "unknown image format: the file name must end in .png"));
    }
    refuse_input(&out, args.topology.iter().chain([&args.snapshot]))?;
    args.overwrite.check(&out)?;
    let state = match args.is_pipeline() {
        true if args.topology.is_some() => {
            return Err(input_error(&args.snapshot, "a pipeline has its particles itself; leave out --topology"));
        }
        true => initial_state(&args.snapshot, &registry)?,
        false => args.reader(&registry)?.read(args.frame)?,
    };
    let image = settle(&state)?.picture(&state, &all_threads).map_err(|m| input_error(&args.snapshot, m))?;
    args.overwrite.write(&out, image.png().map_err(Failure::run)?)?;
    print(format!("{}\n", out.display()))?;
    Ok(0)
}

impl RenderArgs {
    /// Returns whether the initial state of a pipeline is rendered.
    fn is_pipeline(&self) -> bool {
        self.from.is_none() && self.snapshot.extension().is_some_and(|e| e == "ron")
    }

    /// Opens the particle file.
    fn reader(&self, registry: &Registry) -> Result<Reader, Failure> {
        let reader = Reader::open_with(&self.snapshot, self.from.as_deref(), "", registry)?;
        reader.with_topology(self.topology.as_deref(), registry)
    }

    /// Completes a view with what depends on the particles: a translucent solvent. Warns if the view shows what they do not have.
    fn settled(&self, view: &View, state: &Snapshot) -> Result<View, Failure> {
        if self.view.bonds == Bonds::On && state.bonds.is_empty() {
            return Err(input_error("--bonds", "the state has no bonds"));
        }
        let arrays: Vec<String> = state.arrays.keys().cloned().collect();
        let moving = state.velocity.iter().flatten().any(|v| *v != 0.0);
        if let Some(warning) = view.warning(&arrays, !state.bonds.is_empty(), moving) {
            warn!("{}: {warning}", self.snapshot.display());
        }
        let mut view = view.clone();
        if self.view.translucent.is_none() && !self.view.opaque {
            view.translucent = solvent_types(state);
        }
        Ok(view)
    }
}
