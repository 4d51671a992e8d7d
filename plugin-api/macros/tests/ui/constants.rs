use galamost_plugin_macros::device_fn;

#[device_fn]
fn inside(x: real) -> real {
    const FACTOR: f64 = 2.0;
    FACTOR * x
}

#[device_fn]
fn lower_case(x: real) -> real {
    x * settings::factor
}

#[device_fn]
fn unknown(x: real) -> real {
    x * y
}

fn main() {}
