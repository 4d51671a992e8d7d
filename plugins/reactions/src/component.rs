//! The updater.

use crate::cpu::OnHost;
use crate::device::{Lookup, OnDevice};
use crate::energy::BondEnergy;
use crate::law::{Kind, Partners};
use crate::resolve::{Event, Moment, Outcome, resolve};
use crate::table::Table;
use galamost_measure::{Cell, Table as Rows};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;

/// One reaction.
#[derive(Clone, Debug, Params)]
pub struct Reaction {
    /// What happens, see the page.
    pub kind: Kind,
    /// Particle types of the two roles; one type for `Die`.
    pub of: Spanned<Vec<Spanned<String>>>,
    /// P_r, the probability of an attempt.
    #[param(at_least = 0.0, at_most = 1.0)]
    pub p: f64,
    /// P_r is multiplied with it for each reaction that the partners have behind them (`h_cris`; both of `Join` and
    /// `Exchange`, the second of `Grow` and `Insert`).
    #[param(default = 1.0, at_least = 0.0, at_most = 1.0)]
    pub factor: f64,
    /// P_r is multiplied with the share of free groups, 1 − h_cris/limit, of the same partners: all groups of a particle react
    /// alike (Flory and Stockmayer), not all particles.
    #[param(default = false)]
    pub by_groups: bool,
    /// Type of the new bond; without it the type that is called after the particles' types, "A-B".
    pub bond: Option<Spanned<String>>,
    /// Type of new angles; without it the type that is called after the particles' types, "A-B-C", where there is one.
    pub angle: Option<Spanned<String>>,
    /// Type of new dihedrals; without it the type that is called after the particles' types, where there is one.
    pub dihedral: Option<Spanned<String>>,
    /// Type of the bond that breaks; of `Exchange`, `Insert`, `Break` and `Unzip`.
    pub broken: Option<Spanned<String>>,
    /// Types of the two particles afterwards.
    pub becomes: Option<[Spanned<String>; 2]>,
    /// Charges of the two particles afterwards.
    #[param(unit = "charge")]
    pub charges: Option<[f64; 2]>,
    /// U(r) of a bond, new or broken: the reaction is accepted with the probability min(1, exp(−ΔU/kT)).
    pub energy: Option<Spanned<BondEnergy>>,
    /// kT of `energy`.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    pub kt: Option<f64>,
}

/// Reactions: every `every` steps bonds form and break at random between particles nearer than r_cut, with their angles,
/// dihedrals and exclusions; also types and charges may change.
///
/// Each particle has two whole numbers: `h_init`, 1 for an active end (a radical), and `h_cris`, how often it has reacted;
/// it is free while that is less than its type's number in `limits` (1 if it is not there). Files and generators give them;
/// without `h_cris` all start at 0, and reactions of active ends need `h_init`. Of the types `of: ("A", "B")` the first is
/// that of particle i, the second that of j.
///
/// | kind | i | j | what happens |
/// |---|---|---|---|
/// | `Grow` | active | free, not active | bond i–j; j becomes the active end, `h_cris` of j + 1 |
/// | `Join` | free | free | bond i–j; `h_cris` of both + 1 (step growth, cross-links) |
/// | `Combine` | active | active | bond i–j; both die (termination by combination) |
/// | `Disproportionate` | active | active | both die, no bond |
/// | `Die` | active | | dies |
/// | `Exchange` | free | bonded to k | bond j–k breaks, bond i–j forms; `h_cris` of i + 1, of k − 1 |
/// | `Insert` | bonded to k | free, not active, also nearer than r_cut to k | bond i–k breaks, bonds i–j and j–k form, the second of the old type; `h_cris` of j + 1 |
/// | `Break` | bonded to j | | bond i–j breaks; `h_cris` of both − 1 |
/// | `Unzip` | active, one bond | bonded to i | bond i–j breaks; i is a free monomer, `h_cris` − 1; j is the active end (depolymerization) |
///
/// Which partners a particle i tries: `Each` tries every j in reach, each with P_r (k partners: p = 1 − (1 − P_r)^k); `One`
/// tries one of them, chosen at random, and `Nearest` the nearest one. With M free monomers in the volume V, well mixed,
/// and P* ends, one attempt of `Each` uses up P* (1 − exp(−P_r λ)) of them, λ = (4π/3) r_cut³ M/V; of `One` it is
/// P* P_r (1 − exp(−λ)), so the rate of polymerization is r_p = ρ* P_r/τ, ρ* = P*/V, τ = `every` dt, where partners
/// abound. Of a symmetric reaction of one type, `Each` tries a pair once.
///
/// What is possible is then done one by one in the order of random numbers keyed by the step, the reaction and the tags; a
/// particle takes part in at most one reaction of a call. So a run gives the same network on any number of threads, on the
/// CPU and on CUDA (given the same positions), and after a restart. No reaction makes a second bond between two particles.
/// Excluded pairs (`neighbors: (exclude: …)`) are not in reach of each other.
///
/// With `energy` and `kT` an attempt counts only with the probability min(1, exp(−ΔU/kT)), ΔU = Σ U of the new bonds − Σ U of
/// the broken one: `Join` and `Break` with the same P_r, reach and energy keep detailed balance where each attempt stands alone.
/// `bound` in U is the energy that a bond sets free.
///
/// A bond type must be there before the run: `LinkTypes` in `initial` declares it. New angles and dihedrals are all those
/// along the new bond whose type is given or has the name of their particles' types after the reaction; those along a bond
/// that breaks go with it. Types change forces, not groups: a group's members are those of the initial state.
///
/// `file` is a CSV of what took place: `step`, `reaction` (number in the list, from 0), `kind`, `first`, `second`, `third`
/// (tags; empty if there is none). Where its name ends in `.parquet`, the table is a folder of Parquet files.
///
/// The device searches and changes tables; what to do is decided on the host from a few kilobytes.
///
/// Reference: Y.-L. Zhu et al., J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365, eq 25 and Algorithm 4; H. Liu,
/// H.-J. Qian, Y. Zhao, Z.-Y. Lu, J. Chem. Phys. 127 (2007) 144903, doi:10.1063/1.2790005.
///
/// ```ron
/// Reactions(every: 20, r_cut: 1.3, limits: { "A": 2 }, reactions: [
///     (kind: Join, of: ("A", "B"), p: 0.05),
///     (kind: Break, of: ("A", "B"), p: 0.05, broken: "A-B"),
/// ])
/// ```
#[component(Updater, "Reactions")]
#[derive(Params)]
pub struct Reactions {
    /// Steps from one attempt to the next.
    #[param(at_least = 1)]
    pub every: u64,
    /// Distance below which particles react.
    #[param(unit = "length", above = 0.0)]
    pub r_cut: Spanned<f64>,
    /// Which partners a particle tries.
    #[param(default = Partners::Each)]
    pub partners: Partners,
    /// How often a particle of a type may react.
    pub limits: Option<TypeMap<Spanned<u32>>>,
    /// The reactions.
    pub reactions: Spanned<Vec<Spanned<Reaction>>>,
    /// A file for what took place.
    pub file: Option<String>,
    #[param(skip)]
    table: Table,
    #[param(skip)]
    rows: Option<Rows>,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    started: Option<Started>,
}

