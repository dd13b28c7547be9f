// hello
fn main() {
    println!("hi");
    run();
}
