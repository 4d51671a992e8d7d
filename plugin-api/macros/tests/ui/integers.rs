use galamost_plugin_macros::device_fn;

#[device_fn]
fn too_large(n: u32) -> u32 {
    let m = n & 4294967295;
    m
}

#[device_fn]
fn shifted_literal(n: u64) -> u64 {
    let m = n & (1 << 40);
    m
}

#[device_fn]
fn suffix(n: i32) -> real {
    (n + 1i64) as real
}

#[device_fn]
fn text(n: i32) -> real {
    let name = "n";
    n as real
}

fn main() {}
