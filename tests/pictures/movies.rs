//! Movies of trajectories: through FFmpeg, through one that fails, and without one.

use galamost_tests::{galamost, program, words};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const RUN: &str = r#"(
    seed: 3,
    initial: [ Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 1.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Gsd(every: 10, file: "run.gsd") ],
    stages: [ (steps: 40, dt: 0.004) ],
)"#;

/// A folder with a trajectory of five frames.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("run.ron"), RUN).expect("written");
    let done = galamost(folder.path(), &["--pipeline", "run.ron", "--device", "cpu", "--quiet"]);
    assert!(done.status.success(), "{}", words(&done));
    folder
}

/// Runs `galamost render run.gsd --movie` with the programs of one folder only.
fn movie(folder: &Path, programs: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(["render", "run.gsd", "--size", "101x75", "--movie"]).args(args);
    command.current_dir(folder).env("PATH", programs).output().expect("the program runs")
}

/// Returns the number of frames and the milliseconds between them, and checks that frames differ.
fn frames(path: &Path) -> (u32, u16) {
    let file = std::io::BufReader::new(std::fs::File::open(path).expect("a movie"));
    let mut reader = png::Decoder::new(file).read_info().expect("PNG");
    let control = reader.info().animation_control.expect("an animation");
    let (mut all, mut delay) = (vec![], 0);
    for _ in 0..control.num_frames {
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        reader.next_frame(&mut pixels).expect("pixels");
        delay = reader.info().frame_control.expect("a frame").delay_num;
        assert!(!all.contains(&pixels), "two frames are the same");
        all.push(pixels);
    }
    (control.num_frames, delay)
}

#[test]
fn without_ffmpeg_a_movie_is_an_animated_png() {
    let folder = folder();
    let nothing = tempfile::tempdir().expect("a folder");
    let out = movie(folder.path(), nothing.path(), &["m.mp4", "--fps", "10"]);
    assert!(out.status.success(), "{}", words(&out));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "m.png\n");
    assert!(words(&out).contains("ffmpeg is not installed: writing an animated PNG, m.png, instead of m.mp4"));
    assert_eq!(frames(&folder.path().join("m.png")), (5, 100));
    assert!(!folder.path().join("m.mp4").exists());
    // asked for, it is no surprise
    let out = movie(folder.path(), nothing.path(), &["n.png", "--frames", "0:-1:2"]);
    assert!(out.status.success() && !words(&out).contains("WARN"), "{}", words(&out));
    assert_eq!(frames(&folder.path().join("n.png")), (3, 40));
}

/// Writes a shell script named `ffmpeg`.
fn script(folder: &Path, text: &str) {
    let path = folder.join("ffmpeg");
    std::fs::write(&path, format!("#!/bin/sh\n{text}")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
}

#[test]
fn ffmpeg_gets_every_frame_and_its_errors_are_reported() {
    let folder = folder();
    let programs = tempfile::tempdir().expect("a folder");
    // keeps the arguments, and writes what it reads into the last one
    script(programs.path(), "echo \"$@\" > args\nfor last; do :; done\n/bin/cat > \"$last\"\n");
    let out = movie(folder.path(), programs.path(), &["m.mp4", "--background", "#102030"]);
    assert!(out.status.success(), "{}", words(&out));
    let pixels = std::fs::read(folder.path().join("m.mp4")).expect("a movie");
    assert_eq!(pixels.len(), 5 * 101 * 75 * 3);
    assert_eq!(pixels[..3], [0x10, 0x20, 0x30]);
    let args = std::fs::read_to_string(folder.path().join("args")).expect("arguments");
    for part in ["-video_size 101x75", "-framerate 25", "color=0x102030", "-f mp4 ./.galamost.m.mp4.part"] {
        assert!(args.contains(part), "{part} is not in {args}");
    }
    script(programs.path(), "echo 'no such codec' >&2\nexit 3\n");
    let out = movie(folder.path(), programs.path(), &["x.gif"]);
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    assert!(words(&out).contains("ffmpeg failed") && words(&out).contains("no such codec"), "{}", words(&out));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").filter_map(Result::ok).collect();
    assert!(left.iter().all(|e| !e.file_name().to_string_lossy().starts_with("x.gif")), "{left:?}");
}

#[test]
fn movies_of_ffmpeg_are_videos() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs ffmpeg: no video is made");
        return;
    }
    let folder = folder();
    for (name, begin) in [("m.mp4", &b"ftyp"[..]), ("m.gif", b"GIF89a")] {
        let out = galamost(folder.path(), &["render", "run.gsd", "--size", "101x75", "--movie", name]);
        assert!(out.status.success(), "{}", words(&out));
        let bytes = std::fs::read(folder.path().join(name)).expect("a movie");
        assert!(bytes.len() > 1000 && bytes[..16].windows(begin.len()).any(|w| w == begin), "{name}");
    }
}

#[test]
fn mistakes_of_a_movie_are_errors() {
    let folder = folder();
    let out = galamost(folder.path(), &["convert", "run.gsd", "one.xml", "--frames", "0"]);
    assert!(out.status.success(), "{}", words(&out));
    for (args, part) in [
        (&["run.gsd", "--movie", "m.avi"][..], "unknown movie format: the file name must end in .mp4, .gif, or .png"),
        (&["run.gsd", "--movie", "none/m.gif"], "the folder none does not exist"),
        (&["run.ron", "--movie", "m.png"], "a movie needs the trajectory that a run has written, such as a .gsd file"),
        (&["one.xml", "--movie", "m.png"], "a movie needs at least two frames"),
        (&["run.gsd", "--movie", "m.png", "--frames", "2"], "a movie needs at least two frames"),
        (&["run.gsd", "--movie", "m.png", "--frames", "9:"], "no frame 9: the file has 5 frames"),
        (&["run.gsd", "--movie", "m.png", "--fps", "0"], "0 is not between 0.1 and 120 frames per second"),
        (&["run.gsd", "--movie", "m.png", "--translucent", "Z"], "there is no type `Z`"),
        (&["run.gsd", "--frames", "2"], "--movie"),
        (&["run.gsd", "--movie", "m.png", "--out", "x.png"], "--out"),
    ] {
        let mut all = vec!["render"];
        all.extend(args);
        let out = galamost(folder.path(), &all);
        assert!(out.status.code() == Some(2) && words(&out).contains(part), "{args:?}: {}", words(&out));
    }
}
