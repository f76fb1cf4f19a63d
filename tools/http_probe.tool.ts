/// <reference path="./runner.d.ts" />

// Whether URLs answer, how fast, and with what. Only the targets that the policy's `net` allows can be asked.

interface Args {
  urls: string[];
  method: "GET" | "HEAD";
  expect?: number;
  contains?: string;
  timeout: number;
}

interface Probe {
  url: string;
  ok: boolean;
  status: number | null;
  durationMs: number;
  type?: string | null;
  bytes?: number;
  redirectedTo?: string;
  problem?: string;
  code?: string;
}

interface Result {
  ok: boolean;
  summary: string;
  probes: Probe[];
}

export const tool: Tool<Args, Result> = {
  name: "http_probe",
  version: "1.0.0",
  description:
    "Ask URLs and report status, time, type and size of each answer; optionally expect a status or a text. One that cannot be reached or is not allowed is a row of the " +
    "report, not an error. Needs a policy whose `net` allows the targets.",
  category: "api",
  securityTier: "external_api",
  documentation: "tools/README.md",
  capabilities: [{ action: "probe", description: "Send GET or HEAD requests", requiresConfirmation: false, estimatedTime: 1000 }],
  permissions: { autoAccept: true, riskLevel: "low" },
  net: ["GET,HEAD https://*:*/**", "GET,HEAD http://*:*/**"],
  costInfo: { model: "free" },
  // One that does not answer is a row of the report, not an error that trying again would mend.
  retry: { maxAttempts: 1 },
  tags: ["http", "status"],
  files: { read: [] },
  timeout: "2m",

  parameters: {
    type: "object",
    properties: {
      urls: { type: "array", items: { type: "string", pattern: "^https?://" }, minItems: 1, maxItems: 50, description: "What to ask" },
      method: { enum: ["GET", "HEAD"], default: "GET", description: "How to ask" },
      expect: { type: "integer", minimum: 100, maximum: 599, description: "The status that is right; any from 200 to 299 by default" },
      contains: { type: "string", description: "A text that the answer must contain" },
      timeout: { type: "integer", minimum: 1, maximum: 60000, default: 10000, description: "Milliseconds to wait for each" },
    },
    required: ["urls"],
    additionalProperties: false,
  },
  returnType: {
    type: "object",
    properties: {
      ok: { type: "boolean", description: "Whether every URL answered as expected" },
      summary: { type: "string" },
      probes: {
        type: "array",
        items: {
          type: "object",
          properties: {
            url: { type: "string" },
            ok: { type: "boolean" },
            status: { type: ["integer", "null"] },
            durationMs: { type: "number" },
            type: { type: ["string", "null"] },
            bytes: { type: "integer" },
            redirectedTo: { type: "string" },
            problem: { type: "string" },
            code: { type: "string" },
          },
          required: ["url", "ok", "status", "durationMs"],
          additionalProperties: false,
        },
      },
    },
    required: ["ok", "summary", "probes"],
    additionalProperties: false,
  },

  validate({ urls, method, contains }) {
    const errors = urls.filter((url) => !URL.canParse(url)).map((url) => `${url} is no URL`);
    if (method === "HEAD" && contains !== undefined) errors.push("a HEAD request has no body that could contain anything");
    return { valid: errors.length === 0, errors };
  },

  async execute(args, { platform: { http }, progress, signal }) {
    let done = 0;
    const probe = async (url: string): Promise<Probe> => {
      const start = performance.now();
      const took = () => Math.round(performance.now() - start);
      try {
        const answer = await http.fetch(url, { method: args.method, timeout: args.timeout, signal });
        const body = await answer.bytes();
        const problem = wrongWith(answer.status, new TextDecoder().decode(body), args);
        return {
          url,
          ok: problem === undefined,
          status: answer.status,
          durationMs: took(),
          type: answer.headers.get("content-type"),
          bytes: body.length,
          ...(answer.redirected ? { redirectedTo: answer.url } : {}),
          ...(problem === undefined ? {} : { problem }),
        };
      } catch (error) {
        const { code, message, suggestion } = error as RunnerError;
        if (code === "cancelled") throw error;
        return { url, ok: false, status: null, durationMs: took(), problem: suggestion === undefined ? message : `${message}; ${suggestion}`, code };
      } finally {
        done += 1;
        progress(done / args.urls.length, url);
      }
    };
    const probes = await Promise.all(args.urls.map(probe));
    const bad = probes.filter(({ ok }) => !ok).length;
    return { ok: bad === 0, summary: bad === 0 ? `all ${probes.length} answered as expected` : `${bad} of ${probes.length} did not answer as expected`, probes };
  },

  // What cannot be reached is a row of the report; what is left was cancelled, or is a mistake in this file.
  handleError(error) {
    const { code = "tool_failed", message } = error as RunnerError;
    return { code, message, recoverable: false, suggestion: code === "cancelled" ? "call it again" : "report it, with the URLs" };
  },
};

function wrongWith(status: number, body: string, { expect, contains }: Args): string | undefined {
  if (expect === undefined ? status < 200 || status > 299 : status !== expect) return `the status is ${status}, not ${expect ?? "200 to 299"}`;
  if (contains !== undefined && !body.includes(contains)) return `the answer does not contain ${JSON.stringify(contains)}`;
  return undefined;
}
