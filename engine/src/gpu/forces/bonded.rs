//! Bonded potentials of a stage on the device.

use super::Forces;
use crate::device::args::{BondArgs, VirialArgs};
use crate::device::{Device, Kernel};
use crate::gpu::arrays::{Buffer, launch};
use crate::gpu::codegen::{bond_unit, joint_bonds_unit};
use crate::gpu::pair_loop::{BlockSums, Computed};
use crate::gpu::ranks::Rank;
use crate::gpu::steps_kernel::MAX_ARGUMENTS;
use crate::plugins::Component;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::{LinkView, StateView};
use std::sync::Arc;

/// Threads of a block.
const BLOCK: u32 = 128;

/// A bonded potential.
pub(super) struct Bonded {
    /// Device code.
    pub text: String,
    force: Kernel,
    full: Kernel,
    diagonal: Kernel,
    sums: BlockSums,
    rows: Buffer,
    pub component: Arc<Component>,
    /// Index of its sums.
    slot: usize,
}

impl Bonded {
    /// Compiles the kernels of a bonded potential for `n` particles.
    pub fn new(
        device: &Arc<dyn Device>,
        component: &Arc<Component>,
        precision: Precision,
        n: usize,
        slot: usize,
        rank: Option<&Rank>,
    ) -> Result<Self> {
        let c = component;
        let part = c.bonded().ok_or_else(|| Error::Run(format!("{} is not a bonded potential", c.name)))?;
        let code = part.device(precision)?;
        let text = code.text.into_string();
        let module = device.compile(&bond_unit(&c.name, &text, c.link_list(), rank.is_some(), precision))?;
        Ok(Self {
            text,
            force: device.kernel(module, "bond_force")?,
            full: device.kernel(module, "bond_force_full")?,
            diagonal: device.kernel(module, "bond_force_diagonal")?,
            sums: BlockSums::new(device, 7, BLOCK as usize, n, module, "bond_force_end", rank)?,
            rows: Buffer::of_bytes(device, code.rows.as_slice())?,
            component: c.clone(),
            slot,
        })
    }
}

impl Forces {
    /// Compiles one kernel for the forces of all bonded potentials, if there are several. They read the same positions and add to the
    /// same forces.
    pub fn join_bonds(&mut self, precision: Precision) -> Result<()> {
        if self.bonded.len() < 2 || self.bonded.len() * size_of::<BondArgs>() > MAX_ARGUMENTS {
            return Ok(());
        }
        let texts: Vec<_> = self.bonded.iter().map(|b| (b.text.as_str(), b.component.link_list())).collect();
        let module = self.device.compile(&joint_bonds_unit(&texts, precision))?;
        self.joint_bonds = Some(self.device.kernel(module, "bonds_force")?);
        Ok(())
    }

    /// Launches the bonded potentials.
    pub(super) fn run_bonds(
        &self,
        state: &StateView,
        links: [LinkView; 4],
        virial: VirialArgs,
        computed: Computed,
    ) -> Result<()> {
        let d = &*self.device;
        if let (Some(kernel), Computed::Forces) = (self.joint_bonds, computed) {
            let names: Vec<&str> = self.bonded.iter().map(|b| b.component.name.as_str()).collect();
            d.profile().set_part(&names.join(" + "));
            let args: Vec<BondArgs> = self.bonded.iter().map(|b| self.bond_args(b, state, links, virial)).collect();
            let pointers: Vec<*mut Opaque> = args.iter().map(|a| std::ptr::from_ref(a).cast_mut().cast()).collect();
            let blocks = Extent::from(self.n.div_ceil(BLOCK as usize) as u32);
            // SAFETY: the kernel takes the arguments of all bonded potentials, whose views describe arrays of this device
            return unsafe { d.launch(kernel, blocks, Extent::from(BLOCK), 0, &pointers) };
        }
        for b in &self.bonded {
            d.profile().set_part(&b.component.name);
            let args = self.bond_args(b, state, links, virial);
            match computed {
                Computed::Forces => launch(d, b.force, self.n, BLOCK, &args)?,
                Computed::Diagonal => launch(d, b.diagonal, self.n, BLOCK, &args)?,
                Computed::All => {
                    launch(d, b.full, self.n, BLOCK, &args)?;
                    self.add_blocks(&b.sums, state, BLOCK, &args)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn bond_args(
        &self,
        b: &Bonded,
        state: &StateView,
        links: [LinkView; 4],
        virial: VirialArgs,
    ) -> BondArgs {
        BondArgs {
            state: *state,
            links: links[b.component.link_list().index()],
            rows: b.rows.address(),
            first_varying: b.component.first_varying,
            component: b.component.id,
            partial: b.sums.partial.address(),
            counter: self.counter.address(),
            sums: self.sum_address(b.slot),
            virial,
        }
    }
}
