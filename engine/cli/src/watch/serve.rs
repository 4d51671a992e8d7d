//! The report as a web page that updates itself: one page at `/`, over HTTP/1.1, and nothing else.

use crate::common::input_error;
use crate::report;
use crate::terminal::print;
use galamost_engine::diagnostic::Failure;
use galamost_engine::plugins::Registry;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time until a request to end is noticed.
const TICK: Duration = Duration::from_millis(50);
/// Largest size of a request's head.
const LARGEST_HEAD: usize = 8192;
/// Time in which a client must send its request and take the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest number of clients at a time.
const MOST_CLIENTS: usize = 32;
/// The page is made again at the earliest after this multiple of the time that making it took,
const REST: u32 = 5;
/// but not later than this.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// The page may use what it contains and ask this server for updates.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";

/// Asks for a new page now and then, and replaces the old one without moving the reader. Without scripts the page is static.
const SCRIPT: &str = "<script>\
(()=>{let tag='TAG';const state=document.createElement('p');state.className='soft small';\
const note=t=>{state.textContent=t;document.body.prepend(state)};note('This page updates itself.');\
setInterval(async()=>{try{const r=await fetch('/',{headers:{'If-None-Match':tag},cache:'no-store'});\
if(r.status===200){const d=new DOMParser().parseFromString(await r.text(),'text/html');d.querySelectorAll('script').forEach(s=>s.remove());\
const y=scrollY;document.body.replaceWith(d.body);document.title=d.title;scrollTo(0,y);tag=r.headers.get('ETag')}\
note('This page updates itself.')}catch(e){note('The program that updates this page has ended.')}},EVERY)})()</script>\n";

/// What is served.
pub struct Source {
    /// The pipelines.
    pub paths: Vec<PathBuf>,
    /// All components.
    pub registry: Registry,
    /// Whether particles are rendered.
    pub pictures: bool,
}

/// The page in its present state.
struct Page {
    /// Sizes and times of the files that the page shows.
    stamp: String,
    html: Arc<String>,
    tag: String,
    made: Instant,
    took: Duration,
}

struct Server {
    source: Source,
    interval: Duration,
    /// Whether only this machine can reach the address.
    local: bool,
    page: Mutex<Option<Page>>,
    clients: AtomicUsize,
}

/// Serves the report until the program is asked to end.
///
/// # Errors
/// Returns an error if a pipeline cannot be read or the address cannot be used.
pub fn serve(source: Source, address: SocketAddr, interval: Duration, stop: &AtomicBool) -> Result<(), Failure> {
    report::html(&source.paths, &source.registry, false)?;
    let failed = |e: std::io::Error| input_error("--serve", format!("cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    print(format!("http://{bound}/\n"))?;
    let local = bound.ip().is_loopback();
    let server = Arc::new(Server { source, interval, local, page: Mutex::default(), clients: AtomicUsize::new(0) });
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // the client is dropped, which closes its connection
            Ok(_) if server.clients.load(Ordering::Relaxed) >= MOST_CLIENTS => {}
            Ok((client, _)) => {
                server.clients.fetch_add(1, Ordering::Relaxed);
                let server = server.clone();
                std::thread::spawn(move || {
                    // a client that goes away needs no answer
                    let _ = server.answer(client);
                    server.clients.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Err(_) => std::thread::sleep(TICK),
        }
    }
    Ok(())
}

/// An answer: status line, further header lines, and the body.
struct Answer {
    status: &'static str,
    headers: String,
    body: Arc<String>,
}

impl Answer {
    fn text(status: &'static str) -> Self {
        Self { status, headers: String::new(), body: Arc::new(format!("{status}\n")) }
    }
}

/// Reads the head of a request; `None` if it is too long or ends early.
fn head(client: &mut TcpStream) -> std::io::Result<Option<String>> {
    let (mut bytes, mut buffer, begun) = (vec![], [0; 1024], Instant::now());
    while !bytes.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = client.read(&mut buffer)?;
        bytes.extend(&buffer[..n]);
        if n == 0 || bytes.len() > LARGEST_HEAD || begun.elapsed() > PATIENCE {
            return Ok(None);
        }
    }
    Ok(String::from_utf8(bytes).ok())
}

/// Returns the value of a header line.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).filter_map(|l| l.split_once(':'));
    lines.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
}

/// Returns whether the name by which a browser reached the server is one of this machine. A page of another site that has its
/// name resolve to this machine must not read the report.
fn names_this_machine(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, p)| p.bytes().all(|b| b.is_ascii_digit())).map_or(host, |h| h.0);
    let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

