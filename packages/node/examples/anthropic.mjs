// Pinfold's tools with Anthropic's SDK. With ANTHROPIC_API_KEY and ANTHROPIC_MODEL set it talks to a real one.
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { Session } from "pinfold";
import { anthropicMessage, file, root, serve, task } from "./scripted.mjs";

const scripted = process.env.ANTHROPIC_API_KEY
  ? undefined
  : await serve(anthropicMessage);
const client = new Anthropic(scripted && { baseURL: scripted.url, apiKey: "none" });

const session = new Session({ root });
const messages = [{ role: "user", content: `${task} They are in ${root}.` }];
for (;;) {
  const message = await client.messages.create({
    model: process.env.ANTHROPIC_MODEL ?? "scripted",
    max_tokens: 4096,
    messages,
    tools: session.toolSchemas("anthropic"),
  });
  messages.push({ role: "assistant", content: message.content });
  const calls = message.content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) {
    console.log(message.content.map((block) => block.text).join(""));
    break;
  }
  const results = calls.map(async (call) => {
    console.log(call.name, session.formatCompactParams(call.name, call.input));
    return session.toolResult(call);
  });
  messages.push({ role: "user", content: await Promise.all(results) });
}
scripted?.stop();
console.log(readFileSync(file, "utf8"));
