//! `galamost watch`: runs that are over, running in another process, or killed; in a terminal and as a web page.

use galamost_tests::{galamost, program, skip, words};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const RUN: &str = r#"(
    seed: 4,
    initial: [ Lattice(lattice: Fcc, cells: [3, 3, 3], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.0, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 50, file: "t.csv") ],
    stages: [ (name: "short", steps: 100, dt: 0.002), (name: "long", steps: 400, dt: 0.002) ],
)"#;

fn folder() -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), RUN).expect("written");
    f
}

fn printed(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A process that ends with the test, also with one that fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(folder: &Path, args: &[&str]) -> Process {
    let mut command = Command::new(program());
    command.args(args).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    Process(command.spawn().expect("the program starts"))
}

/// Starts a run that would take hours, and waits for its first rows.
fn long_run(folder: &Path) -> Process {
    let run = spawn(folder, &["--pipeline", "p.ron", "--device", "cpu", "-q", "--steps", "1000000000"]);
    let begun = Instant::now();
    while std::fs::read_to_string(folder.join("t.csv")).map_or(0, |t| t.lines().count()) < 4 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no rows");
        std::thread::sleep(Duration::from_millis(20));
    }
    run
}

/// Sends a signal to a process and waits for its end.
fn end(mut process: Process, signal: &str) -> (Option<i32>, String) {
    let child = &mut process.0;
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    let status = child.wait().expect("an end");
    let mut text = String::new();
    for pipe in [
        child.stdout.take().map(|p| Box::new(p) as Box<dyn std::io::Read>),
        child.stderr.take().map(|p| Box::new(p) as _),
    ] {
        pipe.expect("a pipe").read_to_string(&mut text).expect("a text");
    }
    (status.code(), text)
}

#[test]
fn a_finished_run_is_one_line() {
    let f = folder();
    let done = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "-q"]);
    assert!(done.status.success(), "{}", words(&done));
    let out = galamost(f.path(), &["watch", "."]);
    let text = printed(&out);
    assert!(out.status.success() && text.lines().count() == 1, "{text}");
    assert!(text.starts_with("done, step 500 of 500 (100 %), ") && text.contains(" TPS; kT "), "{text}");
    assert!(text.contains(", pressure ") && text.contains(", potential ") && !text.contains("left"), "{text}");
    // the line has the numbers of the record and of the table
    let table = std::fs::read_to_string(f.path().join("t.csv")).expect("a table");
    let kt: f64 = table.lines().last().and_then(|l| l.split(',').nth(2)).expect("kT").parse().expect("a number");
    let shown: f64 = text.split("kT ").nth(1).and_then(|t| t.split(',').next()).expect("kT").parse().expect("a number");
    // five digits are shown
    assert!((shown / kt - 1.0).abs() < 1e-4, "{shown} {kt}");
}

#[test]
fn a_run_of_another_process_is_followed_until_it_ends() {
    let f = folder();
    let run = long_run(f.path());
    let mut watch = spawn(f.path(), &["watch", "p.ron", "--every", "0.2"]);
    let mut lines = BufReader::new(watch.0.stdout.take().expect("a pipe")).lines().map(|l| l.expect("a line"));
    let step = |line: &str| -> u64 {
        line.split("step ").nth(1).and_then(|t| t.split(' ').next()).and_then(|t| t.parse().ok()).expect("a step")
    };
    let first = lines.next().expect("a line");
    // --steps is known, although the pipeline says otherwise
    assert!(first.starts_with("running, stage long, step ") && first.contains(" of 1000000000 (0 %), "), "{first}");
    let later: Vec<String> = lines.by_ref().take(3).collect();
    assert!(step(&later[2]) > step(&first), "{first}\n{later:?}");
    assert!(later[2].contains(" TPS, ") && later[2].contains(" left; kT "), "{later:?}");
    // the speed agrees with that of the record
    let tps = |line: &str| -> f64 {
        let text = line.split(" TPS").next().and_then(|t| t.rsplit(' ').next()).expect("a speed");
        text.parse().expect("a number")
    };
    let (code, text) = end(run, "-TERM");
    assert_eq!(code, Some(0), "{text}");
    let last = lines.last().expect("a line");
    assert!(last.starts_with("stopped, can be resumed, step "), "{last}");
    assert!(watch.0.wait().expect("an end").success());
    // speeds of a busy machine scatter
    let ratio = tps(&later[2]) / tps(&last);
    assert!((0.1..10.0).contains(&ratio), "{later:?}\n{last}");
}

