//! The `Reactions` updater.

use crate::cpu::HostSearch;
use crate::device::{DeviceSearch, Lookup};
use crate::energy::{AngleEnergy, BondEnergy, PairEnergy};
use crate::law::{Kind, Partners};
use crate::ranks::Found;
use crate::resolve::{CallContext, Event, Outcome, ParticleMap, resolve};
use crate::table::Table;
use galamost_measure::{Cell, Table as Rows};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::{changed, phase};

/// One reaction.
#[derive(Clone, Debug, Params)]
pub struct Reaction {
    /// Kind of reaction, see the table above.
    pub kind: Kind,
    /// Particle types of i and j; one type for `Die`.
    pub of: Spanned<Vec<Spanned<String>>>,
    /// Probability P_r of an attempt.
    #[param(at_least = 0.0, at_most = 1.0)]
    pub p: f64,
    /// Factor on P_r for each reaction that the partners have already undergone (`h_cris`; both partners of `Join` and
    /// `Exchange`, the second of `Grow` and `Insert`; not for other kinds). It has no effect on free particles with a limit of 1,
    /// which have not reacted before. Default: 1.
    #[param(at_least = 0.0, at_most = 1.0)]
    pub factor: Option<Spanned<f64>>,
    /// Whether P_r is multiplied by the fraction of free groups, 1 − h_cris/limit, of the same partners. Then all
    /// groups of a particle are equally reactive (Flory–Stockmayer), instead of all particles. The fraction of a free
    /// particle with a limit of 1 is always 1. Default: false.
    pub by_groups: Option<Spanned<bool>>,
    /// Type of the new bond; default: the type named after the particle types, "A-B".
    pub bond: Option<Spanned<String>>,
    /// Type of new angles; default: the type named after the particle types, "A-B-C", if it exists.
    pub angle: Option<Spanned<String>>,
    /// Type of new dihedrals; default: the type named after the particle types, if it exists.
    pub dihedral: Option<Spanned<String>>,
    /// Type of the bond to break; for `Exchange`, `Insert`, `Break`, and `Unzip`.
    pub broken: Option<Spanned<String>>,
    /// New types of i and j.
    pub becomes: Option<[Spanned<String>; 2]>,
    /// New charges of i and j.
    #[param(unit = "charge")]
    pub charges: Option<[f64; 2]>,
    /// Energy U(r) of a bond that forms or breaks; see the table of energies above.
    pub energy: Option<Spanned<BondEnergy>>,
    /// Energy U(θ) of each angle between a bond that forms or breaks and the other bonds of its particles, added to
    /// `energy`; not for `Exchange` and `Insert`.
    pub angle_energy: Option<Spanned<AngleEnergy>>,
    /// Energy U(r) of the two particles of a bond while they are not bonded.
    pub pair_energy: Option<Spanned<PairEnergy>>,
    /// Activation energy E_a: the reaction is accepted with probability min(1, exp(−(E_a − U)/kT)), with the energy U
    /// before the reaction.
    #[param(unit = "energy")]
    pub activation_energy: Option<Spanned<f64>>,
    /// Whether U of a bond that breaks is the mean of `energy` and `angle_energy` over the bond and its angles, not
    /// their sum; with `activation_energy`. Default: false.
    pub mean_energy: Option<Spanned<bool>>,
    /// Thermal energy kT for `energy` and `activation_energy`.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    pub kt: Option<f64>,
    /// Smallest angle in degrees between a new bond and the other bonds of its particles: attempts with a smaller angle
    /// fail. For `Grow`, `Join`, and `Combine`.
    #[param(at_least = 0.0, at_most = 180.0)]
    pub min_angle_deg: Option<Spanned<f64>>,
}

