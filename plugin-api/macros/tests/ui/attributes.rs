use galamost_plugin_macros::device_fn;

#[device_fn]
fn conditional_compilation(x: real) -> real {
    #[cfg(debug_assertions)]
    let x = 2.0 * x;
    x
}

#[device_fn(f16)]
fn precision(x: real) -> real {
    x
}

fn main() {}
