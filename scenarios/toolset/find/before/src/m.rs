fn main() {
    one();
}
