let foo = 1;
let bar = foo;
// foo again
end
