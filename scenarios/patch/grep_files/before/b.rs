fn two
