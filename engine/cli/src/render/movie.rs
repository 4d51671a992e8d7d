//! `galamost render --movie`: a movie of a trajectory, through FFmpeg or as an animated PNG.

use super::all_threads;
use crate::common::{OverwriteArgs, file_failure, input_error};
use crate::files::{Reader, select_frames};
use galamost_engine::diagnostic::{Failure, counted};
use galamost_pictures::{Animation, Image, Rgb, View};
use galamost_plugin_api::output::temporary;
use galamost_plugin_api::snapshot::Snapshot;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Time between two messages about the progress.
const REPORT: Duration = Duration::from_secs(10);

/// What is made of which frames.
pub struct MovieOptions<'a> {
    /// Output file: `.mp4`, `.gif`, or `.png`.
    pub out: &'a Path,
    /// Whether the file may be replaced.
    pub overwrite: OverwriteArgs,
    /// Frames, as `FIRST:LAST:EVERY`; `None` for all of them.
    pub frames: Option<&'a str>,
    /// Frames per second.
    pub rate: f64,
}

/// Renders frames of a trajectory into a movie and returns the file that was written: an animated PNG if there is no FFmpeg.
/// `settle` completes the view with the first frame.
///
/// # Errors
/// Returns an error if the file has fewer than two frames, the view does not fit, or the movie cannot be written.
pub fn movie(
    reader: &Reader,
    source: &Path,
    options: &MovieOptions<'_>,
    settle: impl Fn(&Snapshot) -> Result<View, Failure>,
) -> Result<PathBuf, Failure> {
    let format = options.out.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !["mp4", "gif", "png"].contains(&format) {
        return Err(input_error(options.out, "unknown movie format: the file name must end in .mp4, .gif, or .png"));
    }
    if let Some(folder) = options.out.parent().filter(|f| !f.as_os_str().is_empty() && !f.is_dir()) {
        return Err(input_error(options.out, format!("the folder {} does not exist", folder.display())));
    }
    options.overwrite.check(options.out)?;
    let frames = select_frames(options.frames, reader.frames()?.unwrap_or(1).max(1));
    let frames = frames.map_err(|m| input_error("--frames", m))?;
    if frames.len() < 2 {
        return Err(input_error(
            source,
            "a movie needs at least two frames of a trajectory; without --movie, a frame is drawn",
        ));
    }
    let read = |k: u64| reader.read(Some(k as i64));
    let first = read(frames[0])?;
    let view = framed(settle(&first)?, source, frames.iter().map(|k| read(*k)))?;
    let mut sink = Sink::open(options, view.size, frames.len() as u32, view.background)?;
    let begun = Instant::now();
    let mut reported = begun;
    for (k, frame) in frames.iter().enumerate() {
        let image = view.picture(&read(*frame)?, &all_threads).map_err(|m| input_error(source, m))?;
        sink.add(&image)?;
        if reported.elapsed() > REPORT {
            reported = Instant::now();
            info!("frame {} of {}, {:.1} s", k + 1, frames.len(), begun.elapsed().as_secs_f64());
        }
    }
    let out = sink.finish()?;
    info!("{} in {:.1} s", counted(frames.len() as u64, "frame"), begun.elapsed().as_secs_f64());
    Ok(out)
}

/// Returns the view with a camera that holds the boxes of all frames, and with one color scale for all of them. Single frames
/// may be without particles.
fn framed(
    mut view: View,
    source: &Path,
    states: impl Iterator<Item = Result<Snapshot, Failure>>,
) -> Result<View, Failure> {
    let (mut framing, mut range, mut shown) = ([0.0f64; 3], None::<[f64; 2]>, false);
    for state in states {
        let state = state?;
        shown = shown || view.shows_particles(&state);
        framing = std::array::from_fn(|k| framing[k].max(state.box_length[k]));
        if let Some([low, high]) = view.color_range(&state).map_err(|m| input_error(source, m))? {
            let [l, h] = range.unwrap_or([low, high]);
            range = Some([l.min(low), h.max(high)]);
        }
    }
    if !shown {
        let message = "no particle is drawn in any frame; change the slices, the hidden types or the radii";
        return Err(input_error(source, message));
    }
    view.needs_particles = false;
    view.framing = Some(framing);
    view.range = view.range.or(range);
    Ok(view)
}

