// Types for authors of runner tools. Nothing to import: all names are global.
//
// In the YAML form, `code` exports `execute(args, context: ToolContext)`. In the module form, `NAME.tool.ts` exports
// `tool: Tool<Args, Result>`. An editor sees these types through the tsconfig.json beside this file, or through
//
//   /// <reference path="./runner.d.ts" />

// ---------------------------------------------------------------------------------------------
// context
// ---------------------------------------------------------------------------------------------

/**
 * The second argument of `execute`: all that a tool has of the world. A tool sees no workspace, no home folder, no
 * network and no host environment; each call below is a request that the policy and the tool's own permissions
 * decide. There is no `permissions` here: ask by doing, and handle the error.
 */
interface ToolContext {
  /** Files, commands and the network, through the host. */
  readonly platform: ToolPlatform;
  /** Lines for whoever watches the call; on standard error of `runner tool run`. */
  readonly logger: ToolLogger;
  /**
   * Tells how far the work is.
   * @param fraction from 0 to 1
   * @param text what is being done
   */
  progress(fraction: number, text?: string): void;
  /** Configuration that is meant for tools; frozen, and never holds a secret. */
  readonly config: Readonly<Record<string, any>>;
  /** The conversation that the call belongs to, if it belongs to one. */
  readonly conversation?: ToolConversation;
  /** The workspace's absolute path. Relative paths start there. */
  readonly workspace: string;
  /** Aborts when the call is cancelled or out of time; the process ends soon after. */
  readonly signal: AbortSignal;
}

/** What a tool may know of a conversation. */
interface ToolConversation {
  readonly id: string;
  /** Where the caller stands; an absolute path in the workspace. */
  readonly workingDirectory: string;
}

/** What the host does for a tool. */
interface ToolPlatform {
  /** Files of the workspace. */
  readonly fs: ToolFileSystem;
  /** Commands, each in a sandbox of its own. */
  readonly executor: ToolExecutor;
  /** Requests over the network. */
  readonly http: ToolHttp;
}

/** Log lines. Text that looks like a secret is masked, as in prints (`console`) and in what the tool returns. */
interface ToolLogger {
  /** Details for the author. */
  debug(message: unknown, ...fields: unknown[]): void;
  /** What happens. `fields` is an object of further values: `info("found", { files: 3 })`. */
  info(message: unknown, ...fields: unknown[]): void;
  /** Something is odd, and the tool goes on. */
  warn(message: unknown, ...fields: unknown[]): void;
  /** Something failed. An Error is shown with its stack: `error("cannot parse", error)`. */
  error(message: unknown, ...fields: unknown[]): void;
}

// ---------------------------------------------------------------------------------------------
// files
// ---------------------------------------------------------------------------------------------

/** Text encodings. */
type ToolEncoding = "utf8" | "utf-8" | "utf16le" | "ucs2" | "latin1" | "binary" | "ascii" | "base64" | "base64url" | "hex";

/** What can be written: text, or bytes in any form. */
type ToolContent = string | ArrayBuffer | ArrayBufferView;

/**
 * Files of the workspace, named by paths relative to it or absolute ones below it. The names follow
 * `node:fs/promises`. Every function can be taken out of the object: `const { readFile } = context.platform.fs`.
 *
 * What fails is a {@link RunnerError}: `not_found`, `access_denied`, `path_escape`, `protected_path`, `special_file`,
 * `already_exists`, `is_a_directory`, `not_a_directory`, `not_empty`, `too_large`, `limit_reached`, `no_space`, `io_error`, …
 */
interface ToolFileSystem {
  /** Reads a file as UTF-8 text. Fails with `not_text` if it is none: no byte is lost silently. */
  readFile(path: string | URL): Promise<string>;
  /** Reads a file as text; in UTF-8, what is no text becomes U+FFFD. */
  readFile(path: string | URL, encoding: ToolEncoding | ToolReadOptions & { encoding: ToolEncoding }): Promise<string>;
  /** Reads a file as bytes. */
  readFile(path: string | URL, encoding: null | ToolReadOptions & { encoding: null }): Promise<Uint8Array>;
  /** Reads a part of a file as text. */
  readFile(path: string | URL, options: ToolReadOptions): Promise<string>;

