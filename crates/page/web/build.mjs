// Bundles the page: `node build.mjs DIR` writes page.js and page.css there. With `--test`, bundles what the tests
// import into test/built.
import { build } from "esbuild";

const [target] = process.argv.slice(2);
const common = { bundle: true, logLevel: "warning", target: "es2022", charset: "utf8" };
if (target === "--test") {
  await build({ ...common, entryPoints: ["src/diff.ts", "src/text.ts"], format: "esm", outdir: "test/built" });
} else if (target) {
  const page = { ...common, minify: true, legalComments: "eof", outdir: target };
  await build({ ...page, entryPoints: ["src/page.ts", "src/page.css"], format: "esm" });
} else {
  throw new Error("node build.mjs DIR | --test");
}
