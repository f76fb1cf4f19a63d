// The other half of the check: what the types must refuse. Each line marked so is an error that has to be there.

import { z } from "zod";

const parameters = z.object({ n: z.number(), name: z.string().optional() });

export const good: Tool<z.infer<typeof parameters>, number> = {
  name: "good",
  description: "x",
  parameters,
  execute: ({ n, name }) => n + (name?.length ?? 0),
};

export const sameByHelper = (args: ToolArgs<typeof parameters>): number => args.n;

// @ts-expect-error: a schema of other arguments
export const otherSchema: Tool<{ n: string }> = { name: "x", description: "x", parameters, execute: ({ n }) => n };

// @ts-expect-error: no parameters
export const noParameters: Tool = { name: "x", description: "x", execute: () => 1 };

// @ts-expect-error: no such tier
export const noTier: Tool = { name: "x", description: "x", parameters: {}, securityTier: "root", execute: () => 1 };

// @ts-expect-error: nothing reads such a member
export const unread: Tool = { name: "x", description: "x", parameters: {}, timout: 5, execute: () => 1 };

export const helped: Tool & { half(n: number): number } = {
  name: "helped",
  description: "x",
  parameters: {},
  half: (n) => n / 2,
  execute({ n }) {
    return this.half(n);
  },
};

export async function execute(_: unknown, context: ToolContext): Promise<unknown> {
  const { fs, executor, http } = context.platform;
  const text: string = await fs.readFile("a");
  const same: string = await fs.readFile("a", "utf-8");
  const bytes: Uint8Array = await fs.readFile("a", { encoding: null });
  // @ts-expect-error: bytes are no text
  const wrong: string = await fs.readFile("a", null);
  // @ts-expect-error: nothing is written without content
  await fs.writeFile("a");
  // @ts-expect-error: the context has no permissions
  void context.permissions;
  // @ts-expect-error: config is frozen
  context.config.a = 1;
  // @ts-expect-error: a command or a line, not both
  await executor.execute({ command: "a", line: "b" });
  const forms = [await executor.execute("git", ["log"]), await executor.execute("git log"), await executor.execute({ command: "ls", cwd: context.conversation?.workingDirectory })];
  const raw: Uint8Array = (await executor.execute({ command: "x", encoding: null })).stdout;
  // @ts-expect-error: no such way to follow redirects
  await http.fetch("https://api.example/", { redirect: "sideways" });
  const list = await fs.glob("**");
  const entries = await fs.readdir(".", { withFileTypes: true });
  try {
    await fs.stat("a");
  } catch (error) {
    const { code, rule } = error as RunnerError;
    if (code === "access_denied") return rule;
  }
  return [text, same, bytes, wrong, forms, raw, list.truncated, entries[0]?.isFile()];
}
