//! Kernels written in PTX.

use galamost_plugin_api::views::Globals;
use std::mem::offset_of;

/// Returns the kernels that set the condition of a graph node: `set_rebuild` from the rebuild request in the globals,
/// `set_nonzero` from the word at `word`. Both set it to 0 on a halt. `choose_rebuild` sets it to 0 if the requested rebuild is one of
/// every `word`, to 1 if it is another one, and to 2 without a request and on a halt.
///
/// The kernels are PTX because the driver's assembler resolves `cudaGraphSetConditional`. The PTX version is old enough
/// for every driver with conditional nodes. With `early`, which needs sm_90, they may be launched before those ahead have ended.
pub fn condition_ptx(early: bool) -> String {
    let (version, target, wait) = if early { ("7.8", "sm_90", "griddepcontrol.wait;") } else { ("7.0", "sm_70", "") };
    let kernel = |name: &str, load: &str, [chosen, none]: [&str; 2]| {
        format!(
            ".visible .entry {name} (.param .u64 handle_param, .param .u64 globals_param, .param .u64 word_param)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<7>;
    {wait}
    ld.param.u64 %rd1, [handle_param];
    ld.param.u64 %rd2, [globals_param];
    ld.param.u64 %rd4, [word_param];
    cvta.to.global.u64 %rd3, %rd2;
    cvta.to.global.u64 %rd5, %rd4;
    ld.global.u32 %r1, [%rd3+{halt}];
    ld.global.u32 %r2, [{load}];
    setp.ne.u32 %p2, %r2, 0;
    {chosen}
    selp.u32 %r4, %r5, {none}, %p2;
    setp.ne.u32 %p1, %r1, 0;
    selp.u32 %r3, {none}, %r4, %p1;
    {{
    .param .b64 param0;
    .param .b32 param1;
    st.param.b64 [param0], %rd1;
    st.param.b32 [param1], %r3;
    call.uni cudaGraphSetConditional, (param0, param1);
    }}
    ret;
}}
",
            halt = offset_of!(Globals, halt),
        )
    };
    let rebuild = format!("%rd3+{}", offset_of!(Globals, rebuild));
    let kind = format!(
        "ld.global.u64 %rd5, [%rd3+{}];
    rem.u64 %rd6, %rd5, %rd4;
    setp.ne.u64 %p3, %rd6, 0;
    selp.u32 %r5, 1, 0, %p3;",
        offset_of!(Globals, rebuilds)
    );
    format!(
        ".version {version}
.target {target}
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
{}{}{}",
        kernel("set_rebuild", &rebuild, ["mov.u32 %r5, 1;", "0"]),
        kernel("set_nonzero", "%rd5", ["mov.u32 %r5, 1;", "0"]),
        kernel("choose_rebuild", &rebuild, [&kind, "2"]),
    )
}

/// A kernel that waits for a fixed time. Launches after it queue up, so their times do not include the host's launch
/// overhead.
pub const WAIT_PTX: &str = ".version 7.0
.target sm_70
.address_size 64
.visible .entry wait (.param .u64 nanoseconds)
{
    .reg .pred %p<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [nanoseconds];
    mov.u64 %rd2, %globaltimer;
again:
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, %rd1;
    @%p1 bra again;
    ret;
}
";

/// Waiting time, about as long as the host needs for the launches of a step.
pub const WAIT_NANOSECONDS: u64 = 150_000;
