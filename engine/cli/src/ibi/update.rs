//! The potentials of the next iteration: Boltzmann inversion, iterative Boltzmann inversion, inverse Monte Carlo.

use super::analyzers::COVARIANCE;
use super::iterate::{Inversion, read_text, table_error};
use super::spec::{Method, StateSpec};
use galamost_engine::diagnostic::Failure;
use galamost_inversion::{Covariance, NewtonState, StateData, imc};
use galamost_tables::read::{Choice, read};
use galamost_tables::{Curve, Kind, Mistake};

impl Inversion<'_> {
    /// Returns target and measured distribution of interaction `i` in all states after iteration `k`. Before the first
    /// iteration (`k` = 0) the target stands in for the measurement.
    fn data(&self, i: usize, k: usize) -> Vec<StateData<'_>> {
        let of = |(s, state): (usize, &StateSpec)| {
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

    /// Returns the potentials of the first iteration: from a file, or by Boltzmann inversion.
    pub fn first_potentials(&self) -> Result<Vec<Vec<f64>>, Failure> {
        let mut all = vec![];
        for (k, (s, i)) in self.interactions().enumerate() {
            let Some(file) = &s.common.start else {
                all.push(i.first_guess(&self.data(k, 0)));
                continue;
            };
            let path = self.spec.directory().join(&file.value);
            let text = self.spec.text(&path, file.at)?;
            let rows = read(&text, Choice::default()).map_err(|e| table_error(&path, e))?;
            let unit = s.common.unit.map(|u| u.0).filter(|_| rows.unit.is_none());
            let curve = Curve::new(i.kind, &rows, unit).map_err(|e| table_error(&path, e))?;
            let scale = if i.kind.is_angle() { 1f64.to_radians() } else { 1.0 };
            let mut u: Vec<f64> = (0..i.bins.n).map(|k| curve.at(i.bins.middle(k) * scale)[0]).collect();
            // extrapolate into unsampled bins like all other potentials
            i.apply(&mut u, vec![0.0; i.bins.n], &self.data(k, 0));
            all.push(u);
        }
        Ok(all)
    }

    /// Reads the potentials of a finished iteration `k`.
    pub fn stored_potentials(&self, k: usize) -> Result<Vec<Vec<f64>>, Failure> {
        let Some(state) = self.states().next() else { return Ok(vec![]) };
        let mut all = vec![];
        for (n, (s, i)) in self.interactions().enumerate() {
            let path = self.state_folder(k, state).join(format!("{}.csv", s.stem()));
            let rows = read(&read_text(&path)?, Choice::default()).map_err(|e| table_error(&path, e))?;
            let mut u = i.values(&rows).map_err(|e| table_error(&path, Mistake::new(e)))?;
            // the table of a pair begins where U is low enough: below, the potential is extrapolated as before
            let missing = (i.bins.n + 1).saturating_sub(rows.x.len());
            if i.kind == Kind::Pair && missing > 0 {
                let mut extrapolated = u.clone();
                i.apply(&mut extrapolated, vec![0.0; i.bins.n], &self.data(n, 0));
                u[..missing].copy_from_slice(&extrapolated[..missing]);
            }
            all.push(u);
        }
        Ok(all)
    }

    /// Returns the potentials after iteration `k`.
    pub fn next_potentials(&self, k: usize) -> Result<Vec<Vec<f64>>, Failure> {
        let mut all = self.potentials[k - 1].clone();
        // an iteration that ran with IBI has no covariances: its bins are updated independently
        let has_covariances = self.states().all(|s| self.state_folder(k, s).join(COVARIANCE).exists());
        let changes = match self.spec.method {
            Method::Imc { lambda } if has_covariances => Some(self.newton(k, lambda)?),
            _ => None,
        };
        for (n, (s, i)) in self.interactions().enumerate().filter(|(_, (s, _))| s.changes(k)) {
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

    /// Returns Newton's changes of all interactions that change after iteration `k`.
    fn newton(&self, k: usize, lambda: f64) -> Result<Vec<Vec<f64>>, Failure> {
        let mut tables = vec![];
        for state in self.states() {
            let path = self.state_folder(k, state).join(COVARIANCE);
            let mut table = Covariance::read(&read_text(&path)?).map_err(|e| table_error(&path, e))?;
            // covariances change little between iterations; their mean has less noise
            let mut runs = 1.0;
            for before in (k / 2 + 1)..k {
                let path = self.state_folder(before, state).join(COVARIANCE);
                // an iteration that ran with IBI has no covariances
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let other = Covariance::read(&text).map_err(|e| table_error(&path, e))?;
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
        for (index, (s, i)) in self.interactions().enumerate() {
            let first = tables[0].interaction.iter().position(|name| *name == s.name()).unwrap_or(0);
            firsts.push(first);
            let sampled = i.sampled_by_any(&self.data(index, 0));
            for bin in 0..i.bins.n {
                active[first + bin] = sampled[bin] && s.changes(k);
                for (state, t) in tables.iter().enumerate() {
                    wanted[state][first + bin] = self.targets[state][index][bin] * t.ideal[first + bin];
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
        Ok(self.interactions().zip(firsts).map(|((_, i), first)| all[first..first + i.bins.n].to_vec()).collect())
    }
}