impl Server {
    fn answer(&self, mut client: TcpStream) -> std::io::Result<()> {
        client.set_nonblocking(false)?;
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_write_timeout(Some(PATIENCE))?;
        let head = head(&mut client)?;
        let answer = head.as_deref().map_or_else(|| Answer::text("400 Bad Request"), |h| self.answer_to(h));
        let is_head = head.is_some_and(|h| h.starts_with("HEAD "));
        let (status, headers, length) = (answer.status, answer.headers, answer.body.len());
        let kind = if answer.body.starts_with('<') { "html" } else { "plain" };
        let lines = format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Type: text/{kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        );
        client.write_all(lines.as_bytes())?;
        if is_head { Ok(()) } else { client.write_all(answer.body.as_bytes()) }
    }

    /// Answers a request. The path is compared with `/` and never used as the name of a file.
    fn answer_to(&self, head: &str) -> Answer {
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next()) else {
            return Answer::text("400 Bad Request");
        };
        if !version.starts_with("HTTP/1.") {
            return Answer::text("400 Bad Request");
        }
        if !["GET", "HEAD"].contains(&method) {
            let headers = "Allow: GET, HEAD\r\n".into();
            return Answer { headers, ..Answer::text("405 Method Not Allowed") };
        }
        if self.local && !header(head, "Host").is_some_and(names_this_machine) {
            return Answer::text("403 Forbidden");
        }
        if path.split('?').next() != Some("/") {
            return Answer::text("404 Not Found");
        }
        let (html, tag) = self.page();
        let headers = format!("ETag: {tag}\r\n");
        if header(head, "If-None-Match") == Some(&tag) {
            return Answer { status: "304 Not Modified", headers, body: Arc::default() };
        }
        Answer { status: "200 OK", headers, body: html }
    }

    /// Returns the page and its tag. It is made again if files have changed, but not often enough to slow the run.
    fn page(&self) -> (Arc<String>, String) {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let rests =
            page.as_ref().is_some_and(|p| p.made.elapsed() < self.interval.max((REST * p.took).min(LONGEST_REST)));
        if !rests {
            let stamp = report::stamp(&self.source.paths);
            if page.as_ref().is_none_or(|p| p.stamp != stamp) {
                *page = Some(self.make(stamp, page.as_ref()));
            }
        }
        page.as_ref().map(|p| (p.html.clone(), p.tag.clone())).unwrap_or_default()
    }

    /// Makes the page. If the pipeline is being edited and invalid now, the page says so.
    fn make(&self, stamp: String, old: Option<&Page>) -> Page {
        let begun = Instant::now();
        let made = report::html(&self.source.paths, &self.source.registry, self.source.pictures);
        let number = old.map_or(1, |p| {
            p.tag.trim_matches('"').rsplit('-').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) + 1
        });
        // the number of the process distinguishes the pages of a later server
        let tag = format!("\"{}-{number}\"", std::process::id());
        let script = SCRIPT.replace("TAG", &tag).replace("EVERY", &self.interval.as_millis().to_string());
        let html = made.unwrap_or_else(|e| report::error_page(&e)).replacen("</body>", &format!("{script}</body>"), 1);
        Page { stamp, html: Arc::new(html), tag, made: Instant::now(), took: begun.elapsed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_known() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:1", "127.1.2.3", "[::1]:80", "LOCALHOST:5"] {
            assert!(names_this_machine(host), "{host}");
        }
        for host in ["", "example.org", "example.org:80", "127.0.0.1.example.org", "10.0.0.1:80", "localhost.evil.org"]
        {
            assert!(!names_this_machine(host), "{host}");
        }
    }

    #[test]
    fn header_lines_are_found() {
        let head = "GET / HTTP/1.1\r\nHost: a:1\r\nif-none-match:  \"5-1\" \r\n\r\n";
        assert_eq!((header(head, "host"), header(head, "If-None-Match")), (Some("a:1"), Some("\"5-1\"")));
        assert_eq!(header(head, "GET / HTTP/1.1"), None);
    }
}
