// Pinfold's tools with Google's SDK. With GEMINI_API_KEY and GEMINI_MODEL set it talks to a real one.
import { readFileSync } from "node:fs";
import { GoogleGenAI } from "@google/genai";
import { Session } from "pinfold";
import { file, root, serve, task } from "./scripted.mjs";

const scripted = process.env.GEMINI_API_KEY
  ? undefined
  : await serve((turn) => ({
      candidates: [
        {
          index: 0,
          finishReason: "STOP",
          content: {
            role: "model",
            parts: [
              turn.tool
                ? { functionCall: { name: turn.tool, args: turn.args } }
                : { text: turn.text },
            ],
          },
        },
      ],
    }));
const client = new GoogleGenAI({
  apiKey: process.env.GEMINI_API_KEY ?? "none",
  ...(scripted && { httpOptions: { baseUrl: scripted.url } }),
});

const session = new Session({ root });
const contents = [{ role: "user", parts: [{ text: `${task} They are in ${root}.` }] }];
for (;;) {
  const response = await client.models.generateContent({
    model: process.env.GEMINI_MODEL ?? "scripted",
    contents,
    config: { tools: session.toolSchemas("gemini") },
  });
  contents.push(response.candidates[0].content);
  const calls = response.functionCalls ?? [];
  if (calls.length === 0) {
    console.log(response.text);
    break;
  }
  const parts = [];
  for (const { id, name, args } of calls) {
    console.log(name, session.formatCompactParams(name, args));
    const result = await session.call(name, args);
    const answer = result.success ? { output: result.content } : { error: result.error };
    parts.push({ functionResponse: { id, name, response: answer } });
  }
  contents.push({ role: "user", parts });
}
scripted?.stop();
console.log(readFileSync(file, "utf8"));
