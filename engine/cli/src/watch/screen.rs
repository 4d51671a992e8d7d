//! Progress and live curves in a terminal.

use super::progress::Progress;
use super::tail::LiveCurve;
use crate::output::numbers::significant;
use galamost_engine::diagnostic::Failure;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, Gauge, GraphType, Paragraph};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time until a key or a request to end is noticed.
const TICK: Duration = Duration::from_millis(100);
/// Width from which charts stand side by side.
const WIDE: u16 = 100;
/// Colors of the charts.
const COLORS: [Color; 4] = [Color::LightBlue, Color::LightRed, Color::LightGreen, Color::LightMagenta];

/// Shows a run until the user ends it with `q`, Escape or Ctrl-C. The terminal is restored in every case.
///
/// # Errors
/// Returns an error if the terminal fails, or if the run has no record that can be read.
pub fn show(progress: &mut Progress, interval: Duration, stop: &AtomicBool) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::run(format!("the terminal cannot be used: {e}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = (|| {
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) && progress.unrecorded().is_none() {
            if Instant::now() >= next {
                progress.update();
                terminal.draw(|frame| draw(frame, progress))?;
                next = Instant::now() + interval;
            }
            if event::poll(TICK)? {
                match event::read()? {
                    Event::Key(key) if ends(key) => break,
                    Event::Resize(..) => next = Instant::now(),
                    _ => {}
                }
            }
        }
        Ok(())
    })();
    ratatui::restore();
    shown.map_err(failed)?;
    progress.unrecorded().map_or(Ok(()), Err)
}

/// Returns whether a key ends the command.
fn ends(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let quits = matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc);
    key.kind == KeyEventKind::Press && (quits || control && matches!(key.code, KeyCode::Char('c' | 'd')))
}

/// Draws the whole screen.
fn draw(frame: &mut Frame<'_>, p: &Progress) {
    let parts = [Constraint::Length(1), Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)];
    let [head, bar, charts, foot] = Layout::vertical(parts).areas(frame.area());
    let title = [Some(p.title.clone()), p.system(), Some(p.state.to_string())];
    let title: Vec<String> = title.into_iter().flatten().collect();
    frame.render_widget(Line::from(title.join(" · ")).bold(), head);
    if let Some([done, planned]) = p.steps() {
        let texts = [p.position(), p.speed_and_rest()];
        let label: Vec<String> = texts.into_iter().flatten().collect();
        let gauge = Gauge::default().ratio((done / planned).clamp(0.0, 1.0)).label(label.join(" · "));
        frame.render_widget(gauge.gauge_style(Style::new().fg(Color::Blue).bg(Color::DarkGray)).use_unicode(true), bar);
    }
    let source = p.source();
    let axis = source.as_ref().map_or("step", |s| s.0);
    let with_axes: Vec<(&LiveCurve, &str)> =
        p.curves().iter().map(|c| (c, axis)).chain([(&p.speed, "step")]).filter(|c| !c.0.points.is_empty()).collect();
    if with_axes.is_empty() {
        let text = "no rows yet: the run has no table with a column `step`, or has not written to it";
        frame.render_widget(Paragraph::new(text).centered(), charts);
    }
    for (k, (area, (curve, axis))) in areas(charts, with_axes.len()).into_iter().zip(with_axes).enumerate() {
        chart(frame, area, curve, axis, COLORS[k % COLORS.len()]);
    }
    let texts = [Some("q quits; the run continues".to_string()), source.map(|s| format!("curves of {}", s.1)), p.age()];
    let foot_text: Vec<String> = texts.into_iter().flatten().collect();
    frame.render_widget(Line::from(foot_text.join(" · ")).dim(), foot);
}

