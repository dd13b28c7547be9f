// Pinfold's tools with the AI SDK, on a model that follows a script; put your own in its place.
import { readFileSync } from "node:fs";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { createTools } from "pinfold";
import { file, root, script, task } from "./scripted.mjs";

let number = 0;
const model = new MockLanguageModelV3({
  doGenerate: async () => {
    const turn = script[number];
    number += 1;
    return {
      content: turn.tool
        ? [
            {
              type: "tool-call",
              toolCallId: `call-${number}`,
              toolName: turn.tool,
              input: JSON.stringify(turn.args),
            },
          ]
        : [{ type: "text", text: turn.text }],
      finishReason: { unified: turn.tool ? "tool-calls" : "stop", raw: undefined },
      usage: { inputTokens: {}, outputTokens: {} },
      warnings: [],
    };
  },
});

const tools = createTools({ root }).map(({ config, execute, formatCompactParams }) => {
  const { name, description, parameters } = config.function;
  const wrapped = tool({
    description,
    inputSchema: jsonSchema(parameters),
    execute: async (args, { abortSignal }) => {
      console.log(name, formatCompactParams(args));
      const result = await execute(args, { abortSignal });
      return result.success ? result.content : `Error: ${result.error}`;
    },
  });
  return [name, wrapped];
});

const { text } = await generateText({
  model,
  tools: Object.fromEntries(tools),
  stopWhen: stepCountIs(10),
  prompt: `${task} They are in ${root}.`,
});
console.log(text);
console.log(readFileSync(file, "utf8"));