#[test]
fn stages_with_tables_of_their_own_are_followed() {
    let f = tempfile::tempdir().expect("a folder");
    let text = RUN.replace("analyzers: [ Thermo(every: 50, file: \"t.csv\") ],", "");
    let with = |text: String, stage: &str, file: &str| {
        let from = format!("(name: \"{stage}\", ");
        text.replace(&from, &format!("{from}analyzers: [Thermo(every: 50, file: \"{file}\")], "))
    };
    let text = with(with(text, "short", "a.csv"), "long", "t.csv");
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let run = long_run(f.path());
    let mut watch = spawn(f.path(), &["watch", "p.ron", "--every", "0.2"]);
    let mut line = String::new();
    BufReader::new(watch.0.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    assert!(line.contains("stage long, step ") && !line.contains("step 100 of"), "{line}");
    assert_eq!(end(run, "-TERM").0, Some(0));
    assert!(watch.0.wait().expect("an end").success());
}

#[test]
fn a_killed_run_is_called_so() {
    let f = folder();
    let run = long_run(f.path());
    let pid = run.0.id();
    end(run, "-KILL");
    let out = galamost(f.path(), &["watch", "p.ron"]);
    let text = printed(&out);
    assert!(out.status.success(), "{text}");
    assert!(text.starts_with(&format!("killed: process {pid} on ")) && text.contains("without finishing"), "{text}");
}

/// A run without a record cannot be followed; its lock shows that it has begun.
#[test]
fn a_run_without_a_record_is_an_error() {
    let f = folder();
    let args = ["--pipeline", "p.ron", "--device", "cpu", "-q", "--no-record", "--steps", "1000000000"];
    let run = spawn(f.path(), &args);
    let out = galamost(f.path(), &["watch", "p.ron", "--every", "0.5"]);
    let said = words(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("process {} on ", run.0.id())) && said.contains("--no-record"), "{said}");
}

#[test]
fn a_record_that_cannot_be_read_is_an_error() {
    let f = folder();
    std::fs::write(f.path().join("p.run.json"), "garbage").expect("written");
    let out = galamost(f.path(), &["watch", "p.ron"]);
    let said = words(&out);
    assert!(out.status.code() == Some(2) && said.contains("p.run.json: cannot be read as the record"), "{said}");
    assert!(printed(&out).is_empty());
}

#[test]
fn a_failed_run_says_why_and_a_missing_one_is_waited_for() {
    let f = folder();
    let watch = spawn(f.path(), &["watch", "p.ron", "--every", "0.1"]);
    std::thread::sleep(Duration::from_millis(500));
    let (code, text) = end(watch, "-INT");
    let waiting = "waiting for the run to begin: there is no record p.run.json yet (--no-record leaves it out)\n";
    assert_eq!((code, text.as_str()), (Some(0), waiting));
    // a time step at which particles overlap
    let done = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "-q", "--set", "stages[0].dt=5.0"]);
    assert_eq!(done.status.code(), Some(1), "{}", words(&done));
    let text = printed(&galamost(f.path(), &["watch", "p.ron"]));
    assert!(text.starts_with("failed: step "), "{text}");
}

#[test]
fn mistakes_of_the_call_are_errors() {
    let f = folder();
    for (args, part) in [
        (&["watch", "missing.ron"][..], "missing.ron"),
        (&["watch", "p.ron", "p.ron"], "give one run to watch"),
        (&["watch", "p.ron", "--every", "0"], "0 is not between 0.1 and 3600 seconds"),
        (&["watch", "p.ron", "--serve", "8080"], "`8080` is not an address with a port"),
        (&["watch", "p.ron", "--serve", "203.0.113.7:1"], "cannot listen on 203.0.113.7:1"),
        (&["watch", "p.ron", "--no-pictures"], "--serve"),
    ] {
        let out = galamost(f.path(), args);
        assert!(out.status.code() == Some(2) && words(&out).contains(part), "{args:?}: {}", words(&out));
    }
    // replicas have a record each
    std::fs::write(f.path().join("w.ron"), RUN.replace("t.csv", "t{replica}.csv")).expect("written");
    let run = ["--pipeline", "w.ron", "--device", "cpu", "-q", "--replicas", "2", "--steps", "20"];
    assert!(galamost(f.path(), &run).status.success());
    let out = galamost(f.path(), &["watch", "w.ron"]);
    assert!(out.status.code() == Some(2) && words(&out).contains("galamost watch w.0.ron"), "{}", words(&out));
    assert!(galamost(f.path(), &["watch", "w.0.ron"]).status.success());
}

