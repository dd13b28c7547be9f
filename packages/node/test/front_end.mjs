// The scenario corpus through this package: reads one call per line, prints one result per line.
import { createInterface } from "node:readline";
import { Session } from "pinfold";

// The corpus has the names of the configuration file.
const camelCase = (name) => name.replace(/_[a-z]/g, ([, letter]) => letter.toUpperCase());
const options = Object.entries(JSON.parse(process.argv[2])).map(([name, value]) => [camelCase(name), value]);
const session = new Session(Object.fromEntries(options));
const tools = new Map(session.tools.map((tool) => [tool.name, tool]));

for await (const line of createInterface({ input: process.stdin })) {
  const { tool, args } = JSON.parse(line);
  const known = tools.get(tool);
  const result = await (known ? known.execute(args) : session.call(tool, args));
  console.log(JSON.stringify(result.data ?? result));
}