struct Started {
    host: Host,
    device: Option<OnDevice>,
}

const NAMES: [&str; 6] = ["step", "reaction", "kind", "first", "second", "third"];

impl Reactions {
    /// Rows of the file.
    fn note(table: &Table, rows: &mut Rows, step: u64, outcome: &Outcome) -> Result<()> {
        let row = |e: &Event| {
            let [first, second, third] = [0, 1, 2].map(|k| Cell::from(e.members.get(k).copied()));
            vec![step.into(), e.reaction.into(), table.rows[e.reaction].kind().name().into(), first, second, third]
        };
        rows.append(&NAMES, &outcome.events.iter().map(row).collect::<Vec<_>>())
    }
}

impl Updater for Reactions {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.table = Table::new(self, system)?;
        needs.period = self.every;
        needs.cutoff = self.r_cut.value;
        needs.plain_images = true;
        let array = |name: &str, integer| ArrayNeed { name: name.into(), width: 1, integer, required: false };
        needs.arrays = vec![array("h_init", true), array("h_cris", true)];
        if self.table.charged {
            needs.arrays.push(array("charge", false));
        }
        self.rows = self.file.as_ref().map(|file| {
            let mut rows = Rows::default();
            rows.bind(system, file);
            rows
        });
        self.cuda = system.device == "cuda";
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda { Some(OnDevice::new(&host, &self.table)?) } else { None };
        if let Some(rows) = &mut self.rows {
            let i = Cell::Int(None);
            rows.start()?;
            rows.begin(&NAMES, &[i.clone(), i.clone(), Cell::Text(None), i.clone(), i.clone(), i])?;
        }
        self.started = Some(Started { host, device });
        Ok(())
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let Some(Started { host, device }) = &mut self.started else {
            return Err(Error::Run("Reactions was not started".into()));
        };
        let table = &self.table;
        let fixed = call.state.precision != Precision::Double as u32;
        // SAFETY: the engine's word
        let length = unsafe { call.sim_box()?.length };
        let now = Moment { key: call.key, step: call.step, length, fixed };
        let outcome = if let Some(device) = device {
            // SAFETY: the engine's word about the views
            let (candidates, mut world) = unsafe { device.candidates(host, table, call, now)? };
            if candidates.is_empty() {
                return Ok(());
            }
            let mut source = Lookup { device, host, table, call, now };
            let outcome = resolve(table, &candidates, &mut world, &mut source, now)?;
            // SAFETY: as above
            unsafe { device.apply(host, call, &outcome, &world)? };
            outcome
        } else {
            // SAFETY: the engine's word about the views; the table of changes is only written behind the search
            unsafe {
                let mut state = OnHost::new(host, call, now);
                let candidates = state.candidates(host, table);
                let mut world = Default::default();
                let outcome = resolve(table, &candidates, &mut world, &mut state, now)?;
                for e in &outcome.edits {
                    call.edits.request(*e);
                }
                if outcome.edits.len() <= call.edits.capacity as usize {
                    state.apply(&outcome, &world);
                }
                outcome
            }
        };
        if outcome.edits.len() > call.edits.capacity as usize {
            // the engine makes room and calls again
            return Ok(());
        }
        if outcome.forces {
            call.changed = changed::FORCES;
        }
        self.rows.as_mut().map_or(Ok(()), |rows| Self::note(table, rows, call.step, &outcome))
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.as_mut().map_or(Ok(()), Rows::finish)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.as_mut().map_or(Ok(vec![]), Rows::save)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.rows.as_mut().map_or(Ok(()), |rows| rows.load(state).map(drop))
    }
}
