// The same from a CommonJS module.
import pinfold = require("pinfold");

export const tools: pinfold.ToolPlugin[] = pinfold.createTools({ root: "." });
