/// <reference path="./runner.d.ts" />

interface Args {
  path: string;
}

interface Result {
  path: string;
  lines: number;
  words: number;
}

export const tool: Tool<Args, Result> = {
  name: {{name}},
  version: "0.1.0",
  description: {{description}},
  category: "custom",
  // Or write, execute, external_api: never less than what it asks for.
  securityTier: "read_only",
  timeout: "30s",
  capabilities: [{ action: "count", description: "Count lines and words", requiresConfirmation: false, estimatedTime: 500 }], // milliseconds, about
  // documentation: "https://…", or a file of this repository: where more is written.

  // What it takes, checked before anything starts. `import { z } from "zod"` works here, too, with nothing to
  // install: then parameters can be z.object({ … }).
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "The file to look at, relative to the workspace", default: "README.md" },
    },
    additionalProperties: false,
  },
  returnType: {
    type: "object",
    properties: { path: { type: "string" }, lines: { type: "integer" }, words: { type: "integer" } },
    required: ["path", "lines", "words"],
    additionalProperties: false,
  },

  // What it may touch; never more than the policy allows. Nothing can be written and no command be run unless
  // it is listed: files.write, permissions.allowlist, net.
  files: { read: ["**"] },

  async execute({ path }, { platform, logger }) {
    logger.info(`reading ${path}`);
    const text = await platform.fs.readFile(path);
    return {
      path,
      // What follows the last line end is no line.
      lines: text.split("\n").length - (text === "" || text.endsWith("\n") ? 1 : 0),
      words: text.split(/\s+/).filter(Boolean).length,
    };
  },
};