  /** Writes a file whole: nobody ever sees half of it. The folder must exist. */
  writeFile(path: string | URL, content: ToolContent, options?: ToolEncoding | ToolWriteOptions): Promise<void>;
  /** Adds to the end of a file, which is made if it is missing. */
  appendFile(path: string | URL, content: ToolContent, options?: ToolEncoding | Omit<ToolWriteOptions, "flag">): Promise<void>;

  /** The names in a folder, sorted. For a tree use {@link glob}. */
  readdir(path: string | URL): Promise<ToolList<string>>;
  /** The entries of a folder with their types, sorted by name. */
  readdir(path: string | URL, options: { withFileTypes: true }): Promise<ToolList<ToolDirEntry>>;

  /** What is at a path. Fails with `not_found` if nothing is. */
  stat(path: string | URL): Promise<ToolStat>;
  /** Whether something is at a path. A path that may not be looked at is an error, not `false`. */
  exists(path: string | URL): Promise<boolean>;

  /** Makes a folder; with `recursive` its parents too, and one that exists is no error. */
  mkdir(path: string | URL, options?: { recursive?: boolean }): Promise<void>;
  /** Removes a file, or with `recursive` a folder; with `force` nothing there is no error. */
  rm(path: string | URL, options?: { recursive?: boolean; force?: boolean }): Promise<void>;
  /** Removes a file. */
  unlink(path: string | URL): Promise<void>;
  /** Renames a file or folder within the workspace. */
  rename(from: string | URL, to: string | URL): Promise<void>;
  /** Copies a file's content. With `exclusive`, fails with `already_exists` rather than replace one. */
  copyFile(from: string | URL, to: string | URL, options?: { exclusive?: boolean; signal?: AbortSignal }): Promise<void>;

  /**
   * The files and folders that a pattern covers, sorted, relative to `cwd`. `*` and `?` stay within a name, `**` crosses folders,
   * `{a,b}` are alternatives. Paths that may not be read are left out.
   */
  glob(pattern: string, options?: ToolGlobOptions): Promise<ToolList<string>>;
}

interface ToolReadOptions {
  /** Text in this encoding; `null` for bytes. */
  encoding?: ToolEncoding | null;
  /** The first byte to read. */
  offset?: number;
  /** At most this many bytes. */
  length?: number;
  /** Cancels the request. */
  signal?: AbortSignal;
}

interface ToolWriteOptions {
  /** How text becomes bytes. */
  encoding?: ToolEncoding;
  /** `w` replaces (the default), `wx` fails with `already_exists`, `a` adds to the end. */
  flag?: "w" | "wx" | "a";
  /** Cancels the request. */
  signal?: AbortSignal;
}

interface ToolGlobOptions {
  /** The folder to look in; the workspace by default. */
  cwd?: string | URL;
  /** Whether `*` covers names that start with a dot. */
  dot?: boolean;
  /** At most this many paths. */
  limit?: number;
}

/** A list that the host may have cut short. */
type ToolList<T> = T[] & { readonly truncated: boolean };

type ToolFileType = "file" | "dir" | "link" | "other";

