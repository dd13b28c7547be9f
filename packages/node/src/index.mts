// The same module for `import` and `require`, so that both have the same classes.
export * from "./index.js";
