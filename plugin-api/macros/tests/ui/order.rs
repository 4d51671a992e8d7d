use galamost_plugin_macros::device_fn;

#[device_fn]
fn two_draws(random: &mut Random) -> real {
    random.uniform() - random.uniform()
}

#[device_fn]
fn read_beside_a_change(x: real) -> real {
    let mut n = x;
    n + changed(&mut n)
}

#[device_fn]
fn change_in_a_block(x: real) -> real {
    let mut n = x;
    let y = (n, { n = 2.0; n });
    y.0
}

#[device_fn]
fn index_that_changes(a: &mut Row<real>, n: u32) {
    let mut k = n;
    a.x[k] += changed(&mut k);
}

fn main() {}
