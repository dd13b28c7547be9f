#!/usr/bin/env node
// `pinfold serve --dialect reference`, in which every argument is a directory.
import { run } from "./run.mjs";

run("mcp-server-filesystem");
