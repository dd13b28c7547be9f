fn main() {
    two();
}
