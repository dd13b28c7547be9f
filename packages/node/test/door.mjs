// The scenario corpus through this package: a call a line in, an answer a line out.
import { createInterface } from "node:readline";
import { Session } from "pinfold";

const session = new Session(JSON.parse(process.argv[2]));
const tools = new Map(session.tools.map((tool) => [tool.name, tool]));

for await (const line of createInterface({ input: process.stdin })) {
  const { tool, args } = JSON.parse(line);
  const known = tools.get(tool);
  const result = await (known ? known.execute(args) : session.call(tool, args));
  console.log(JSON.stringify(result.data ?? result));
}
