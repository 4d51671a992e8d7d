use galamost_plugin_macros::device_fn;

#[device_fn]
fn no_value(x: real) -> real {
    let y = { let z = x; };
    y
}

#[device_fn]
fn no_else(x: real) -> real {
    let y = if x > 1.0 { 2.0 };
    y
}

#[device_fn]
fn no_effect(x: real) -> real {
    x + 1.0;
    x
}

#[device_fn]
fn not_unsafe(x: real) -> real {
    unsafe { x }
}

fn main() {}
