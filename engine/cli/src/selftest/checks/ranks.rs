//! Checks that several ranks (GPUs that share a run) give the bits of one.

use crate::selftest::setup::{LENNARD_JONES, Outcome, example};
use crate::selftest::{Test, test_plugin};
use galamost_engine::diagnostic::Failure;
use galamost_engine::plan::Plan;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// More steps than the period of any example.
const STEPS: u64 = 100;

/// The output files of a run, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Names what differs between two results.
fn differences(a: &(Outcome, Files), b: &(Outcome, Files)) -> Vec<String> {
    let ((a, files), (b, others)) = (a, b);
    let differ = |x: &[f64], y: &[f64]| x.len() != y.len() || x.iter().zip(y).any(|(x, y)| x.to_bits() != y.to_bits());
    let parts = [
        ("positions", differ(&a.position, &b.position)),
        ("velocities", differ(&a.velocity, &b.velocity)),
        ("rotation", differ(&a.rotation, &b.rotation)),
        ("forces", differ(&a.force, &b.force)),
        ("torques", differ(&a.torque, &b.torque)),
        ("energy", differ(&[a.energy], &[b.energy])),
        ("virial", differ(&a.virial, &b.virial)),
        ("box", differ(&a.length, &b.length)),
        ("links", a.topology != b.topology),
    ];
    let parts = parts.into_iter().filter(|p| p.1).map(|p| p.0.to_string());
    let names = files.keys().chain(others.keys().filter(|name| !files.contains_key(*name)));
    parts.chain(names.filter(|name| files.get(*name) != others.get(*name)).cloned()).collect()
}

impl Test<'_> {
    /// Compares a run of several ranks with that of one, with a plain and with a staged neighbor list.
    pub(in crate::selftest) fn ranks(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        if self.checks.ranks < 2 || !self.has_device || matches!(c.kind, Kind::Generator | Kind::Sampler) {
            return Ok(());
        }
        // neighbors make ghosts, but with a longer cutoff most particles of the system would be some
        let beside = c.kind == Kind::Force && self.registry.find(Kind::Pair, "LennardJones").is_some();
        let forces =
            beside.then(|| format!("forces=[{}, {}]", example(c), LENNARD_JONES.replace("r_cut: 2.5", "r_cut: 1.12")));
        for list in ["Plain", "Staged"] {
            let check = format!("{} ranks = 1 rank, bits, {list} list", self.checks.ranks);
            // a small buffer, so that the list is made anew some times
            let neighbors = format!("neighbors=(buffer: 0.05, list: {list})");
            let plan = |test: &Self, ranks: u32| -> Result<Plan, Failure> {
                let overrides: Vec<_> =
                    [neighbors.clone(), format!("gpus={ranks}")].into_iter().chain(forces.clone()).collect();
                test.plan(c, test.device, Precision::Mixed, test.system_of(c), STEPS, &overrides)
            };
            let Ok(one) = plan(self, 1) else { continue };
            let several = match plan(self, self.checks.ranks) {
                Ok(several) => several,
                // the other checks have shown that there is nothing else to refuse
                Err(refused) => {
                    let reason = refused.render().lines().next().unwrap_or_default().to_string();
                    self.skip(c, &check, reason.rsplit_once(": ").map_or(reason.clone(), |(_, why)| why.into()));
                    continue;
                }
            };
            self.take_files()?;
            let differ = differences(&self.result(c, &one)?, &self.result(c, &several)?);
            self.note(c, &check, differ.len() as f64, 0.0, differ.join(", "));
        }
        Ok(())
    }

    /// Does the steps of a plan. The last one computes energies, unless analyzers and updaters decide that, which an execution calls.
    fn result(&self, c: &ComponentInfo, plan: &Plan) -> Result<(Outcome, Files), Failure> {
        if matches!(c.kind, Kind::Analyzer | Kind::Updater) {
            let outcome = Outcome { energy: 0.0, virial: [0.0; 6], ..self.outcome_of_plan(plan)? };
            return Ok((outcome, self.take_files()?));
        }
        let (mut backend, stop) = (test_plugin::open(plan)?, AtomicBool::new(false));
        backend.advance(STEPS - 1, Wanted::FORCE, &stop)?;
        backend.advance(1, Wanted::ALL, &stop)?;
        Ok((Outcome::of(&mut *backend, plan)?, Files::new()))
    }
}
