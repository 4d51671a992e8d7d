use galamost_plugin_macros::device_fn;

#[device_fn]
fn narrow(x: real) -> real {
    let n = x as i8;
    n as real
}

#[device_fn]
fn truth(n: u32) -> real {
    if n as bool { 1.0 } else { 0.0 }
}

fn main() {}
