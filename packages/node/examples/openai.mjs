// Pinfold's tools with OpenAI's SDK. With OPENAI_API_KEY and OPENAI_MODEL set it talks to a real one.
import { readFileSync } from "node:fs";
import OpenAI from "openai";
import { Session } from "pinfold";
import { file, root, serve, task } from "./scripted.mjs";

const scripted = process.env.OPENAI_API_KEY
  ? undefined
  : await serve((turn, number) => ({
      id: `chat-${number}`,
      object: "chat.completion",
      created: 0,
      model: "scripted",
      choices: [
        {
          index: 0,
          finish_reason: turn.tool ? "tool_calls" : "stop",
          message: {
            role: "assistant",
            content: turn.text ?? null,
            tool_calls: turn.tool && [
              {
                id: `call-${number}`,
                type: "function",
                function: { name: turn.tool, arguments: JSON.stringify(turn.args) },
              },
            ],
          },
        },
      ],
    }));
const client = new OpenAI(scripted && { baseURL: `${scripted.url}/v1`, apiKey: "none" });

const session = new Session({ root });
const messages = [{ role: "user", content: `${task} They are in ${root}.` }];
for (;;) {
  const completion = await client.chat.completions.create({
    model: process.env.OPENAI_MODEL ?? "scripted",
    messages,
    tools: session.toolSchemas("openai"),
  });
  const { message } = completion.choices[0];
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    const args = JSON.parse(call.function.arguments);
    console.log(call.function.name, session.formatCompactParams(call.function.name, args));
    const result = await session.call(call.function.name, args);
    messages.push({
      role: "tool",
      tool_call_id: call.id,
      content: result.success ? result.content : `Error: ${result.error}`,
    });
  }
}
scripted?.stop();
console.log(readFileSync(file, "utf8"));
