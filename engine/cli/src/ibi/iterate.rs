//! The iterations: ordinary runs, each in a folder of its own.

use super::analyzers::{COVARIANCE, THERMO, column_of, file_of, of_iteration};
use super::report::{Entry, report};
use super::spec::{Method, Sought, Spec, State};
use galamost_engine::checkpoint::Checkpoint;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::open as open_backend;
use galamost_engine::run::{RunOptions, execute};
use galamost_inversion::{Closeness, Covariance, Interaction, NewtonState, StateData, imc, normalise, read_target};
use galamost_plugin_api::error::Position;
use galamost_tables::read::{Choice, read};
use galamost_tables::{Curve, Format, Kind, Mistake, Rows, Unit, write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::{info, warn};

/// What one run gave.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Done {
    /// Seconds of the run, with its start.
    pub seconds: f64,
    /// Steps of the run.
    pub steps: u64,
    /// Mean pressure of the last stage.
    pub pressure: f64,
    /// Mean kT.
    pub kt: f64,
    /// The step at its end.
    pub end: u64,
}

/// How an inversion goes on.
pub(super) struct Options {
    pub device: Option<DeviceChoice>,
    pub run: RunOptions,
    /// Nothing is run.
    pub check: bool,
}

pub(super) struct Inversion<'a> {
    pub spec: &'a Spec,
    pub registry: &'a Registry,
    pub options: &'a Options,
    pub interactions: Vec<Interaction>,
    /// By state and interaction.
    pub targets: Vec<Vec<Vec<f64>>>,
    /// The potentials of each iteration.
    pub potentials: Vec<Vec<Vec<f64>>>,
    /// What the iterations have given: by iteration, state and interaction.
    pub measured: Vec<Vec<Vec<Vec<f64>>>>,
    pub done: Vec<Vec<Done>>,
}

fn failed(path: &Path, e: impl std::fmt::Display) -> Failure {
    Failure::run(format!("{}: {e}", path.display()))
}

fn wrong(path: &Path, e: Mistake) -> Failure {
    Failure::Input(vec![Diagnostic::new(path, e.line.map(|line| Position { line, column: 1 }), e.message)])
}

/// Writes a file under another name and renames it: a program that ends in between leaves no half of it.
pub(super) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let part = path.with_extension("part");
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path)).map_err(|e| failed(path, e))
}

fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| failed(path, e))
}

/// The table of a potential as a file.
fn table(i: &Interaction, u: &[f64]) -> Result<String, Failure> {
    let rows = i.rows(u);
    let told = |e: Mistake| Failure::run(format!("a {} potential is no table: {e}", i.kind.name()));
    let curve = Curve::new(i.kind, &rows, Some(Unit::Radians)).map_err(told)?;
    let f = rows.x.iter().map(|x| -curve.at(*x)[1]).collect();
    Ok(write(Format::Csv, i.kind, "", &Rows { f: Some(f), ..rows }))
}