/** One entry of a folder. */
interface ToolDirEntry {
  readonly name: string;
  /** The folder, as it was given. */
  readonly parentPath: string;
  readonly type: ToolFileType;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** What is at a path. */
interface ToolStat {
  readonly type: ToolFileType;
  /** In bytes. */
  readonly size: number;
  /** When its content changed. */
  readonly mtime: Date;
  /** The same, in milliseconds since 1970. */
  readonly mtimeMs: number;
  /** Permission bits. */
  readonly mode: number;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

// ---------------------------------------------------------------------------------------------
// commands
// ---------------------------------------------------------------------------------------------

/**
 * Commands of `permissions.allowlist`, each decided by the policy and run in a sandbox of its own. A command that ran
 * and failed is no error: look at `exitCode`. One that may not run, or cannot be found, is a {@link RunnerError}:
 * `access_denied`, `approval_needed`, `program_not_found`, `timeout`, …
 */
interface ToolExecutor {
  /** Runs a program with arguments. No shell reads them. */
  execute(command: ToolCommand & { encoding: null }): Promise<ToolCommandResult<Uint8Array>>;
  execute(command: ToolCommand): Promise<ToolCommandResult>;
  /** The same, with its parts in a row. */
  execute(command: string, args: readonly (string | number)[], options?: ToolCommandOptions): Promise<ToolCommandResult>;
  /** Runs a line such as `"git log -n 5 | head"`; it is read as a policy reads it, mostly without a shell. */
  execute(line: string, options?: ToolCommandOptions): Promise<ToolCommandResult>;
}

interface ToolCommandOptions {
  /** Where it runs; the workspace by default. */
  cwd?: string | URL;
  /** Variables; those that the policy and the tool's `env` accept. */
  env?: Record<string, string | number | boolean | undefined>;
  /** What it reads from standard input. */
  stdin?: ToolContent;
  /** Ends it after so many milliseconds. */
  timeout?: number;
  /** Cancels it. */
  signal?: AbortSignal;
  /** `null` for the streams as bytes. */
  encoding?: "utf8" | null;
}

/** A command as one object: a program and its arguments, or a line. */
type ToolCommand = ToolCommandOptions &
  (
    | { /** The program. */ command: string; /** Its arguments. */ args?: readonly (string | number)[]; line?: undefined }
    | { /** A line of commands. */ line: string; command?: undefined; args?: undefined }
  );

/** A command that ran. */
interface ToolCommandResult<Stream = string> {
  readonly stdout: Stream;
  readonly stderr: Stream;
  /** Its exit code; 128 and more for a signal. */
  readonly exitCode: number;
  /** How it ended, in a word: `exited`, `signal`, `timeout`, … */
  readonly status: string;
  /** The signal that ended it. */
  readonly signal: string | null;
  /** Whether the middle of a stream was left out because it was too long. */
  readonly truncated: boolean;
  /** How long it took. */
  readonly durationMs: number;
  /** Its own id in the ledger. */
  readonly call: string;
}

// ---------------------------------------------------------------------------------------------
// network
// ---------------------------------------------------------------------------------------------

/**
 * Requests that the host makes, to the targets of the tool's `net` that the policy allows too. The global `fetch` of Node
 * reaches nothing in a sandbox. An answer of any status is an answer; what could not be asked is a {@link RunnerError}:
 * `net_denied`, `net_address`, `net_dns`, `net_connect`, `net_tls`, `net_redirect`, `net_protocol`, `timeout`, …
 */
interface ToolHttp {
  fetch(url: string | URL, init?: ToolHttpInit): Promise<ToolHttpResponse>;
}

interface ToolHttpInit {
  /** `GET` by default. */
  method?: string;
  /** Credentials do not belong here: a policy's `send` adds them where the tool cannot see them. */
  headers?: Record<string, string | undefined> | readonly (readonly [string, string])[] | Iterable<[string, string]>;
  body?: ToolContent | URLSearchParams | null;
  /** `follow` by default; each redirect is decided again. */
  redirect?: "follow" | "manual" | "error";
  /** Gives up after so many milliseconds. */
  timeout?: number;
  /** Cancels the request. */
  signal?: AbortSignal | null;
}

/** An answer. The body is here already and can be read more than once. */
interface ToolHttpResponse {
  readonly status: number;
  readonly statusText: string;
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  /** Where it came from in the end. */
  readonly url: string;
  readonly redirected: boolean;
  readonly headers: ToolHttpHeaders;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** Headers of an answer; names in any case. */
interface ToolHttpHeaders extends Iterable<[string, string]> {
  /** The value, several joined by `, `. */
  get(name: string): string | null;
  has(name: string): boolean;
  getSetCookie(): string[];
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  entries(): IterableIterator<[string, string]>;
  forEach(callback: (value: string, name: string) => void): void;
}

// ---------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------

/** What went wrong, in a word. */
type RunnerErrorCode =
  | "access_denied" | "approval_needed" | "approval_denied" | "approval_over" | "approval_differs" | "approval_unknown" | "approval_failed" | "tool_digest_mismatch" | "path_escape" | "protected_path" | "special_file" | "not_found" | "already_exists"
  | "not_a_directory" | "is_a_directory" | "not_empty" | "not_text" | "too_large" | "limit_reached" | "busy" | "invalid_argument" | "no_space"
  | "io_error" | "timeout" | "cancelled" | "program_not_found" | "engine_error" | "channel_closed"
  | "net_denied" | "net_address" | "net_dns" | "net_connect" | "net_tls" | "net_protocol" | "net_redirect";

/** What `platform` throws: a real Error, whose stack is that of the call. */
interface RunnerError extends Error {
  readonly name: "RunnerError";
  readonly code: RunnerErrorCode | (string & {});
  /** The path that it is about. */
  readonly path?: string;
  /** The rule that decided, as `policy/id`. */
  readonly rule?: string;
  /** What would help. */
  readonly suggestion?: string;
  /** Whether trying again can help. */
  readonly recoverable: boolean;
}

// ---------------------------------------------------------------------------------------------
// the module form
// ---------------------------------------------------------------------------------------------

/**
 * What `NAME.tool.ts` exports as `tool` (or as default).
 *
 * A run is initialize, validate, execute, then cleanup, which runs in any case. What `execute` throws goes through
 * `handleError` and `retry`. Every function is called on the tool itself: `this` works.
 *
 * A member that is not listed here refuses the tool: nothing would read it. Helper functions are free, unless their name
 * is close to that of a hook: `Tool<Args, Result> & { fetchAll(): Promise<void> }`. State belongs into variables of the
 * module, into `#private` fields, or into what `initialize` sets.
 */
interface Tool<Args = any, Result = unknown> {
  /** Its name: that of the file. */
  name: string;
  /** What it does, when to use it, what it returns: the text by which a model chooses it. */
  description: string;
  /** Such as `1.2.3`. */
  version?: string;
  category?: ToolCategory;
  /** How far it reaches. Must cover what it asks for; left out, it is what it asks for. */
  securityTier?: ToolSecurityTier;
  /** Where more is written: an address, or a file of the repository that the tool is in. */
  documentation?: string;
  /** `false` hides it. */
  enabled?: boolean;
  /** Tokens that its description costs; estimated if left out. */
  tokenCost?: number;
  requiredAuth?: ToolAuth;
  costInfo?: ToolCost;
  /** Words to find it by. */
  tags?: string[];
  /** What it can do. One that requires confirmation is asked about. */
  capabilities?: ToolCapability[];

