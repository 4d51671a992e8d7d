use galamost_plugin_macros::device_fn;

#[device_fn]
fn with_while(mut x: real) -> real {
    while x > 1.0 {
        x *= 0.5;
    }
    x
}

#[device_fn]
fn forever(x: real) -> real {
    loop {}
}

#[device_fn]
fn backwards(n: u32) -> real {
    let mut s = 0.0;
    for k in (0..n).rev() {
        s += k as real;
    }
    s
}

#[device_fn]
fn open(n: u32) -> real {
    for k in 0.. {}
    0.0
}

#[device_fn]
fn leaving(n: u32) -> real {
    for k in 0..n {
        if k == 3 {
            break;
        }
    }
    0.0
}

#[device_fn]
fn skipping(n: u32) -> real {
    for k in 0..n {
        if k == 3 {
            continue;
        }
    }
    0.0
}

#[device_fn]
fn pairs(n: u32) -> real {
    for (j, k) in 0..n {}
    0.0
}

fn main() {}
