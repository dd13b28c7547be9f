// A model that follows a script, so that the examples run without a key: it looks for a typo, reads the
// file, mends it, and says so. Also the file with the typo.
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const root = mkdtempSync(join(tmpdir(), "pinfold-example-"));
export const file = join(root, "greeting.txt");
writeFileSync(file, "Helo, world!\n");

export const task = "There is a typo in one of my files. Find it and mend it.";

/** What the model does, turn by turn: calls of tools, then words. */
export const script = [
  { tool: "Grep", args: { pattern: "Helo" } },
  { tool: "Read", args: { file_path: file } },
  { tool: "Edit", args: { file_path: file, old_string: "Helo", new_string: "Hello" } },
  { text: "It said `Helo`; now it says `Hello`." },
];

/** The same with Anthropic's text editor tool. */
const edit = (args) => ({ tool: "str_replace_based_edit_tool", args });
export const editorScript = [
  edit({ command: "view", path: root }),
  edit({ command: "view", path: file }),
  edit({ command: "str_replace", path: file, old_str: "Helo", new_str: "Hello" }),
  { text: "It said `Helo`; now it says `Hello`." },
];

/** A turn that the user does not want. */
export const unwanted = [
  { tool: "Read", args: { file_path: file } },
  { tool: "Edit", args: { file_path: file, old_string: "Helo", new_string: "Farewell" } },
  { tool: "Move", args: { source: file, destination: join(root, "old", "greeting.txt") } },
  { tool: "Write", args: { file_path: join(root, "notes.txt"), content: "one\ntwo\n" } },
];

/** A turn as a message of Anthropic's. */
export const anthropicMessage = (turn, number) => ({
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
});

/** Serves a script in a provider's form: `form(turn, number)` makes a turn the body of an answer. */
export async function serve(form, turns = script) {
  let number = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(form(turns[number], number)));
      number += 1;
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}
