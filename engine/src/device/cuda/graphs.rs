//! CUDA graphs: stream capture and conditional nodes.

use super::context::CudaDevice;
use super::driver::{call, fail};
use crate::device::Graph;
use crate::device::ptx::condition_ptx;
use cudarc::driver::sys;
use galamost_plugin_api::abi::Extent;
use galamost_plugin_api::error::Result;
use std::ffi::CString;

/// The condition of a graph node; a kernel sets it.
#[derive(Clone, Copy)]
pub(super) enum Condition {
    /// The globals request a rebuild.
    Rebuild,
    /// As above: 0 for one of this many rebuilds, 1 for others, 2 if there is no request.
    RebuildOf(u32),
    /// The word at this address is not 0.
    Nonzero(u64),
}

/// The graph that the current capture adds nodes to.
pub(super) struct Capture {
    graph: sys::CUgraph,
}

impl CudaDevice {
    /// Begins a capture into `graph`; its first nodes wait for the nodes `after`.
    fn begin_capture(&self, graph: sys::CUgraph, after: &[sys::CUgraphNode]) -> Result<()> {
        // SAFETY: the handles are valid, and the length is that of the array
        unsafe {
            call!(cuStreamBeginCaptureToGraph(
                self.stream,
                graph,
                after.as_ptr(),
                std::ptr::null(),
                after.len(),
                sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            ))
        }
    }

    /// Ends the current capture and returns its last nodes; later nodes must wait for them.
    fn end_capture(&self) -> Result<Vec<sys::CUgraphNode>> {
        // SAFETY: the stream is capturing; the driver's list of nodes is copied before the next call
        unsafe {
            let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
            let mut graph = std::ptr::null_mut();
            let mut nodes = std::ptr::null();
            let mut n = 0;
            let mut id = 0;
            call!(cuStreamGetCaptureInfo_v3(
                self.stream,
                &raw mut status,
                &raw mut id,
                &raw mut graph,
                &raw mut nodes,
                std::ptr::null_mut(),
                &raw mut n,
            ))?;
            let last = if n > 0 { std::slice::from_raw_parts(nodes, n).to_vec() } else { vec![] };
            call!(cuStreamEndCapture(self.stream, &raw mut graph))?;
            Ok(last)
        }
    }