/// Divides an area into `n` parts: two columns on a wide terminal, otherwise one.
fn areas(area: Rect, n: usize) -> Vec<Rect> {
    let columns = if area.width >= WIDE && n > 1 { 2 } else { 1 };
    let rows = Layout::vertical(vec![Constraint::Fill(1); n.div_ceil(columns)]).split(area);
    let cells = rows.iter().flat_map(|r| Layout::horizontal(vec![Constraint::Fill(1); columns]).split(*r).to_vec());
    cells.take(n).collect()
}

/// Draws a curve with its axes.
fn chart(frame: &mut Frame<'_>, area: Rect, curve: &LiveCurve, axis: &str, color: Color) {
    let [low, high] = curve.range();
    let ends = [curve.points[0].0, curve.points[curve.points.len() - 1].0];
    let ends = if ends[1] > ends[0] { ends } else { [ends[0], ends[0] + 1.0] };
    let title = format!(" {} {} ", curve.name, curve.last_value().unwrap_or_default());
    let line = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(Style::new().fg(color));
    let label = |x: f64| significant(x, 4);
    let x = Axis::default().bounds(ends).labels([format!("{axis} {}", label(ends[0])), label(ends[1])]).dim();
    let y = Axis::default().bounds([low, high]).labels([low, 0.5 * (low + high), high].map(label)).dim();
    let chart =
        Chart::new(vec![line.data(&curve.points)]).block(Block::bordered().title(title.bold())).x_axis(x).y_axis(y);
    frame.render_widget(chart.legend_position(None), area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// Returns what a terminal of the given size shows.
    fn shown(p: &Progress, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|f| draw(f, p)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_has_progress_curves_and_values_in_any_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sim.ron");
        let pipeline = "(initial: [Velocities(kT: 1.0)], integrators: [Bussi(kT: 1.0, tau: 0.5)], analyzers: [Thermo(every: 10, file: \"t.csv\")], stages: [(name: \"melt\", steps: 100, dt: 0.1), \
                        (name: \"run\", steps: 300, dt: 0.1)])";
        std::fs::write(&path, pipeline).expect("written");
        let mut p = Progress::of(&path).expect("a pipeline");
        p.update();
        let text = shown(&p, 80, 24);
        assert!(text.contains("waiting for the run to begin") && text.contains("no rows yet"), "{text}");
        let record = serde_json::json!({"format": "galamost-run 1", "runs": [{
            "status": "running", "begun": galamost_engine::log::now(), "particles": 512, "device": "CPU, 2 threads", "from_step": 0,
            "stages": [{"name": "melt", "steps": 100}, {"name": "run", "steps": 300}], "planned": 400,
        }]});
        std::fs::write(folder.path().join("sim.run.json"), record.to_string()).expect("written");
        let rows = |n: u32| (0..=n).map(|k| format!("{},{k},1.{k},-0.5,-4{k}.0\n", 10 * k)).collect::<String>();
        let head = "step,time,kT,pressure,potential\n";
        std::fs::write(folder.path().join("t.csv"), format!("{head}{}", rows(19))).expect("written");
        p.update();
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(folder.path().join("t.csv"), format!("{head}{}", rows(20))).expect("written");
        p.update();
        let text = shown(&p, 120, 30);
        for part in
            ["sim.ron · 512 particles, CPU, 2 threads · running", "stage run, step 200 of 400 (50 %)", "TPS", "left"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for part in [" kT 1.2 ", " pressure -0.5 ", " potential -420 ", "steps/s", "curves of t.csv", "q quits"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for (width, height) in [(1, 1), (20, 3), (40, 10), (300, 80)] {
            assert!(!shown(&p, width, height).is_empty());
        }
    }

    #[test]
    fn q_escape_and_control_c_end_it() {
        let key = |code, modifiers| ends(KeyEvent::new(code, modifiers));
        assert!(key(KeyCode::Char('q'), KeyModifiers::NONE) && key(KeyCode::Esc, KeyModifiers::NONE));
        assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE) && !key(KeyCode::Enter, KeyModifiers::NONE));
    }
}