/// Forms and breaks bonds at random between particles closer than r_cut, with their angles, dihedrals, and exclusions.
///
/// Reactions can also change particle types and charges; masses do not change. Each particle has two integers. `h_init` is 1 for an active
/// end (a radical). `h_cris` counts its reactions. A particle is free while `h_cris` is less than the limit of its type
/// in `limits` (default 1). Files and generators provide these arrays; without `h_cris`, all counts start at 0, and
/// reactions of active ends need `h_init`. In `of: ("A", "B")`, the first type is that of particle i, the second that
/// of j.
///
/// | kind | i | j | effect |
/// |---|---|---|---|
/// | `Grow` | active | free, not active | bond i–j forms; j becomes the active end, `h_cris` of j + 1 |
/// | `Join` | free | free | bond i–j forms; `h_cris` of both + 1 (step growth, cross-links) |
/// | `Combine` | active | active | bond i–j forms; both become inactive (termination by combination) |
/// | `Disproportionate` | active | active | both become inactive, no bond |
/// | `Die` | active | | i becomes inactive |
/// | `Exchange` | free | bonded to k | bond j–k breaks, bond i–j forms; `h_cris` of i + 1, of k − 1 |
/// | `Insert` | bonded to k | free, not active, closer than r_cut to k | bond i–k breaks, bonds i–j and j–k form, the second with the old type; `h_cris` of j + 1 |
/// | `Break` | bonded to j | | bond i–j breaks; `h_cris` of both − 1 |
/// | `Unzip` | active, one bond | bonded to i | bond i–j breaks; i becomes a free monomer, `h_cris` − 1; j becomes the active end (depolymerization) |
///
/// `limits` bounds `h_cris`, not the number of bonds: `Insert` adds two bonds to j for one reaction, `Grow` counts for j
/// alone, `Combine` for neither particle, and `Break` subtracts 1 from both particles of any bond, down to 0. With one of
/// these kinds and `Break`, a particle can have more bonds than its limit.
///
/// `partners` selects the partners that a particle i tries:
///
/// | partners | tries |
/// |---|---|
/// | `Each` | every j within r_cut, each with probability P_r (for k partners p = 1 − (1 − P_r)^k); a pair of a symmetric reaction of one type is tried once |
/// | `One` | one j, chosen at random |
/// | `Nearest` | the nearest j |
///
/// With `One` and `Nearest`, both particles of a symmetric reaction of one type try: two that are alone react with 1 − (1 − P_r)².
///
/// Kinetics: for M well-mixed free monomers in the volume V and P* active ends, one attempt with `Each` consumes P* (1
/// − exp(−P_r λ)) monomers, λ = (4π/3) r_cut³ M/V; with `One` it consumes P* P_r (1 − exp(−λ)). If partners abound, the
/// rate of polymerization is r_p = ρ* P_r/τ, ρ* = P*/V, τ = `every` dt.
///
/// Candidates are executed one by one in the order of random numbers that are keyed by step, reaction, and tags. A
/// particle takes part in at most one reaction of a call. The resulting network therefore does not depend on the number
/// of threads, on CPU or CUDA (for equal positions), or on restarts. No reaction forms a second bond between two
/// particles. Excluded pairs (`neighbors: (exclude: …)`) do not react.
///
/// With energies: U of a bond is `energy` plus the sum of `angle_energy` over its angles: those with the other bonds of its two
/// particles. U of a pair without a bond is `pair_energy`. A pair passes the energy criterion at most once in a call, even if
/// both of its particles attempt the reaction. After an attempt has passed P_r, the pair is accepted with one of these probabilities:
///
/// | fields | probability | `Join` | `Break` |
/// |---|---|---|---|
/// | `energy`, `kT` | min(1, exp(−ΔU/kT)) | ΔU = U_bond − U_pair | ΔU = U_pair − U_bond |
/// | `activation_energy`, `kT` | min(1, exp(−(E_a − U)/kT)) | U = U_pair | U = U_bond |
///
/// `Exchange` and `Insert` add these energies over the new bonds and the broken bond. `bound` in `energy` is the energy
/// released by a bond. Give `pair_energy` with ΔU if bonded pairs are excluded from the pair potential.
///
/// `Join` and `Break` with equal P_r, range, and energies satisfy detailed balance with ΔU and `partners: Each`, as long as attempts are
/// independent; with `One` and `Nearest` a bond is tried as often as with `Each`, a pair is not. With equal E_a they do while U ≤ E_a on both sides, `bound` being part of U_bond. A `min_angle_deg` of
/// `Join` without a counterpart in `Break`, `mean_energy`, and unequal P_r do not satisfy it; a ratio f of P_r acts like
/// a binding energy that differs by kT ln f. If angle potentials act along new bonds and neither `angle_energy` nor
/// `min_angle_deg` is given, bonds form at any angle and the new angles heat the system.
///
/// Bond types must exist before the run; declare them with `LinkTypes` in `initial`. New angles and dihedrals are all
/// those along the new bond whose type is given or is named after the particle types after the reaction. Angles and
/// dihedrals along a broken bond are removed. Type changes affect forces but not groups: group membership is evaluated
/// once, at the start of the run.
///
/// `file` is a CSV table of the reactions that took place: `step`, `reaction` (index in the list, from 0), `kind`,
/// `first`, `second`, `third` (tags; empty if not applicable). A file name that ends in `.parquet` selects a folder of
/// Parquet files. On a GPU, the device searches for candidates and refuses those that their energies refuse; the host resolves conflicts
/// between the others. Several GPUs or processes search their own particles, and all of them decide from the candidates of all.
///
/// References: Y.-L. Zhu et al., J. Comput. Chem. 34, 2197 (2013), doi:10.1002/jcc.23365, eq 25 and Algorithm 4; H.
/// Liu, H.-J. Qian, Y. Zhao & Z.-Y. Lu, J. Chem. Phys. 127, 144903 (2007), doi:10.1063/1.2790005.
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
    /// Steps between attempts.
    #[param(at_least = 1)]
    pub every: u64,
    /// Reaction distance: closer particles can react.
    #[param(unit = "length", above = 0.0)]
    pub r_cut: Spanned<f64>,
    /// Partners that a particle tries: `Each`, `One`, or `Nearest`.
    #[param(default = Partners::Each)]
    pub partners: Partners,
    /// Maximum number of reactions of a particle, for each type; default: 1.
    pub limits: Option<TypeMap<Spanned<u32>>>,
    /// List of reactions.
    pub reactions: Spanned<Vec<Spanned<Reaction>>>,
    /// Output file for the reactions that took place.
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
    device: Option<DeviceSearch>,
}