#[test]
fn a_terminal_shows_curves_and_is_restored() {
    if Command::new("script").arg("--version").output().is_err() {
        return skip("script", "the screen of `galamost watch` is not shown in a terminal");
    }
    let f = folder();
    let run = long_run(f.path());
    let command = format!("stty rows 30 cols 110; '{}' watch p.ron --every 0.1; echo status $?", program().display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm-256color").current_dir(f.path());
    let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut terminal = Process(terminal.expect("script runs"));
    let (mut bytes, mut buffer, begun) = (vec![], [0; 4096], Instant::now());
    let mut pipe = terminal.0.stdout.take().expect("a pipe");
    let mut read = |bytes: &mut Vec<u8>| {
        let n = pipe.read(&mut buffer).unwrap_or(0);
        bytes.extend(&buffer[..n]);
        n > 0
    };
    // the last line of the screen is drawn last
    while !String::from_utf8_lossy(&bytes).contains("q quits") && read(&mut bytes) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no screen");
    }
    terminal.0.stdin.as_mut().expect("a pipe").write_all(b"q").expect("a key");
    while read(&mut bytes) {}
    terminal.0.wait().expect("an end");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    for part in ["p.ron", "running", "TPS", "kT", "pressure", "potential", "curves of t.csv", "q quits"] {
        assert!(text.contains(part), "{part} is not in {text:?}");
    }
    // the alternate screen is left, the cursor is visible again, and the run continues
    assert!(
        text.contains("\u{1b}[?1049h") && text.contains("\u{1b}[?1049l") && text.contains("\u{1b}[?25h"),
        "{text:?}"
    );
    assert!(text.trim_end().ends_with("status 0"), "{text:?}");
    assert_eq!(end(run, "-TERM").0, Some(0), "the run was not running");
}

/// Sends a request and returns the whole answer.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut client = TcpStream::connect(address).expect("a connection");
    client.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    client.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    answer
}

fn get(address: SocketAddr, path: &str, more: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n"))
}

/// Starts `watch --serve` and returns the process and its address.
fn serve(folder: &Path) -> (Process, SocketAddr) {
    let mut server = spawn(folder, &["watch", "p.ron", "--serve", "127.0.0.1:0", "--every", "0.1", "--no-pictures"]);
    let mut line = String::new();
    BufReader::new(server.0.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("http://").and_then(|l| l.strip_suffix('/')).expect("an address");
    (server, address.parse().expect("an address"))
}

#[test]
fn the_served_report_follows_the_run() {
    let f = folder();
    let (server, address) = serve(f.path());
    let first = get(address, "/", "");
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("no record of this run"), "{first}");
    let tag = |answer: &str| answer.lines().find_map(|l| l.strip_prefix("ETag: ")).expect("a tag").to_string();
    let known = |answer: &str| format!("If-None-Match: {}\r\n", tag(answer));
    assert!(first.contains("setInterval(") && first.contains(&tag(&first)), "{first}");
    let again = get(address, "/", &known(&first));
    assert!(again.starts_with("HTTP/1.1 304 Not Modified\r\n") && again.ends_with("\r\n\r\n"), "{again}");
    let done = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "-q"]);
    assert!(done.status.success(), "{}", words(&done));
    // a page is made again at the earliest after five times the time that making it took
    let begun = Instant::now();
    let page = loop {
        let page = get(address, "/?x=1", &known(&first));
        if page.starts_with("HTTP/1.1 200 OK") {
            break page;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "no new page");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(page.contains("<h1>p.ron</h1>") && page.contains(">done</span>") && page.contains("t.csv"), "{page}");
    assert_eq!(end(server, "-TERM"), (Some(0), String::new()));
}

#[test]
fn the_server_gives_the_report_and_nothing_else() {
    let f = folder();
    std::fs::write(f.path().join("secret.txt"), "secret").expect("written");
    let (server, address) = serve(f.path());
    // a client that says nothing does not block others
    let silent = TcpStream::connect(address).expect("a connection");
    for path in [
        "/secret.txt",
        "/p.ron",
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "secret.txt",
        "*",
    ] {
        let answer = get(address, path, "");
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{path}: {answer}");
        assert!(!answer.contains("secret\n") && !answer.contains("root:"), "{path}: {answer}");
    }
    for (request, status) in [
        ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405 Method Not Allowed"),
        ("DELETE /p.ron HTTP/1.1\r\nHost: localhost\r\n\r\n", "405 Method Not Allowed"),
        // another site whose name resolves to this machine
        ("GET / HTTP/1.1\r\nHost: evil.example.org\r\n\r\n", "403 Forbidden"),
        ("GET / HTTP/1.1\r\n\r\n", "403 Forbidden"),
        ("GET /\r\n\r\n", "400 Bad Request"),
        ("\u{1}\u{2}\r\n\r\n", "400 Bad Request"),
        ("HEAD / HTTP/1.1\r\nHost: [::1]\r\n\r\n", "200 OK"),
    ] {
        let answer = ask(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request:?}: {answer}");
    }
    assert!(ask(address, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n").ends_with("\r\n\r\n"));
    let long = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(9000));
    assert!(ask(address, &long).starts_with("HTTP/1.1 400"), "a long head");
    // a second server cannot use the address
    let taken = galamost(f.path(), &["watch", "p.ron", "--serve", &address.to_string()]);
    assert!(taken.status.code() == Some(2) && words(&taken).contains("cannot listen on"), "{}", words(&taken));
    drop(silent);
    assert_eq!(end(server, "-INT"), (Some(0), String::new()));
}
