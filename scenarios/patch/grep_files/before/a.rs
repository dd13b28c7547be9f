fn one
