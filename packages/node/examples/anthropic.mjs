// Pinfold's tools with Anthropic's SDK. With ANTHROPIC_API_KEY and ANTHROPIC_MODEL set it talks to a real one.
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { Session } from "pinfold";
import { file, root, serve, task } from "./scripted.mjs";

const scripted = process.env.ANTHROPIC_API_KEY
  ? undefined
  : await serve((turn, number) => ({
      id: `message-${number}`,
      type: "message",
      role: "assistant",
      model: "scripted",
      stop_reason: turn.tool ? "tool_use" : "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
      content: turn.tool
        ? [{ type: "tool_use", id: `call-${number}`, name: turn.tool, input: turn.args }]
        : [{ type: "text", text: turn.text }],
    }));
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
    const result = await session.call(call.name, call.input);
    const images = (result.images ?? []).map(({ data, mediaType }) => ({
      type: "image",
      source: { type: "base64", media_type: mediaType, data },
    }));
    const text = { type: "text", text: result.success ? result.content : result.error };
    return {
      type: "tool_result",
      tool_use_id: call.id,
      is_error: !result.success,
      content: [text, ...images],
    };
  });
  messages.push({ role: "user", content: await Promise.all(results) });
}
scripted?.stop();
console.log(readFileSync(file, "utf8"));