const NAMES: [&str; 6] = ["step", "reaction", "kind", "first", "second", "third"];

impl Reactions {
    /// Appends the reactions of a call to the file.
    fn record_events(table: &Table, rows: &mut Rows, step: u64, outcome: &Outcome) -> Result<()> {
        let row = |e: &Event| {
            let [first, second, third] = [0, 1, 2].map(|k| Cell::from(e.members.get(k).copied()));
            vec![step.into(), e.reaction.into(), table.rows[e.reaction].kind().name().into(), first, second, third]
        };
        rows.append(&NAMES, &outcome.events.iter().map(row).collect::<Vec<_>>())
    }
}

impl Reactions {
    /// Returns a warning if bonds form and break with energies, and the rule for partners violates detailed balance.
    fn unbalanced(&self) -> Option<String> {
        let rule = match self.partners {
            Partners::Each => return None,
            Partners::One => "One",
            Partners::Nearest => "Nearest",
        };
        let types = |kind: Kind| {
            self.reactions.value.iter().map(|r| &r.value).filter(move |r| r.kind == kind && r.kt.is_some()).map(|r| {
                let mut of: Vec<&str> = r.of.value.iter().map(|name| name.value.as_str()).collect();
                of.sort_unstable();
                of
            })
        };
        let both = types(Kind::Join).find(|join| types(Kind::Break).any(|broken| broken == *join))?;
        let of = both.join(" and ");
        Some(format!(
            "Join and Break of {of} violate detailed balance with `partners: {rule}`: bonds are tried one by one, pairs are not; for an \
             equilibrium use `partners: Each`"
        ))
    }

