use galamost_plugin_macros::device_fn;

#[device_fn]
fn from_a_statement(x: real) -> real {
    if x > 1.0 {
        return x;
    }
    2.0 * x
}

#[device_fn]
fn from_an_expression(x: real) -> real {
    let y = if x > 1.0 { return x } else { 2.0 };
    x * y
}

#[device_fn]
fn from_a_block(x: real) -> real {
    let y = {
        let z = 2.0 * x;
        return z;
    };
    y
}

#[device_fn]
fn with_a_question_mark(x: real) -> real {
    let y = x?;
    y
}

fn main() {}
