// Anthropic's text editor tool, run by Pinfold. With ANTHROPIC_API_KEY and ANTHROPIC_MODEL set it talks to a real model.
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { Session } from "pinfold";
import { anthropicMessage, editorScript, file, root, serve, task } from "./scripted.mjs";

const scripted = process.env.ANTHROPIC_API_KEY
  ? undefined
  : await serve(anthropicMessage, editorScript);
const client = new Anthropic(scripted && { baseURL: scripted.url, apiKey: "none" });

const session = new Session({ root, dialect: "editor" });
const messages = [{ role: "user", content: `${task} They are in ${root}.` }];
for (;;) {
  const message = await client.messages.create({
    model: process.env.ANTHROPIC_MODEL ?? "scripted",
    max_tokens: 4096,
    messages,
    // [{ type: "text_editor_20250728", name: "str_replace_based_edit_tool", max_characters: 16000 }]
    tools: session.toolSchemas("anthropic"),
  });
  messages.push({ role: "assistant", content: message.content });
  const calls = message.content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) {
    console.log(message.content.map((block) => block.text).join(""));
    break;
  }
  const results = [];
  for (const call of calls) {
    console.log(call.name, session.formatCompactParams(call.name, call.input));
    results.push(await session.toolResult(call));
  }
  messages.push({ role: "user", content: results });
}
scripted?.stop();
console.log(readFileSync(file, "utf8"));