    /// Captures the launches of `body`; `None` if graphs are disabled.
    pub(super) fn capture_graph(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        // some tools cannot look into graphs; conditional graphs of several runs would wait for each other
        if std::env::var_os("GALAMOST_NO_GRAPHS").is_some() || self.shared {
            return Ok(None);
        }
        // SAFETY: the handles are valid; the graph is destroyed after it is instantiated
        unsafe {
            let mut graph = std::ptr::null_mut();
            {
                let mut inner = self.activate()?;
                call!(cuGraphCreate(&raw mut graph, 0))?;
                inner.capture = Some(Capture { graph });
            }
            let captured = self.begin_capture(graph, &[]).and_then(|()| {
                let done = body();
                let ended = self.end_capture();
                done.and(ended.map(|_| ()))
            });
            let mut inner = self.activate()?;
            inner.capture = None;
            let mut exec = std::ptr::null_mut();
            let instantiated = captured.and_then(|()| call!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)));
            let _ = call!(cuGraphDestroy(graph));
            instantiated?;
            inner.graphs.push(Some(exec));
            Ok(Some(Graph(inner.graphs.len() as u64 - 1)))
        }
    }

    /// Launches a function with this grid and block and bytes of dynamic shared memory, `early` before those ahead of it have ended.
    ///
    /// # Safety
    /// The arguments are those that the function declares. One that is launched early waits for those ahead of it first.
    pub(super) unsafe fn launch_function(
        &self,
        function: sys::CUfunction,
        [grid, block]: [Extent; 2],
        shared: u32,
        early: bool,
        stream: sys::CUstream,
        args: &mut [*mut std::ffi::c_void],
    ) -> Result<()> {
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: shared,
            hStream: stream,
            attrs: &raw mut attribute,
            numAttrs: u32::from(early),
        };
        // SAFETY: the contract is that of this function, and the list of attributes has one
        unsafe { call!(cuLaunchKernelEx(&raw const config, function, args.as_mut_ptr(), std::ptr::null_mut())) }
    }

    /// Launches the kernel that sets a condition.
    fn set_condition(&self, handle: u64, globals: u64, condition: Condition) -> Result<()> {
        let mut inner = self.activate()?;
        let [rebuild, nonzero, choose] = match inner.conditions {
            Some(kernels) => kernels,
            None => {
                let ptx = CString::new(condition_ptx(self.begins_early)).map_err(|e| fail("conditions", e))?;
                let module = Self::load(ptx.as_bytes_with_nul())?;
                let function = |name: &str| self.function(module, name);
                let kernels = [function("set_rebuild")?, function("set_nonzero")?, function("choose_rebuild")?];
                inner.conditions = Some(kernels);
                kernels
            }
        };
        let (kernel, word) = match condition {
            Condition::Rebuild => (rebuild, globals),
            Condition::RebuildOf(number) => (choose, number.into()),
            Condition::Nonzero(word) => (nonzero, word),
        };
        let words = [handle, globals, word];
        let mut args = words.each_ref().map(|w| std::ptr::from_ref(w).cast_mut().cast());
        // SAFETY: the kernel takes three 64-bit words, and waits for those ahead of it if it begins early
        unsafe { self.launch_function(kernel, [Extent::from(1); 2], 0, self.begins_early, self.stream, &mut args) }
    }

    /// Captures a conditional node for a rebuild; see [`crate::device::Device::if_rebuild`].
    pub(super) fn conditional_rebuild(
        &self,
        globals: u64,
        sort_every: u32,
        body: &mut dyn FnMut(bool) -> Result<()>,
    ) -> Result<()> {
        if sort_every > 1 && version()? >= CHOOSING {
            let kind = sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH;
            self.conditional_node(globals, Condition::RebuildOf(sort_every), kind, &mut |number| body(number == 0))
        } else {
            let kind = sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF;
            self.conditional_node(globals, Condition::Rebuild, kind, &mut |_| body(true))
        }
    }

    /// Captures a conditional node whose body is the launches of `body`, which repeats while a word is not 0.
    pub(super) fn conditional_loop(&self, globals: u64, word: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let kind = sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE;
        self.conditional_node(globals, Condition::Nonzero(word), kind, &mut |_| body())
    }

    /// Captures a conditional node with bodies 0 and, if one is chosen, 1.
    fn conditional_node(
        &self,
        globals: u64,
        condition: Condition,
        kind: sys::CUgraphConditionalNodeType,
        body: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let (repeats, bodies, initial) = match condition {
            Condition::Rebuild => (false, 1, 0),
            Condition::RebuildOf(_) => (false, 2, 2),
            Condition::Nonzero(_) => (true, 1, 1),
        };
        let graph = match &self.activate()?.capture {
            Some(capture) => capture.graph,
            None => return Err(fail("conditional", "no capture is active")),
        };
        let mut handle = 0;
        // SAFETY: the handles and the pointer are valid
        unsafe { call!(cuGraphConditionalHandleCreate(&raw mut handle, graph, self.context, initial, 1))? };
        if !repeats {
            self.set_condition(handle, globals, condition)?;
        }
        let before = self.end_capture()?;
        let (node, inside) = self.add_conditional(graph, handle, kind, bodies, &before)?;
        let mut done = Ok(());
        for (number, inside) in inside.into_iter().enumerate() {
            // conditional nodes in the body belong to the body's graph
            self.activate()?.capture = Some(Capture { graph: inside });
            self.begin_capture(inside, &[])?;
            done = done.and_then(|()| body(number));
            if repeats && done.is_ok() {
                done = self.set_condition(handle, globals, condition);
            }
            let ended = self.end_capture();
            done = done.and(ended.map(|_| ()));
        }
        self.activate()?.capture = Some(Capture { graph });
        // later nodes wait for the conditional node; the capture must be active again even after an error
        self.begin_capture(graph, &[node])?;
        done
    }

    /// Adds a conditional node after the nodes `before`. Returns the node and the graphs of its bodies.
    fn add_conditional(
        &self,
        graph: sys::CUgraph,
        handle: u64,
        kind: sys::CUgraphConditionalNodeType,
        bodies: u32,
        before: &[sys::CUgraphNode],
    ) -> Result<(sys::CUgraphNode, Vec<sys::CUgraph>)> {
        // SAFETY: the handles are valid; the driver requires its structs to be zeroed before their fields are set, and returns
        // an array of as many graphs as there are bodies
        unsafe {
            let mut params: sys::CUgraphNodeParams = std::mem::zeroed();
            params.type_ = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
            params.__bindgen_anon_1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
                handle,
                type_: kind,
                size: bodies,
                phGraph_out: std::ptr::null_mut(),
                ctx: self.context,
            };
            let mut node = std::ptr::null_mut();
            call!(cuGraphAddNode_v2(
                &raw mut node,
                graph,
                before.as_ptr(),
                std::ptr::null(),
                before.len(),
                &raw mut params,
            ))?;
            let graphs = params.__bindgen_anon_1.conditional.phGraph_out;
            Ok((node, std::slice::from_raw_parts(graphs, bodies as usize).to_vec()))
        }
    }
}

/// The first version of CUDA whose conditional nodes choose between two bodies.
const CHOOSING: i32 = 12_080;

/// Returns the newest version of CUDA that the driver supports.
fn version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: the pointer is valid
    unsafe { call!(cuDriverGetVersion(&raw mut version))? };
    Ok(version)
}