impl Inversion<'_> {
    fn iteration_folder(&self, k: usize) -> PathBuf {
        self.spec.folder().join(format!("iter-{k:03}"))
    }

    fn state_folder(&self, k: usize, state: &State) -> PathBuf {
        self.iteration_folder(k).join(&state.name.value)
    }

    fn sought(&self) -> impl Iterator<Item = (&Sought, &Interaction)> {
        self.spec.interactions.value.iter().zip(&self.interactions)
    }

    fn states(&self) -> impl Iterator<Item = &State> {
        self.spec.states.value.iter().map(|s| &s.value)
    }

    /// What the states say of interaction `i`, after iteration `k` or, for 0, before the first one.
    fn data(&self, i: usize, k: usize) -> Vec<StateData<'_>> {
        let of = |(s, state): (usize, &State)| {
            let target = self.targets[s][i].as_slice();
            let measured = if k == 0 { target } else { self.measured[k - 1][s][i].as_slice() };
            (state.kt, state.weight, target, measured)
        };
        self.states()
            .enumerate()
            .map(of)
            .map(|(kt, weight, target, measured)| StateData { kt, weight, target, measured })
            .collect()
    }

    /// The potentials to begin with.
    pub fn first(&self) -> Result<Vec<Vec<f64>>, Failure> {
        let mut all = vec![];
        for (k, (s, i)) in self.sought().enumerate() {
            let Some(file) = &s.common.start else {
                all.push(i.first_guess(&self.data(k, 0)));
                continue;
            };
            let path = self.spec.directory().join(&file.value);
            let text = std::fs::read_to_string(&path)
                .map_err(|e| self.spec.wrong(file.at, format!("{} cannot be read: {e}", path.display())))?;
            let rows = read(&text, Choice::default()).map_err(|e| wrong(&path, e))?;
            let unit = s.common.unit.map(|u| u.0).filter(|_| rows.unit.is_none());
            let curve = Curve::new(i.kind, &rows, unit).map_err(|e| wrong(&path, e))?;
            let scale = if i.kind.is_angle() { 1f64.to_radians() } else { 1.0 };
            let mut u: Vec<f64> = (0..i.bins.n).map(|k| curve.at(i.bins.middle(k) * scale)[0]).collect();
            // where nothing is sampled it goes on as all others do
            i.apply(&mut u, vec![0.0; i.bins.n], &self.data(k, 0));
            all.push(u);
        }
        Ok(all)
    }

    /// The potentials that iteration `k` was run with.
    fn stored(&self, k: usize) -> Result<Vec<Vec<f64>>, Failure> {
        let Some(state) = self.states().next() else { return Ok(vec![]) };
        let mut all = vec![];
        for (s, i) in self.sought() {
            let path = self.state_folder(k, state).join(format!("{}.csv", s.stem()));
            let rows = read(&read_text(&path)?, Choice::default()).map_err(|e| wrong(&path, e))?;
            all.push(i.values(&rows).map_err(|e| wrong(&path, Mistake::new(e)))?);
        }
        Ok(all)
    }

    /// The potentials after iteration `k`.
    fn next(&self, k: usize) -> Result<Vec<Vec<f64>>, Failure> {
        let mut all = self.potentials[k - 1].clone();
        // an iteration that was run for the other method has no covariances: its bins are changed each by itself
        let counted = self.states().all(|s| self.state_folder(k, s).join(COVARIANCE).exists());
        let changes = match self.spec.method {
            Method::Imc { lambda } if counted => Some(self.newton(k, lambda)?),
            _ => None,
        };
        for (n, (s, i)) in self.sought().enumerate().filter(|(_, (s, _))| s.changes(k)) {
            let data = self.data(n, k);
            let alpha = s.common.alpha.unwrap_or(self.spec.alpha);
            let u = &mut all[n];
            match &changes {
                None => i.ibi(u, &data, alpha),
                Some(changes) => i.apply(u, changes[n].iter().map(|c| alpha * c).collect(), &data),
            }
            if s.pressure_gain > 0.0 {
                let weight: f64 = self.states().filter(|s| s.pressure.is_some()).map(|s| s.weight).sum();
                for (state, done) in self.states().zip(&self.done[k - 1]) {
                    let Some(wanted) = state.pressure else { continue };
                    let gain = s.pressure_gain * state.weight / weight;
                    i.correct_pressure(u, gain, done.pressure, wanted, state.kt);
                }
                i.apply(u, vec![0.0; i.bins.n], &data);
            }
        }
        Ok(all)
    }

    /// Newton's changes of all interactions that change after iteration `k`.
    fn newton(&self, k: usize, lambda: f64) -> Result<Vec<Vec<f64>>, Failure> {
        let mut tables = vec![];
        for state in self.states() {
            let path = self.state_folder(k, state).join(COVARIANCE);
            let mut table = Covariance::read(&read_text(&path)?).map_err(|e| wrong(&path, e))?;
            // covariances change little from one iteration to the next, and their mean is known better
            let mut runs = 1.0;
            for before in (k / 2 + 1)..k {
                let path = self.state_folder(before, state).join(COVARIANCE);
                // an iteration with another method has none
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let other = Covariance::read(&text).map_err(|e| wrong(&path, e))?;
                if other.interaction == table.interaction {
                    table.covariance.iter_mut().zip(&other.covariance).for_each(|(c, d)| *c += d);
                    runs += 1.0;
                }
            }
            table.covariance.iter_mut().for_each(|c| *c /= runs);
            tables.push(table);
        }
        let n = tables[0].mean.len();
        let mut active = vec![false; n];
        let mut wanted: Vec<Vec<f64>> = tables.iter().map(|t| t.mean.clone()).collect();
        let mut firsts = vec![];
        for (place, (s, i)) in self.sought().enumerate() {
            let first = tables[0].interaction.iter().position(|name| *name == s.name()).unwrap_or(0);
            firsts.push(first);
            let sampled = i.sampled_by_any(&self.data(place, 0));
            for bin in 0..i.bins.n {
                active[first + bin] = sampled[bin] && s.changes(k);
                for (state, t) in tables.iter().enumerate() {
                    wanted[state][first + bin] = self.targets[state][place][bin] * t.ideal[first + bin];
                }
            }
        }
        let states: Vec<NewtonState<'_>> = self
            .states()
            .zip(tables.iter().zip(&wanted))
            .map(|(s, (t, target))| NewtonState {
                kt: s.kt,
                weight: s.weight,
                mean: &t.mean,
                target,
                covariance: &t.covariance,
            })
            .collect();
        let all = imc(&states, &active, lambda);
        Ok(self.sought().zip(firsts).map(|((_, i), first)| all[first..first + i.bins.n].to_vec()).collect())
    }

    /// The text of the pipeline of an iteration: the template with analyzers in its last stage.
    fn pipeline(&self, k: usize, state: &State, end: u64) -> Result<String, Failure> {
        let path = self.spec.directory().join(&state.pipeline.value);
        let template = Pipeline::read(&path, &[])?;
        let last = template.stages.len() - 1;
        let own = template.stages[last].analyzers.as_ref().unwrap_or(&template.analyzers);
        let mut list: Vec<String> = own.iter().map(|e| e.text.clone()).collect();
        list.extend(of_iteration(self.spec, state.every));
        if self.spec.from_last {
            list.push(format!("Gsd(every: {end}, file: \"last.gsd\")"));
        }
        let mut overrides = vec![format!("stages[{last}].analyzers=[{}]", list.join(", "))];
        if self.spec.from_last && k > 1 {
            let before = format!("../../iter-{:03}/{}/last.gsd", k - 1, state.name.value);
            overrides.push(format!("initial=[Gsd(file: {before:?})]"));
        }
        let text = read_text(&path)?;
        let made = Pipeline::parse(&path, &text, &overrides)
            .map_err(|e| Failure::Input(e.into_iter().map(|e| Diagnostic::new(&path, e.at, e.message)).collect()))?;
        Ok(made.text)
    }

    /// Writes the folder of an iteration, and checks its run. An iteration that was begun with the same files goes on
    /// from its checkpoint, if there is one.
    fn prepare(&self, k: usize, state: &State) -> Result<(Plan, bool), Failure> {
        let folder = self.state_folder(k, state);
        std::fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
        let mut same = true;
        let mut put = |name: &str, text: &str| {
            let path = folder.join(name);
            if std::fs::read_to_string(&path).is_ok_and(|t| t == text) {
                return Ok(());
            }
            same = false;
            write_whole(&path, text)
        };
        for ((s, i), u) in self.sought().zip(&self.potentials[k - 1]) {
            put(&format!("{}.csv", s.stem()), &table(i, u)?)?;
        }
        for file in &state.files {
            let (from, to) = (self.spec.directory().join(&file.value), folder.join(&file.value));
            let real = from
                .canonicalize()
                .map_err(|e| self.spec.wrong(file.at, format!("{} cannot be read: {e}", from.display())))?;
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
            }
            if to.symlink_metadata().is_err() {
                std::os::unix::fs::symlink(&real, &to).map_err(|e| failed(&to, e))?;
            }
        }
        let begun = match k {
            _ if !self.spec.from_last => None,
            1 => None,
            _ => {
                let s = self.states().position(|s| s.name == state.name).unwrap_or(0);
                Some(self.done[k - 2][s].end)
            }
        };
        let steps = |p: &Pipeline| p.stages.iter().map(|s| s.steps).sum::<u64>();
        let path = folder.join("pipeline.ron");
        // the last configuration is written at the last step, whose number the initial state decides
        let template = Pipeline::read(&self.spec.directory().join(&state.pipeline.value), &[])?;
        let mut end = begun.unwrap_or(0) + steps(&template);
        if self.spec.from_last && begun.is_none() {
            write_whole(&path, &self.pipeline(k, state, end.max(1))?)?;
            end += self.checked(&path, false)?.snapshot.step;
        }
        put("pipeline.ron", &self.pipeline(k, state, end.max(1))?)?;
        let plan = self.checked(&path, false)?;
        if plan.snapshot.dimensions != self.spec.dimensions {
            let message = format!("the system has {} dimensions: say `dimensions: {0}`", plan.snapshot.dimensions);
            return Err(self.spec.wrong(state.pipeline.at, message));
        }
        let checkpoint = plan.pipeline.checkpoint_path();
        if !same && checkpoint.exists() {
            std::fs::remove_file(&checkpoint).map_err(|e| failed(&checkpoint, e))?;
        }
        Ok((plan, same && checkpoint.exists()))
    }

    fn checked(&self, path: &Path, resumed: bool) -> Result<Plan, Failure> {
        let mut pipeline = Pipeline::read(path, &[])?;
        if let Some(device) = self.options.device {
            pipeline.device = device;
            pipeline.device_at = None;
        }
        check(pipeline, self.registry, CheckOptions { resumed, ..CheckOptions::default() })
    }

    /// Runs one state of an iteration; `None` if it was stopped.
    fn run(&self, k: usize, state: &State) -> Result<Option<Done>, Failure> {
        let marker = self.state_folder(k, state).join("done.ron");
        if let Ok(text) = std::fs::read_to_string(&marker) {
            return ron::from_str(&text).map(Some).map_err(|e| failed(&marker, e));
        }
        let (mut plan, resumable) = self.prepare(k, state)?;
        let mut resume = None;
        if resumable {
            plan = self.checked(&plan.pipeline.path, true)?;
            match Checkpoint::read(&plan.pipeline.checkpoint_path(), &plan) {
                Ok(c) => {
                    info!("iteration {k}, {}: goes on from its checkpoint", state.name.value);
                    resume = Some(c);
                }
                Err(e) => {
                    warn!("iteration {k}, {}: begins anew: {}", state.name.value, e.render().trim_end());
                    plan = self.checked(&plan.pipeline.path, false)?;
                }
            }
        }
        let clock = Instant::now();
        let mut backend = open_backend(&plan)?;
        let summary = execute(&plan, &mut *backend, &self.options.run, resume)?;
        if summary.interrupted {
            return Ok(None);
        }
        let mean = self.thermo(&self.state_folder(k, state).join(THERMO))?;
        let end = backend.step();
        let done =
            Done { seconds: clock.elapsed().as_secs_f64(), steps: summary.steps, pressure: mean[1], kt: mean[0], end };
        let text = ron::to_string(&done).map_err(|e| failed(&marker, e))?;
        write_whole(&marker, &text)?;
        Ok(Some(done))
    }

    /// Mean kT and pressure of the samples.
    fn thermo(&self, path: &Path) -> Result<[f64; 2], Failure> {
        let text = read_text(path)?;
        let names: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
        let mut out = [0.0; 2];
        for (mean, name) in out.iter_mut().zip(["kT", "pressure"]) {
            let column = names.iter().position(|n| *n == name).unwrap_or(0);
            let values = text.lines().skip(1).filter_map(|l| l.split(',').nth(column)?.parse::<f64>().ok());
            let (n, sum) = values.fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
            *mean = sum / n;
        }
        Ok(out)
    }

    /// The distributions that a run has written.
    fn read_measured(&self, k: usize, state: &State) -> Result<Vec<Vec<f64>>, Failure> {
        let mut all = vec![];
        for (s, i) in self.sought() {
            let path = self.state_folder(k, state).join(file_of(s));
            let text = read_text(&path)?;
            let mut p = match read_target(&text, i.kind, &i.bins, Some(column_of(s)), None) {
                Ok(p) => p,
                // nothing at all in the grid is told by the closeness, and pulled back by the update
                Err(e) if e.message.starts_with("nothing lies") => vec![0.0; i.bins.n],
                Err(e) => return Err(wrong(&path, e)),
            };
            if i.kind != Kind::Pair {
                normalise(&mut p, &i.bins);
            }
            all.push(p);
        }
        Ok(all)
    }

    pub fn closeness(&self, k: usize, state: usize, i: usize) -> Closeness {
        self.interactions[i].closeness(&self.targets[state][i], &self.measured[k - 1][state][i])
    }

    /// The worst norm of an iteration.
    fn worst(&self, k: usize) -> f64 {
        let all = (0..self.targets.len()).flat_map(|s| (0..self.interactions.len()).map(move |i| (s, i)));
        all.map(|(s, i)| self.closeness(k, s, i).norm).fold(0.0, f64::max)
    }

    /// Tables of the potentials of an iteration, as the result.
    fn results(&self, k: usize) -> Result<PathBuf, Failure> {
        let folder = self.spec.folder().join("result");
        std::fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
        for ((s, i), u) in self.sought().zip(&self.potentials[k - 1]) {
            write_whole(&folder.join(format!("{}.csv", s.stem())), &table(i, u)?)?;
        }
        Ok(folder)
    }

    /// All iterations.
    pub fn all(&mut self) -> Result<(), Failure> {
        let spec = self.spec;
        self.potentials.push(self.first()?);
        // every mistake of every state before the first step
        if !self.iteration_folder(1).join("done.ron").exists() {
            for state in self.states() {
                self.template_reads_tables(state)?;
                if !self.state_folder(1, state).join("done.ron").exists() {
                    self.prepare(1, state)?;
                }
            }
        }
        if self.options.check {
            println!(
                "{}: {} states, {} interactions",
                spec.path.display(),
                self.targets.len(),
                self.interactions.len()
            );
            return Ok(());
        }
        let mut converged = false;
        for k in 1..=spec.iterations as usize {
            if self.states().all(|s| self.state_folder(k, s).join("done.ron").exists()) {
                // what was run counts, whatever the file says now
                self.potentials.truncate(k - 1);
                self.potentials.push(self.stored(k)?);
            } else if k > 1 {
                self.potentials.push(self.next(k - 1)?);
            }
            let (mut done, mut measured) = (vec![], vec![]);
            for state in self.states() {
                let Some(d) = self.run(k, state)? else {
                    info!("stopped in iteration {k}; go on with: galamost ibi {}", spec.path.display());
                    return Ok(());
                };
                done.push(d);
                measured.push(self.read_measured(k, state)?);
            }
            self.done.push(done);
            self.measured.push(measured);
            self.tell(k)?;
            if self.worst(k) <= spec.tolerance {
                converged = true;
                break;
            }
        }
        // the nearest by far, or else the last: distances of good potentials differ by their noise alone
        let last = self.measured.len();
        let nearest = (1..=last).map(|k| self.worst(k)).fold(f64::INFINITY, f64::min);
        let k = (1..=last).rev().find(|k| self.worst(*k) <= 1.5 * nearest).unwrap_or(last);
        let folder = self.results(k)?;
        if converged {
            info!("every distribution is within {} of its target after iteration {k}", spec.tolerance);
        } else {
            info!(
                "after {last} iterations the tolerance {} is not reached; the result is iteration {k}, {:.5}",
                spec.tolerance,
                self.worst(k)
            );
        }
        info!("potentials: {}, report: {}", folder.display(), spec.folder().join("report.html").display());
        Ok(())
    }

    /// A template that does not read a table would run the same in every iteration.
    fn template_reads_tables(&self, state: &State) -> Result<(), Failure> {
        let path = self.spec.directory().join(&state.pipeline.value);
        let text = Pipeline::read(&path, &[])
            .map_err(|e| match std::fs::metadata(&path) {
                Ok(_) => e,
                Err(e) => self.spec.wrong(state.pipeline.at, format!("{} cannot be read: {e}", path.display())),
            })?
            .text;
        for (s, _) in self.sought() {
            let file = format!("{}.csv", s.stem());
            if !text.contains(&format!("\"{file}\"")) {
                let message = format!("{} does not read \"{file}\", the table of {}", path.display(), s.name());
                return Err(self.spec.wrong(s.at, message));
            }
        }
        Ok(())
    }

    /// A line of progress, `convergence.csv` and the page.
    fn tell(&self, k: usize) -> Result<(), Failure> {
        let mut table = String::from("iteration,state,interaction,norm,max,kT,pressure,seconds\n");
        for n in 1..=k {
            for (s, state) in self.states().enumerate() {
                for (i, (sought, _)) in self.sought().enumerate() {
                    let (c, d) = (self.closeness(n, s, i), &self.done[n - 1][s]);
                    table += &format!(
                        "{n},{},{},{:?},{:?},{:?},{:?},{:?}\n",
                        state.name.value,
                        sought.name(),
                        c.norm,
                        c.max,
                        d.kt,
                        d.pressure,
                        d.seconds
                    );
                }
            }
        }
        write_whole(&self.spec.folder().join("convergence.csv"), &table)?;
        let parts: Vec<String> = self
            .sought()
            .enumerate()
            .map(|(i, (s, _))| {
                let norm = (0..self.targets.len()).map(|state| self.closeness(k, state, i).norm).fold(0.0, f64::max);
                format!("{} {norm:.4}", s.name())
            })
            .collect();
        let seconds: f64 = self.done[k - 1].iter().map(|d| d.seconds).sum();
        info!("iteration {k} of {}: {}; {seconds:.1} s", self.spec.iterations, parts.join(", "));
        let mut entries = vec![];
        for (i, (s, interaction)) in self.sought().enumerate() {
            entries.push(Entry {
                name: s.name(),
                interaction: interaction.clone(),
                states: self.states().map(|s| s.name.value.clone()).collect(),
                targets: self.targets.iter().map(|t| t[i].clone()).collect(),
                measured: self.measured.iter().map(|m| m.iter().map(|s| s[i].clone()).collect()).collect(),
                potentials: self.potentials.iter().map(|p| p[i].clone()).collect(),
            });
        }
        write_whole(&self.spec.folder().join("report.html"), &report(self.spec, &entries, &self.done))
    }
}
