//! Checks that several ranks (GPUs that share a run) give the bits of one.

use crate::selftest::setup::{LENNARD_JONES, example};
use crate::selftest::{Test, TestRow, test_plugin};
use galamost_engine::backend::staging_prevented;
use galamost_engine::diagnostic::Failure;
use galamost_engine::plan::Plan;
use galamost_engine::state::RawState;
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// More steps than the period of any example.
const STEPS: u64 = 100;

/// The result of a run.
struct Ranked {
    state: RawState,
    /// Energy, virial and further quantities of all components; empty for analyzers and updaters.
    sums: Vec<f64>,
    /// The output files by name.
    files: BTreeMap<String, Vec<u8>>,
}

/// Names the entries that differ.
fn unequal<'a>(
    a: &'a BTreeMap<String, Vec<u8>>,
    b: &'a BTreeMap<String, Vec<u8>>,
) -> impl Iterator<Item = String> + 'a {
    let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    names.filter(|name| a.get(*name) != b.get(*name)).cloned()
}

impl Ranked {
    /// Names what differs.
    fn differences(&self, other: &Self) -> Vec<String> {
        let (a, b) = (&self.state, &other.state);
        let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let parts = [
            ("box", bits(&a.box_length) != bits(&b.box_length)),
            ("links", a.topology != b.topology),
            ("energies or virials", bits(&self.sums) != bits(&other.sums)),
        ];
        let parts = parts.into_iter().filter(|p| p.1).map(|p| p.0.to_string());
        unequal(&a.sections, &b.sections).chain(parts).chain(unequal(&self.files, &other.files)).collect()
    }
}

impl Test<'_> {
    /// Compares a run of several ranks with that of one, with a plain and with a staged neighbor list.
    pub(in crate::selftest) fn ranks(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        if self.checks.ranks < 2 || !self.has_device || matches!(c.kind, Kind::Generator | Kind::Sampler) {
            return Ok(());
        }
        for list in ["Plain", "Staged"] {
            let check = format!("{} ranks = 1 rank, bits, {list} list", self.checks.ranks);
            if let Err(e) = self.compare_ranks(c, list, &check) {
                let detail = e.render();
                let message = detail.lines().find(|l| l.contains("error: ")).or(detail.lines().next());
                let note = message.unwrap_or_default().trim().to_string();
                self.record(&TestRow { detail, ..TestRow::new(c, &check, f64::NAN, 0.0, note) });
            }
        }
        Ok(())
    }

    fn compare_ranks(&mut self, c: &ComponentInfo, list: &str, check: &str) -> Result<(), Failure> {
        let plan = |ranks: u32, forces: Option<&String>| -> Result<Plan, Failure> {
            // with a small buffer the list is rebuilt several times
            let overrides = [format!("neighbors=(buffer: 0.05, list: {list})"), format!("gpus={ranks}")];
            let overrides: Vec<_> = overrides.into_iter().chain(forces.cloned()).collect();
            self.plan(c, self.device, Precision::Mixed, self.system_of(c), STEPS, &overrides)
        };
        // a pair potential beside a force makes ghosts, but with a longer cutoff most particles of the system would be ghosts
        let beside = c.kind == Kind::Force && self.registry.find(Kind::Pair, "LennardJones").is_some();
        let short = LENNARD_JONES.replace("r_cut: 2.5", "r_cut: 1.12");
        let forces = beside.then(|| format!("forces=[{}, {short}]", example(c).trim_end_matches([',', ' ', '\n'])));
        let forces = forces.filter(|forces| plan(1, Some(forces)).is_ok());
        let one = plan(1, forces.as_ref())?;
        if list == "Staged"
            && let Some(why) = staging_prevented(&one)?
        {
            self.skip(c, check, why);
            return Ok(());
        }
        let several = match plan(self.checks.ranks, forces.as_ref()) {
            Ok(several) => several,
            // one rank runs, so this is why several cannot
            Err(refused) => {
                let text = refused.render().lines().next().unwrap_or_default().to_string();
                let path = self.folder.join("selftest.ron").display().to_string();
                let why = text
                    .trim_start_matches(&path)
                    .trim_start_matches(|c: char| c == ':' || c == ' ' || c.is_ascii_digit());
                self.skip(c, check, why);
                return Ok(());
            }
        };
        let (one, several) = (self.ranked(c, &one)?, self.ranked(c, &several)?);
        let differ = one.differences(&several);
        let no_files = c.kind == Kind::Analyzer && one.files.is_empty();
        let note =
            if no_files && differ.is_empty() { "it writes folders or nothing".into() } else { differ.join(", ") };
        self.note(c, check, differ.len() as f64, 0.0, note);
        Ok(())
    }

    /// Does the steps of a plan. Analyzers and updaters run through `execute`, which decides when energies are computed; otherwise
    /// the last step computes them.
    fn ranked(&self, c: &ComponentInfo, plan: &Plan) -> Result<Ranked, Failure> {
        self.take_files()?;
        if matches!(c.kind, Kind::Analyzer | Kind::Updater) {
            let state = self.state_after(plan, STEPS, None)?;
            return Ok(Ranked { state, sums: vec![], files: self.take_files()? });
        }
        let (mut backend, stop) = (test_plugin::open(plan)?, AtomicBool::new(false));
        backend.advance(STEPS - 1, Wanted::FORCE, &stop)?;
        backend.advance(1, Wanted::ALL, &stop)?;
        let sums = backend.sums()?;
        let of_components = sums.components.iter().flat_map(|s| [s.energy].into_iter().chain(s.virial));
        let sums = of_components.chain(sums.quantities.iter().copied()).collect();
        Ok(Ranked { state: backend.export()?, sums, files: BTreeMap::new() })
    }
}
