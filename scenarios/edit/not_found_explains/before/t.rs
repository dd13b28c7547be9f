fn f() {
    let total = price * amount;
}
