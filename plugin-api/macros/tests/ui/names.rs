use galamost_plugin_macros::device_fn;

#[device_fn]
fn int(x: real) -> real {
    x
}

#[device_fn]
fn load(x: real) -> real {
    x
}

#[device_fn]
fn device_exp(x: real) -> real {
    x
}

#[device_fn]
fn größe(x: real) -> real {
    x
}

fn main() {}