  /** Commands it may run, and how it is approved. */
  permissions?: ToolPermissions;
  /**
   * Files it may touch, by patterns: `read` is what the policy allows if left out. Without `write` the tool itself writes
   * nothing, and its commands write what the policy lets them; a list, also an empty one, bounds both.
   */
  files?: { read?: string | string[]; write?: string | string[] };
  /** Targets it may reach: `GET https://api.example/v1/**`, `GET,HEAD https://api.example/**`. */
  net?: string[];
  /** Variables that its commands may get. */
  env?: string[];
  /** Limits below the policy's: `{ memory: "128MiB" }`. */
  limits?: Record<string, string | number>;
  /** The longest a call may take: milliseconds, or a text such as `30s`. */
  timeout?: number | string;

  /** What it takes: a zod object, a schema of another library that can be written as JSON Schema, or JSON Schema. */
  parameters: ToolSchema<Args> | ToolJsonSchema;
  /** What it returns. */
  returnType?: ToolSchema<Result> | ToolJsonSchema;

  /** The work. Returns anything that JSON can hold, or a {@link ToolResult}. */
  execute(args: Args, context: ToolContext): Result | ToolResult<Result> | Promise<Result | ToolResult<Result>>;
  /** Checks what a schema cannot say. Also `false`, or an Error that is thrown, refuses. */
  validate?(args: Args, context: ToolContext): ToolValidation | boolean | void | Promise<ToolValidation | boolean | void>;
  /** Makes an error that a caller can act on. */
  handleError?(error: any, context: ToolContext): ToolError | void | Promise<ToolError | void>;
  /** Tries again. */
  retry?: ToolRetry;
  /** Runs before everything else. */
  initialize?(context: ToolContext): void | Promise<void>;
  /** Runs after everything else, however it ended. */
  cleanup?(context: ToolContext): void | Promise<void>;
  /** Tells whether it could work now; for `runner tool check`. */
  healthCheck?(context: ToolContext): ToolHealth | boolean | Promise<ToolHealth | boolean>;
}

type ToolCategory =
  | "filesystem" | "code_analysis" | "validation" | "search" | "api" | "database" | "service" | "deployment" | "development" | "custom";

/** From harmless to far-reaching: looks, writes files, runs commands, reaches the network. */
type ToolSecurityTier = "read_only" | "write" | "execute" | "external_api";

interface ToolPermissions {
  /** Commands: `git log*` covers further words, `npm test` does not. */
  allowlist?: string[];
  /** Whether a call needs nobody's word; counts for tools of the user and the team, below high risk. */
  autoAccept?: boolean;
  riskLevel?: "low" | "medium" | "high" | "critical";
}

interface ToolCapability {
  action: string;
  description: string;
  requiresConfirmation: boolean;
  /** In US dollars. */
  estimatedCost?: number;
  /** In milliseconds. */
  estimatedTime?: number;
}

interface ToolAuth {
  type: "api_key" | "oauth" | "basic_auth" | "bearer_token" | "custom";
  required: boolean;
  /**
   * The variable that holds the credential; without it the tool is shown as unavailable. Its value is never given to the
   * tool: a policy's `send` adds it to requests.
   */
  configKey: string;
  setupUrl?: string;
  /** Tells whether the credential works; for `runner tool check --health`. */
  testMethod?(context: ToolContext): boolean | Promise<boolean>;
}

interface ToolCost {
  model: "free" | "usage_based" | "subscription" | "one_time";
  estimatedCost?: number;
  billingUrl?: string;
  freeTierLimit?: number;
}

/** A result that says itself whether it is one. `data` becomes the result, `error` the error. */
interface ToolResult<Data = unknown> {
  success: boolean;
  data?: Data;
  error?: ToolError | string;
  /** `cost` is in US dollars; the larger of it and the estimate is booked. */
  metadata?: { cost?: number; [key: string]: unknown };
}

/** An error that a caller can act on. */
interface ToolError {
  /** A word for programs. */
  code: string;
  message: string;
  /** Whether trying again, or otherwise, can help. */
  recoverable: boolean;
  /** How. */
  suggestion?: string;
  originalError?: unknown;
}

interface ToolValidation {
  valid: boolean;
  errors?: (string | { message: string })[];
}

/** When and how often `execute` is tried again. */
interface ToolRetry {
  /** Attempts in all, the first included. */
  maxAttempts: number;
  /** The pause before the second. */
  backoffMs?: number;
  /** Each further pause is so many times longer. */
  backoffMultiplier?: number;
  /** Codes of errors that are worth it; left out, all that are recoverable. */
  retryableErrors?: string[];
}

interface ToolHealth {
  healthy: boolean;
  message?: string;
  lastCheck?: Date;
  nextCheck?: Date;
}

/** A schema object of zod 4 or any other library that follows Standard Schema. */
interface ToolSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown, ...rest: any[]) => any;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The type that a schema object describes: `ToolArgs<typeof parameters>`. */
type ToolArgs<Schema> = Schema extends { readonly "~standard": { readonly types?: { readonly output: infer Output } | undefined } } ? Output : any;

/** JSON Schema 2020-12. `format` is only noted, unless the root has `"x-assert-format": true`. */
interface ToolJsonSchema {
  type?: string | string[];
  description?: string;
  properties?: Record<string, ToolJsonSchema | boolean>;
  required?: string[];
  additionalProperties?: ToolJsonSchema | boolean;
  items?: ToolJsonSchema | boolean;
  enum?: unknown[];
  default?: unknown;
  [keyword: string]: unknown;
}