    /// Returns a warning for each `factor` and `by_groups` that cannot change P_r: the partners whose reactions count are free, and with
    /// a limit of 1 they have not reacted before.
    fn ineffective(&self, system: &SystemInfo) -> Vec<String> {
        let mut warnings = vec![];
        for (r, row) in self.reactions.value.iter().map(|r| &r.value).zip(&self.table.rows) {
            let counted = match row.kind() {
                Kind::Join => &row.of[..],
                Kind::Grow | Kind::Insert => &row.of[1..],
                _ => continue,
            };
            if counted.iter().any(|t| self.table.limits[*t as usize] > 1) {
                continue;
            }
            let [a, b] = row.of.map(|t| &system.types[t as usize]);
            let fields = [
                ("factor", r.factor.as_ref().is_some_and(|f| f.value != 1.0)),
                ("by_groups", r.by_groups.as_ref().is_some_and(|b| b.value)),
            ];
            for (name, _) in fields.into_iter().filter(|(_, given)| *given) {
                warnings.push(format!(
                    "{} of {a} and {b}: `{name}` has no effect, because free particles with a limit of 1 have not reacted before; raise \
                     their limit in `limits`, or remove `{name}`",
                    row.kind().name()
                ));
            }
        }
        warnings
    }
}

impl Updater for Reactions {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.table = Table::new(self, system)?;
        needs.warnings.extend(self.unbalanced());
        needs.warnings.extend(self.ineffective(system));
        needs.period = self.every;
        needs.cutoff = self.r_cut.value;
        (needs.plain_images, needs.shared, needs.searches) = (true, true, true);
        (needs.links, needs.link_types) = (Some(LinkList::Bonds), Some(self.table.bond_types()));
        needs.constrainable = true;
        let array = |name: &str, integer| ArrayNeed { name: name.into(), width: 1, integer, required: false };
        needs.arrays = vec![array("h_init", true), array("h_cris", true)];
        if self.table.charged {
            needs.arrays.push(array("charge", false));
            needs.changes_charges = true;
        }
        self.rows = self.file.as_ref().and_then(|file| {
            let mut rows = Rows::default();
            // every rank declares the output, which only the first one writes
            rows.bind(system, needs, file);
            (system.rank == 0).then_some(rows)
        });
        self.cuda = system.device == "cuda";
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda { Some(DeviceSearch::new(&host, &self.table)?) } else { None };
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
            return Err(Error::Run("Reactions: `start` was not called".into()));
        };
        let table = &self.table;
        if let (phase::SEARCH, Some(device)) = (call.phase, &mut *device) {
            // SAFETY: the engine passes views of arrays of the device that are valid when the search runs
            return unsafe { device.search(host, table, call) };
        }
        let fixed = call.state.precision != Precision::Double as u32;
        // SAFETY: the engine passes valid views
        let length = unsafe { call.sim_box()?.length };
        let now = CallContext { key: call.key, step: call.step, length, fixed };
        let capacity = call.host_edits.capacity as usize;
        let outcome = if let Some(device) = device {
            // SAFETY: the engine passes views of valid arrays of the device
            let own = unsafe { device.candidates(host, table, call)? };
            let Found { candidates, mut particles } = own.gather(host, &call.state)?;
            let outcome = resolve(table, &candidates, &mut particles, &mut Lookup { device, host, table, call }, now)?;
            if !outcome.events.is_empty() && outcome.edits.len() <= capacity {
                // SAFETY: the engine passes views of valid arrays of the device
                unsafe { device.apply(host, call, &outcome, &particles)? };
            }
            outcome
        } else {
            // SAFETY: the engine passes views of valid host arrays
            unsafe {
                let mut state = HostSearch::new(host, call, now);
                let own = Found { candidates: state.candidates(host, table), particles: ParticleMap::new() };
                let Found { candidates, mut particles } = own.gather(host, &call.state)?;
                let outcome = resolve(table, &candidates, &mut particles, &mut state, now)?;
                if outcome.edits.len() <= capacity {
                    state.apply(&outcome, &particles);
                }
                outcome
            }
        };
        if outcome.events.is_empty() {
            call.changed = changed::NOTHING;
            return Ok(());
        }
        call.changed = changed::HOST_EDITS;
        for e in &outcome.edits {
            // SAFETY: the queue is that of this call, which only this thread uses
            unsafe { call.host_edits.request(*e) };
        }
        if outcome.edits.len() > capacity {
            // the engine enlarges the queue and calls again
            return Ok(());
        }
        if outcome.forces {
            call.changed |= changed::FORCES;
        }
        self.rows.as_mut().map_or(Ok(()), |rows| Self::record_events(table, rows, call.step, &outcome))
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