/// Where the images of a movie go. The file has a temporary name until it is complete.
struct Sink {
    /// `None` once it has ended.
    encoder: Option<Encoder>,
    part: PathBuf,
    out: PathBuf,
}

enum Encoder {
    FFmpeg(Child),
    Animation(Box<Animation<BufWriter<File>>>),
}

impl Sink {
    /// Starts FFmpeg, or an animated PNG if that is asked for or FFmpeg is missing.
    fn open(options: &MovieOptions<'_>, size: [u32; 2], frames: u32, background: Rgb) -> Result<Self, Failure> {
        let mut out = options.out.to_path_buf();
        if out.extension().is_some_and(|e| e != "png") {
            let part = temporary(&out);
            match ffmpeg(&out, &part, size, options.rate, background).spawn() {
                Ok(child) => return Ok(Self { encoder: Some(Encoder::FFmpeg(child)), part, out }),
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(Failure::run(format!("ffmpeg cannot be started: {e}"))),
            }
            let asked = out.display().to_string();
            out.set_extension("png");
            warn!("ffmpeg is not installed: writing an animated PNG, {}, instead of {asked}", out.display());
        }
        options.overwrite.check(&out)?;
        let part = temporary(&out);
        let file = File::create(&part).map_err(|e| file_failure(&part, e))?;
        let animation = Animation::new(BufWriter::new(file), size, frames, options.rate);
        let animation = animation.map_err(|e| file_failure(&out, e))?;
        Ok(Self { encoder: Some(Encoder::Animation(Box::new(animation))), part, out })
    }

    fn add(&mut self, image: &Image) -> Result<(), Failure> {
        match &mut self.encoder {
            None => Ok(()),
            Some(Encoder::Animation(a)) => a.add(image).map_err(|e| file_failure(&self.out, e)),
            Some(Encoder::FFmpeg(child)) => {
                let written = child.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(&image.pixels));
                // FFmpeg has ended: its message says why
                written.or_else(|e| ended(child).and(Err(file_failure(&self.out, e))))
            }
        }
    }

    fn finish(mut self) -> Result<PathBuf, Failure> {
        match self.encoder.take() {
            None => {}
            Some(Encoder::Animation(a)) => a.finish().map_err(|e| file_failure(&self.out, e))?,
            Some(Encoder::FFmpeg(mut child)) => ended(&mut child)?,
        }
        std::fs::rename(&self.part, &self.out).map_err(|e| file_failure(&self.out, e))?;
        Ok(self.out.clone())
    }
}

impl Drop for Sink {
    /// Removes what is left of a movie that failed.
    fn drop(&mut self) {
        if let Some(Encoder::FFmpeg(child)) = &mut self.encoder {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_file(&self.part);
    }
}

/// Returns the command that reads images from standard input.
fn ffmpeg(out: &Path, part: &Path, size: [u32; 2], rate: f64, background: Rgb) -> Command {
    let mut command = Command::new("ffmpeg");
    command.args([
        "-hide_banner",
        "-loglevel",
        "error",
        "-y",
        "-f",
        "rawvideo",
        "-pixel_format",
        "rgb24",
        "-video_size",
    ]);
    command.arg(format!("{}x{}", size[0], size[1])).args(["-framerate", &rate.to_string(), "-i", "-"]);
    if out.extension().is_some_and(|e| e == "gif") {
        command.args(["-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse", "-loop", "0", "-f", "gif"]);
    } else {
        // players need even sizes and this pixel format
        let color = background.to_string().replace('#', "0x");
        command.arg("-vf").arg(format!("pad=ceil(iw/2)*2:ceil(ih/2)*2:color={color},format=yuv420p"));
        command.args(["-movflags", "+faststart", "-f", "mp4"]);
    }
    // a path that begins with a dash is no option
    command.arg(Path::new(".").join(part));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Closes the input of FFmpeg and waits for its end.
///
/// # Errors
/// Returns FFmpeg's message if it fails.
fn ended(child: &mut Child) -> Result<(), Failure> {
    drop(child.stdin.take());
    let mut message = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        let _ = pipe.read_to_string(&mut message);
    }
    let status = child.wait().map_err(|e| Failure::run(format!("ffmpeg: {e}")))?;
    if status.success() { Ok(()) } else { Err(Failure::run(format!("ffmpeg failed ({status}): {}", message.trim()))) }
}
