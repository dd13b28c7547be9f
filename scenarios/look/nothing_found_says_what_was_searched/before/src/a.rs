fn Main() {}
fn main2() {}
